"""The data plane: the MMU in eBPF, shaped ports, their memory, and the agent that tunes them.

bpf/mmu.bpf.c   the fast path
layout.py       its structures as NumPy dtypes
compiling.py    C to object file, cached by content
plane.py        configuration and counters of all ports
building.py     namespaces, links, addresses, queues: pure lists of netlink messages
medium.py       what the NIC engine sends and receives through
sampling.py     queue samples over time
agent.py        JSON-RPC for the controller
"""
