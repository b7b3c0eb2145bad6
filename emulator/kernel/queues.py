"""Netlink messages for egress queueing: clsact with its filters, HTB and its classes, and fq.

HTB's burst is a time here: how late the shaper's timer may fire without losing rate. Packets may
take the bucket below zero, so a burst smaller than a frame shapes exactly, and frames leave one
by one. fq lets each packet go at the time that is written in it. Source: linux/pkt_sched.h,
linux/pkt_cls.h, linux/tc_act/tc_mirred.h; net/sched: sch_htb.c, sch_fq.c, cls_bpf.c, act_mirred.c.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from emulator.kernel import netlink as nl

_TCA_KIND, _TCA_OPTIONS, _TCA_STAB, _TCA_STAB_BASE = 1, 2, 8, 1
_TCA_HTB_PARMS, _TCA_HTB_INIT, _TCA_HTB_RATE64, _TCA_HTB_CEIL64 = 1, 2, 6, 7
_TCA_BPF_CLASSID, _TCA_BPF_FD, _TCA_BPF_NAME, _TCA_BPF_FLAGS = 3, 6, 7, 8
_TCA_BPF_FLAG_ACT_DIRECT = 1
_TCA_MATCHALL_ACT, _TCA_ACT_KIND, _TCA_ACT_OPTIONS, _TCA_MIRRED_PARMS = 2, 1, 2, 2
_TC_ACT_STOLEN, _TCA_EGRESS_REDIR, _FIRST_ACTION = 4, 1, 1
_TCA_FQ_PLIMIT, _TCA_FQ_FLOW_PLIMIT, _TCA_FQ_QUANTUM, _TCA_FQ_INITIAL_QUANTUM = 1, 2, 3, 4
_TCA_FQ_RATE_ENABLE, _TCA_FQ_ORPHAN_MASK, _TCA_FQ_TIMER_SLACK = 5, 10, 13
_TCA_FQ_HORIZON, _TCA_FQ_HORIZON_DROP = 14, 15
_FQ_QUANTUM_BYTES = 1 << 20
_UNLIMITED, _ALL_BITS = 0x7FFFFFFF, 0xFFFFFFFF
_ROOT, _CLSACT = 0xFFFFFFFF, 0xFFFFFFF1
_INGRESS_PARENT, _EGRESS_PARENT = 0xFFFFFFF2, 0xFFFFFFF3
HTB_MAJOR = 1 << 16
HTB_TOP = HTB_MAJOR + 1
HTB_FIRST_LEAF = HTB_MAJOR + 0x10
HTB_NOWHERE = HTB_MAJOR + 0x1F
_ETH_P_ALL_BE = 0x0300
_PSCHED_TICK_NS = 64
_MIN_RATE_BYTES = 125
WIRE_OVERHEAD_BYTES = 24
BURST_NS = 150_000


@dataclass(frozen=True, slots=True)
class LeafClass:
    """How one traffic class is served: lower `priority` first, equal ones share by `weight`."""

    priority: int
    weight: int


def tc_message(kind: int, flags: int, index: int, handle: int, parent: int, info: int, rest: bytes,
               label: str) -> nl.Message:  # fmt: skip
    """A traffic-control request: struct tcmsg and its attributes."""
    body = struct.pack("=BxHiIII", 0, 0, index, handle, parent, info) + rest
    return nl.request(kind, flags, body, label)


def clsact(index: int, name: str) -> nl.Message:
    """Adds the clsact qdisc, the hook of the eBPF programs."""
    rest = nl.text(_TCA_KIND, "clsact")
    flags = nl.NLM_F_CREATE | nl.NLM_F_EXCL
    return tc_message(
        nl.RTM_NEWQDISC, flags, index, 0xFFFF0000, _CLSACT, 0, rest, f"clsact on {name}"
    )


def bpf_filter(index: int, name: str, program_fd: int, port: int, *, egress: bool) -> nl.Message:
    """Attaches a program in direct-action mode; it reads `port` from skb->tc_classid."""
    options = (
        nl.u32(_TCA_BPF_FD, program_fd)
        + nl.text(_TCA_BPF_NAME, "fabriclab")
        + nl.u32(_TCA_BPF_FLAGS, _TCA_BPF_FLAG_ACT_DIRECT)
        + nl.u32(_TCA_BPF_CLASSID, port)
    )
    rest = nl.text(_TCA_KIND, "bpf") + nl.attr(_TCA_OPTIONS, options)
    parent = _EGRESS_PARENT if egress else _INGRESS_PARENT
    return _filter(index, parent, 1, rest, f"filter on {name}")


def redirect(index: int, name: str, target_index: int) -> nl.Message:
    """Sends what comes in, and what no program has decided on, through another device.

    A program at the same hook runs first and returns TC_ACT_UNSPEC for what it leaves to this one.
    """
    parms = struct.pack("=IIiiiiI", 0, 0, _TC_ACT_STOLEN, 0, 0, _TCA_EGRESS_REDIR, target_index)
    mirred = nl.attr(_TCA_MIRRED_PARMS, parms)
    action = nl.text(_TCA_ACT_KIND, "mirred") + nl.attr(_TCA_ACT_OPTIONS, mirred)
    options = nl.attr(_TCA_MATCHALL_ACT, nl.attr(_FIRST_ACTION, action))
    rest = nl.text(_TCA_KIND, "matchall") + nl.attr(_TCA_OPTIONS, options)
    return _filter(index, _INGRESS_PARENT, 2, rest, f"redirection of {name}")


def _filter(index: int, parent: int, priority: int, rest: bytes, label: str) -> nl.Message:
    info = (priority << 16) | _ETH_P_ALL_BE
    flags = nl.NLM_F_CREATE | nl.NLM_F_EXCL
    return tc_message(nl.RTM_NEWTFILTER, flags, index, 0, parent, info, rest, label)


def fq(index: int, name: str) -> nl.Message:
    """A root qdisc that lets each packet go at its time (skb->tstamp), to the nanosecond.

    It limits nothing: neither packets, nor rates, nor how far ahead a packet may be.
    """
    options = (
        nl.u32(_TCA_FQ_PLIMIT, _UNLIMITED)
        + nl.u32(_TCA_FQ_FLOW_PLIMIT, _UNLIMITED)
        + nl.u32(_TCA_FQ_QUANTUM, _FQ_QUANTUM_BYTES)
        + nl.u32(_TCA_FQ_INITIAL_QUANTUM, _FQ_QUANTUM_BYTES)
        + nl.u32(_TCA_FQ_RATE_ENABLE, 0)
        + nl.u32(_TCA_FQ_ORPHAN_MASK, _ALL_BITS)
        + nl.u32(_TCA_FQ_TIMER_SLACK, 0)
        + nl.u32(_TCA_FQ_HORIZON, _ALL_BITS)
        + nl.attr(_TCA_FQ_HORIZON_DROP, b"\0")
    )
    rest = nl.text(_TCA_KIND, "fq") + nl.attr(_TCA_OPTIONS, options)
    flags = nl.NLM_F_CREATE | nl.NLM_F_EXCL
    return tc_message(nl.RTM_NEWQDISC, flags, index, HTB_MAJOR, _ROOT, 0, rest, f"fq on {name}")


def _spec(rate: int) -> bytes:
    return struct.pack("=BBHhHI", 0, 1, WIRE_OVERHEAD_BYTES, -1, 0, min(rate, 0xFFFFFFFF))


def htb_class(index: int, name: str, handle: int, parent: int, rate: int, ceil: int,
              priority: int, quantum: int, burst_ns: int, flags: int) -> nl.Message:  # fmt: skip
    """A class of HTB; rates in bytes/s, the quantum in bytes."""
    burst = burst_ns // _PSCHED_TICK_NS
    parms = _spec(rate) + _spec(ceil) + struct.pack("=IIIII", burst, burst, quantum, 0, priority)
    options = nl.attr(_TCA_HTB_PARMS, parms)
    if ceil > 0xFFFFFFFF:
        options += nl.attr(_TCA_HTB_CEIL64, struct.pack("=Q", ceil))
    if rate > 0xFFFFFFFF:
        options += nl.attr(_TCA_HTB_RATE64, struct.pack("=Q", rate))
    rest = nl.text(_TCA_KIND, "htb") + nl.attr(_TCA_OPTIONS, options)
    label = f"class {handle & 0xFFFF:x} on {name}"
    return tc_message(nl.RTM_NEWTCLASS, flags, index, handle, parent, 0, rest, label)


def _lengths_anew() -> bytes:
    """A size table that adds nothing: the qdisc reckons with a frame's length as it is then.

    Without one it takes the length from before clsact's programs, which may have cut the frame.
    """
    return nl.attr(_TCA_STAB, nl.attr(_TCA_STAB_BASE, struct.pack("=BBhiIIII", *[0] * 8)))


def shaper(index: int, name: str, rate_bps: int, classes: Sequence[LeafClass],
           quantum_bytes: int, burst_ns: int = BURST_NS) -> list[nl.Message]:  # fmt: skip
    """HTB of a port: its rate at the top, one leaf per traffic class that borrows all it can.

    Args:
        index: interface index.
        name: interface name, for errors.
        rate_bps: emulated line rate, bit/s on the wire.
        classes: service of traffic classes 0-7.
        quantum_bytes: bytes per turn of weight 1; at least a frame.
        burst_ns: how late the timer may be without losing rate; counted in steps of 64 ns.
    """
    init = nl.attr(_TCA_HTB_INIT, struct.pack("=IIIII", 3, 1, 0x10, 0, 0))
    rest = nl.text(_TCA_KIND, "htb") + nl.attr(_TCA_OPTIONS, init) + _lengths_anew()
    flags = nl.NLM_F_CREATE | nl.NLM_F_EXCL
    rate = rate_bps // 8
    top = htb_class(index, name, HTB_TOP, HTB_MAJOR, rate, rate, 0, quantum_bytes, burst_ns,
                    flags)  # fmt: skip
    qdisc = tc_message(nl.RTM_NEWQDISC, flags, index, HTB_MAJOR, _ROOT, 0, rest, f"htb on {name}")
    return [qdisc, top, *leaves(index, name, rate_bps, classes, quantum_bytes, burst_ns, flags)]


def leaves(index: int, name: str, rate_bps: int, classes: Sequence[LeafClass], quantum_bytes: int,
           burst_ns: int = BURST_NS, flags: int = 0) -> list[nl.Message]:  # fmt: skip
    """The leaf classes of a shaper; without flags they must exist and are changed."""
    return [
        htb_class(index, name, HTB_FIRST_LEAF + tc, HTB_TOP, _MIN_RATE_BYTES, rate_bps // 8,
                  leaf.priority, quantum_bytes * leaf.weight, burst_ns, flags)
        for tc, leaf in enumerate(classes)
    ]  # fmt: skip
