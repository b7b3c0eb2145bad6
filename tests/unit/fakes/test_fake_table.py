"""The fake flow table does what OpenFlow says, and refuses what OpenFlow refuses."""

from __future__ import annotations

import pytest

from controller.core.messages import (
    ALL_TABLES,
    Barrier,
    Command,
    Field,
    FlowMod,
    Match,
    Output,
)
from tests.fakes.of_table import FakeTable, OpenFlowError, within

IP = 0x0800
NET = 0x0A010200
UDP_PACKET = {"eth_type": IP, "ip_proto": 17, "ipv4_dst": NET | 5, "udp_src": 0xC005}


@pytest.fixture
def table() -> FakeTable:
    """An empty table of a switch with ports 1 to 4."""
    return FakeTable(frozenset({1, 2, 3, 4}))


def leaf_match(mask: int = 0xFFFFFF00) -> Match:
    """All IP packets into a prefix."""
    return Match.of(eth_type=IP, ipv4_dst=(NET, mask))


def udp_match(value: int, mask: int = 0x3F) -> Match:
    """UDP packets into a prefix whose source port has these bits."""
    return Match.of(eth_type=IP, ip_proto=17, ipv4_dst=(NET, 0xFFFFFF00), udp_src=(value, mask))


def add(match: Match, port: int | None, priority: int = 10, cookie: int = 1) -> FlowMod:
    """An ADD with one output, or a drop."""
    actions = () if port is None else (Output(port),)
    return FlowMod(Command.ADD, match, priority, actions, cookie)


def test_highest_priority_wins(table: FakeTable) -> None:
    """Of two rules that match, the one of higher priority decides."""
    table.apply_all([add(leaf_match(), 1, 10), add(udp_match(5), 2, 20)])
    assert table.output(UDP_PACKET) == 2
    assert table.output(UDP_PACKET | {"udp_src": 0xC006}) == 1


def test_table_miss_drops(table: FakeTable) -> None:
    """A packet that no rule matches has no port."""
    table.apply(add(leaf_match(), 1))
    assert table.output(UDP_PACKET | {"ipv4_dst": 0x0A010305}) is None


def test_rule_without_actions_drops(table: FakeTable) -> None:
    """A rule without actions wins over a lower one that forwards."""
    table.apply_all([add(leaf_match(), 1, 10), add(udp_match(5), None, 20)])
    assert table.output(UDP_PACKET) is None


def test_never_back_through_the_port_it_came_in_by(table: FakeTable) -> None:
    """An output to the ingress port sends nothing."""
    table.apply(add(leaf_match(), 1))
    assert (table.output(UDP_PACKET, 1), table.output(UDP_PACKET, 2)) == (None, 1)


def test_packet_without_the_field_does_not_match(table: FakeTable) -> None:
    """An ICMP packet has no UDP port, not port 0."""
    table.apply(add(udp_match(0), 1))
    icmp = {"eth_type": IP, "ip_proto": 1, "ipv4_dst": NET | 5}
    assert table.output(icmp) is None


def test_add_with_equal_key_replaces(table: FakeTable) -> None:
    """Adding with the same match and priority leaves one rule, with the new cookie."""
    table.apply_all([add(leaf_match(), 1, cookie=1), add(leaf_match(), 2, cookie=2)])
    assert [(entry.ports, entry.cookie) for entry in table.entries] == [((2,), 2)]
    assert table.output(UDP_PACKET) == 2


def test_modify_strict_changes_only_what_is_there(table: FakeTable) -> None:
    """MODIFY_STRICT adds nothing, and keeps the cookie of what it changes."""
    modify = FlowMod(Command.MODIFY_STRICT, leaf_match(), 10, (Output(3),), cookie=9)
    table.apply(modify)
    assert len(table) == 0
    table.apply_all([add(leaf_match(), 1), modify])
    assert [(entry.ports, entry.cookie) for entry in table.entries] == [((3,), 1)]


def test_delete_by_cookie_bits(table: FakeTable) -> None:
    """DELETE compares only the cookie bits of its mask."""
    table.apply_all([add(udp_match(value), 1, cookie=value) for value in range(4)])
    table.apply(FlowMod(Command.DELETE, cookie=2, cookie_mask=2, table=ALL_TABLES))
    assert sorted(entry.cookie for entry in table.entries) == [0, 1]


def test_delete_within_a_match(table: FakeTable) -> None:
    """DELETE removes the rules that are as specific as its match or more, no others."""
    table.apply_all(
        [add(Match.of(eth_type=IP), 1, 5), add(leaf_match(), 1, 10), add(udp_match(5), 2, 20)]
    )
    table.apply(FlowMod(Command.DELETE, leaf_match(), table=ALL_TABLES))
    assert [entry.priority for entry in table.entries] == [5]


