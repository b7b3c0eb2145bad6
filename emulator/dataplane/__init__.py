"""The data plane: the MMU in eBPF, shaped ports, their memory, and the agent that tunes them.

bpf/mmu.bpf.c   the fast path
layout.py       its structures as NumPy dtypes
compiling.py    C to object file, cached by content
tables.py       settings and counters of all ports, as arrays                     PURE
plane.py        the loaded program, whose memory these arrays are
building.py     links, addresses, queues: lists of netlink messages               PURE
medium.py       what the NIC engine sends and receives through
methods.py      what the controller can ask
agent.py        its JSON-RPC server
"""
