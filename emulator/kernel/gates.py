"""Netlink messages for gates: what stops and releases one traffic class of one port.

A gate is a TBF below the class's HTB leaf. Open, it is faster than any port and lets all pass at
once. Closed, each frame costs more tokens than the bucket can ever hold, so not one leaves: the
shortest length that is charged (``mpu``) is longer than the burst, while the longest frame that is
accepted is computed from the burst alone. The burst is given as a time: as a size the kernel would
charge it the same way. Since Linux 5.17. Source: net/sched/sch_tbf.c, psched_l2t_ns in
net/sch_generic.h.

A TBF that was opened does not look at its queue by itself. A kick does it: a frame for a leaf that
takes nothing is dropped where it should be queued, and then the shaper runs.
"""

from __future__ import annotations

import struct

from emulator.kernel import netlink as nl
from emulator.kernel.queues import HTB_FIRST_LEAF, HTB_NOWHERE, HTB_TOP, htb_class, tc_message

_TCA_KIND, _TCA_OPTIONS = 1, 2
_TCA_TBF_PARMS, _TCA_TBF_RATE64 = 1, 4
_FIRST_GATE, _NOWHERE_HANDLE = 0x100, 0x200 << 16
_ETHERNET = 1  # link layer of a rate: no table, no cells
_TICK_NS = 64
_NS_PER_S = 1_000_000_000
_OPEN_BYTES_PER_S = 1_000_000_000_000
_OPEN_NS = 64_000
_CLOSED_BYTES_PER_S = 10_000
_LONGEST_CHARGE = 0xFFFF
MAX_FRAME_BYTES = 60_000
"""Longest frame that a gate can stop; what is charged for it must be longer."""
_QUEUE_BYTES = 0x7FFFFFFF
_NOWHERE_RATE = 125


def gate(index: int, name: str, tc: int) -> list[nl.Message]:
    """Puts an open gate below the leaf of a class; what waits in the leaf is lost."""
    flags = nl.NLM_F_CREATE | nl.NLM_F_EXCL
    return [_tbf(index, tc, closed=False, flags=flags, label=f"gate of class {tc} on {name}")]


def nowhere(index: int, name: str) -> list[nl.Message]:
    """The leaf that takes nothing, once per port."""
    flags = nl.NLM_F_CREATE | nl.NLM_F_EXCL
    leaf = htb_class(index, name, HTB_NOWHERE, HTB_TOP, _NOWHERE_RATE, _NOWHERE_RATE, 0, 1,
                     _OPEN_NS, flags)  # fmt: skip
    rest = nl.text(_TCA_KIND, "pfifo") + nl.attr(_TCA_OPTIONS, struct.pack("=I", 0))
    label = f"leaf for kicks on {name}"
    full = tc_message(nl.RTM_NEWQDISC, flags, index, _NOWHERE_HANDLE, HTB_NOWHERE, 0, rest, label)
    return [leaf, full]


def change(index: int, name: str, tc: int, *, closed: bool) -> nl.Message:
    """Closes or opens a gate."""
    label = f"{'close' if closed else 'open'} class {tc} of {name}"
    return _tbf(index, tc, closed=closed, flags=0, label=label)


def _tbf(index: int, tc: int, *, closed: bool, flags: int, label: str) -> nl.Message:
    rate = _CLOSED_BYTES_PER_S if closed else _OPEN_BYTES_PER_S
    burst_ns = MAX_FRAME_BYTES * _NS_PER_S // _CLOSED_BYTES_PER_S if closed else _OPEN_NS
    charged = _LONGEST_CHARGE if closed else 0
    spec = struct.pack("=BBHhHI", 0, _ETHERNET, 0, -1, charged, min(rate, 0xFFFFFFFF))
    parms = spec + bytes(len(spec)) + struct.pack("=III", _QUEUE_BYTES, burst_ns // _TICK_NS, 0)
    options = nl.attr(_TCA_TBF_PARMS, parms)
    if rate > 0xFFFFFFFF:
        options += nl.attr(_TCA_TBF_RATE64, struct.pack("=Q", rate))
    rest = nl.text(_TCA_KIND, "tbf") + nl.attr(_TCA_OPTIONS, options)
    handle, parent = (_FIRST_GATE + tc) << 16, HTB_FIRST_LEAF + tc
    return tc_message(nl.RTM_NEWQDISC, flags, index, handle, parent, 0, rest, label)