def test_delete_strict_removes_one(table: FakeTable) -> None:
    """DELETE_STRICT needs the same match and priority; the other rule answers from then on."""
    table.apply_all([add(leaf_match(), 1, 10), add(leaf_match(), 2, 20)])
    table.apply(FlowMod(Command.DELETE_STRICT, leaf_match(), 20))
    assert table.output(UDP_PACKET) == 1
    table.apply(FlowMod(Command.DELETE_STRICT, leaf_match(), 30))
    assert len(table) == 1


def test_barriers_are_answered_in_order(table: FakeTable) -> None:
    """Each barrier's token is noted."""
    table.apply_all([Barrier(3), Barrier(1)])
    assert table.answered == [3, 1]


@pytest.mark.parametrize(
    ("message", "name"),
    [
        (add(Match.of(ipv4_dst=NET), 1), "BAD_PREREQ"),
        (add(Match.of(eth_type=0x86DD, ipv4_dst=NET), 1), "BAD_PREREQ"),
        (add(Match.of(eth_type=IP, udp_src=4), 1), "BAD_PREREQ"),
        (add(Match.of(eth_type=IP, ip_proto=6, udp_src=4), 1), "BAD_PREREQ"),
        (add(Match.of(eth_type=IP, ipv4_dst=(NET | 1, 0xFFFFFF00)), 1), "BAD_WILDCARDS"),
        (add(Match((Field("eth_type", 0, 0),)), 1), "BAD_MASK"),
        (add(Match((Field("vlan_vid", 1, 1),)), 1), "BAD_FIELD"),
        (add(Match((Field("eth_type", IP, 0xFFFF),) * 2), 1), "DUP_FIELD"),
        (add(leaf_match(), 5), "BAD_OUT_PORT"),
        (FlowMod(Command.ADD, leaf_match(), table=1), "BAD_TABLE_ID"),
        (FlowMod(Command.DELETE_STRICT, leaf_match(), table=ALL_TABLES), "BAD_TABLE_ID"),
        (FlowMod(Command.ADD, leaf_match(), priority=65536), "16 bits"),
        (FlowMod(Command.ADD, leaf_match(), actions=(Output(1), Output(2))), "more than one"),
    ],
)
def test_refuses_what_a_switch_refuses(table: FakeTable, message: FlowMod, name: str) -> None:
    """Protocol errors raise, with the specification's name for them."""
    with pytest.raises(OpenFlowError, match=name):
        table.apply(message)
    assert len(table) == 0


def test_refuses_when_full(table: FakeTable) -> None:
    """A rule that does not fit is an error; replacing one is not."""
    table.capacity = 1
    table.apply(add(leaf_match(), 1))
    table.apply(add(leaf_match(), 2))
    with pytest.raises(OpenFlowError, match="TABLE_FULL"):
        table.apply(add(udp_match(1), 1))


@pytest.mark.parametrize(
    ("first", "second", "overlap"),
    [
        (udp_match(1), udp_match(2), False),
        (udp_match(1), leaf_match(), True),
        (udp_match(1), udp_match(1, 0x0F), True),
        (udp_match(1), udp_match(2, 0x0F), False),
        (leaf_match(), Match.of(eth_type=IP, ipv4_dst=NET | 3), True),
        (leaf_match(), Match.of(eth_type=IP, ipv4_dst=NET | 0x103), False),
        (leaf_match(), Match.of(eth_type=0x0806), False),
        (leaf_match(), Match(), True),
    ],
)
def test_overlap_in_one_priority(
    table: FakeTable, first: Match, second: Match, overlap: bool
) -> None:
    """Two rules of one priority that can match one packet are found at the next barrier."""
    table.apply_all([add(first, 1), add(second, 2)])
    if overlap:
        with pytest.raises(OpenFlowError, match="OVERLAP"):
            table.apply(Barrier(1))
    else:
        table.apply(Barrier(1))


def test_overlap_in_two_priorities_is_fine(table: FakeTable) -> None:
    """Priorities order overlapping rules."""
    table.apply_all([add(leaf_match(), 1, 10), add(udp_match(1), 2, 20), Barrier(1)])
    assert table.answered == [1]


def test_within() -> None:
    """A match is within a filter when it is at least as specific and agrees."""
    assert within(udp_match(1), leaf_match())
    assert within(udp_match(1), Match())
    assert not within(leaf_match(), udp_match(1))
    assert not within(udp_match(1), Match.of(eth_type=IP, ip_proto=6))
