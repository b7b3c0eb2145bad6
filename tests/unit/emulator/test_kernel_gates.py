"""Gates as netlink messages: what the kernel is told to close and to open one."""

from __future__ import annotations

import struct

import pytest

from emulator.kernel import gates, netlink, queues
from tests.fakes.netlink import Parsed, attributes, parse

TICK_NS = 64


def parms(parsed: Parsed) -> tuple[int, ...]:
    """struct tc_tbf_qopt: cell_log, link layer, overhead, align, mpu, rate, limit, buffer, mtu."""
    options = attributes(parsed.attributes[2])
    raw = options[1]
    return (*struct.unpack("=BBHhHI", raw[:12]), *struct.unpack("=III", raw[24:36]))


def rate_of(parsed: Parsed) -> int:
    """Bytes/s."""
    options = attributes(parsed.attributes[2])
    return int(struct.unpack("=Q", options[4])[0]) if 4 in options else parms(parsed)[5]


@pytest.mark.parametrize("tc", range(8))
def test_every_class_has_a_gate_of_its_own(tc: int) -> None:
    """It lies below the leaf of the class, under a handle that no other class has."""
    (made,) = gates.gate(5, "x", tc)
    changed = gates.change(5, "x", tc, closed=True)
    assert parse(made).flags & netlink.NLM_F_CREATE
    assert not parse(changed).flags & netlink.NLM_F_CREATE
    for message in (made, changed):
        parsed = parse(message)
        _, _, index, handle, parent, _ = struct.unpack("=BxHiIII", parsed.fixed)
        assert (index, handle, parent) == (5, (0x100 + tc) << 16, queues.HTB_FIRST_LEAF + tc)
        assert parsed.attributes[1] == b"tbf\0"


def test_open_is_faster_than_any_port() -> None:
    """8 Tbit/s, and a burst that takes any frame."""
    parsed = parse(gates.change(5, "x", 3, closed=False))
    _, layer, overhead, _, charged, rate, limit, burst, _ = parms(parsed)
    assert (layer, overhead, charged, rate) == (1, 0, 0, 0xFFFFFFFF)
    assert rate_of(parsed) * 8 == 8_000_000_000_000
    assert rate_of(parsed) * burst * TICK_NS // 10**9 >= gates.MAX_FRAME_BYTES
    assert limit == 0x7FFFFFFF


def test_closed_charges_more_than_the_bucket_holds_and_accepts_all_frames() -> None:
    """The kernel takes frames up to burst x rate, and charges each as the longest there is."""
    parsed = parse(gates.change(5, "x", 3, closed=True))
    charged, burst_ns, rate = parms(parsed)[4], parms(parsed)[7] * TICK_NS, rate_of(parsed)
    assert rate * burst_ns // 10**9 == gates.MAX_FRAME_BYTES
    assert charged * 10**9 // rate > burst_ns
    assert 4 not in attributes(parsed.attributes[2])


def test_the_leaf_for_kicks_takes_nothing() -> None:
    """A class of its own whose queue has room for no packet."""
    leaf, full = (parse(message) for message in gates.nowhere(5, "x"))
    assert struct.unpack("=BxHiIII", leaf.fixed)[3:5] == (queues.HTB_NOWHERE, queues.HTB_TOP)
    assert struct.unpack("=BxHiIII", full.fixed)[4] == queues.HTB_NOWHERE
    assert full.attributes == {1: b"pfifo\0", 2: bytes(4)}


def test_a_change_can_go_unanswered() -> None:
    """The same bytes without the flag that asks for an answer."""
    message = gates.change(5, "x", 3, closed=True)
    data = netlink.unanswered(message)
    assert len(data) == len(message.data)
    assert data[:6] + data[8:] == message.data[:6] + message.data[8:]
    assert struct.unpack_from("=H", data, 6)[0] == netlink.NLM_F_REQUEST
