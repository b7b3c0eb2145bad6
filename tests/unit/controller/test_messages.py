"""Our messages say what they mean, and can be read in a log."""

from __future__ import annotations

import pytest

from controller.core.messages import (
    Command,
    Field,
    FlowMod,
    Match,
    Output,
    Rule,
    full_mask,
)

UDP = Match.of(eth_type=0x800, ip_proto=17, udp_src=(5, 0x3F))


def test_match_is_sorted_and_complete() -> None:
    """Fields are in the order of their names, exact ones with a full mask: equal means equal."""
    assert UDP.fields == (
        Field("eth_type", 0x800, 0xFFFF), Field("ip_proto", 17, 0xFF), Field("udp_src", 5, 0x3F),
    )  # fmt: skip
    assert Match.of(udp_src=(5, 0x3F), ip_proto=17, eth_type=0x800) == UDP


def test_unknown_field_is_refused() -> None:
    """A field whose width is not known cannot be matched exactly."""
    with pytest.raises(KeyError):
        full_mask("vlan_vid")


@pytest.mark.parametrize(
    ("packet", "matches"),
    [
        ({"eth_type": 0x800, "ip_proto": 17, "udp_src": 0xC005}, True),
        ({"eth_type": 0x800, "ip_proto": 17, "udp_src": 0xC006}, False),
        ({"eth_type": 0x800, "ip_proto": 17}, False),
        ({"eth_type": 0x806, "ip_proto": 17, "udp_src": 0xC005}, False),
    ],
)
def test_accepts(packet: dict[str, int], matches: bool) -> None:
    """A packet matches when every field is there and agrees in the bits of the mask."""
    assert UDP.accepts(packet) is matches


def test_rules_with_equal_keys_replace_each_other() -> None:
    """The key is table, priority and match; the actions are not part of it."""
    one, other = Rule(10, UDP, (Output(1),)), Rule(10, UDP, (Output(2),))
    assert one.key == other.key != Rule(11, UDP).key


def test_text_of_messages() -> None:
    """A log line shows command, rule and cookie."""
    shown = str(FlowMod.add(Rule(10, UDP, (Output(3),)), 7))
    assert shown == (
        "ADD table=0,priority=10,eth_type=0x800,ip_proto=0x11,udp_src=0x5/0x3f -> output:3 "
        "(cookie 0x7/0x0)"
    )
    assert str(Rule(0, Match())) == "table=0,priority=0,any -> drop"


def test_remove_is_strict_and_ignores_the_cookie() -> None:
    """Removing names one rule, of whatever generation."""
    rule = Rule(10, UDP, (Output(3),))
    assert FlowMod.remove(rule.key) == FlowMod(Command.DELETE_STRICT, UDP, 10)
