"""Sizes and times of pause: response, headroom, and how rules are settled for ports."""

from __future__ import annotations

from typing import Any

import pytest

from topologies.errors import SpecError, UnknownNameError
from topologies.files import pfc_rule_from_dict, rule_to_dict
from topologies.model import Link
from topologies.pause import (
    headroom_bytes,
    notice_ns,
    pause_ns,
    reserved_bytes,
    response_ns,
    settled,
)
from topologies.registry import build_fabric
from topologies.settings import PauseWatchdog, PfcRule

GBIT = 1_000_000_000
FABRIC = build_fabric({"kind": "leaf-spine", "leaves": 2, "spines": 1, "hosts_per_leaf": 2})


def link(rate_bps: int, delay_ns: int) -> Link:
    """A cable."""
    return Link(0, "h1", "leaf1", rate_bps, delay_ns)


@pytest.mark.parametrize(
    ("rate_bps", "quanta"),
    [
        (100_000_000, 1), (GBIT, 2), (10 * GBIT, 67), (25 * GBIT, 80), (40 * GBIT, 118),
        (50 * GBIT, 147), (100 * GBIT, 394), (200 * GBIT, 453), (400 * GBIT, 905),
        (800 * GBIT, 905), (1600 * GBIT, 905), (33 * GBIT, 118), (1_000, 1),
    ],
)  # fmt: skip
def test_response_by_speed(rate_bps: int, quanta: int) -> None:
    """The published number of quanta of 512 bit times; between two speeds that of the faster."""
    assert response_ns(rate_bps) - 1 < quanta * 512e9 / rate_bps <= response_ns(rate_bps)


def test_response_at_100g_is_two_microseconds() -> None:
    """394 quanta of 5.12 ns are 2017.28 ns, 25,216 bytes of line."""
    assert response_ns(100 * GBIT) == 2018


def test_headroom_of_a_short_cable() -> None:
    """5 m at 100 Gbit/s, MTU 1500: 2 x 25 ns and 2018 ns of line, two frames, the pause frame."""
    assert headroom_bytes(link(100 * GBIT, 25), 1500, 2018) == 25_850 + 2 * 1518 + 64


def test_headroom_grows_with_cable_and_pipeline() -> None:
    """Each ns of cable counts twice, each ns of pipeline once; 12.5 bytes at 100 Gbit/s."""
    bare = headroom_bytes(link(100 * GBIT, 0), 1500, 0)
    assert headroom_bytes(link(100 * GBIT, 1_000), 1500, 0) == bare + 25_000
    assert headroom_bytes(link(100 * GBIT, 0), 1500, 0, 1_000) == bare + 12_500


def test_notice_is_the_cable_and_the_frame() -> None:
    """84 bytes of line time at 100 Gbit/s are 6.72 ns."""
    assert notice_ns(link(100 * GBIT, 500)) == 507


def test_a_pause_frame_holds_at_most_65535_quanta() -> None:
    """335.5 us at 100 Gbit/s."""
    assert pause_ns(0xFFFF, 100 * GBIT) == 335_539
    assert pause_ns(1, 100 * GBIT) == 5


def test_settled_rules_have_all_numbers() -> None:
    """Every switch port has a rule of its own, in port order, with headroom by its link."""
    found = settled([PfcRule(3)], FABRIC)
    assert [FABRIC.port(index).name for index in found] == sorted(
        (port.name for port in FABRIC.ports if FABRIC.by_name[port.node].is_switch),
        key=lambda name: FABRIC.port_named(name).index,
    )
    near, far = found[2][3], found[FABRIC.port_named("spine1-eth1").index][3]
    assert (near.ports, far.ports) == ("leaf1-eth1", "spine1-eth1")
    assert near.response_ns == 2018
    assert near.xon_offset_bytes == 2 * 4218
    assert near.headroom_bytes == 25_225 + 12_500 + 2 * 4218 + 64
    assert far.headroom_bytes == near.headroom_bytes + 12_500


def test_given_numbers_stay() -> None:
    """Nothing that the user has written is computed anew."""
    rule = PfcRule(3, None, 9_000, 1_000, 70_000, 5_000, ports="leaf1-eth1")
    assert settled([rule], FABRIC) == {2: {3: rule}}


def test_the_automatic_offset_does_not_put_xon_below_zero() -> None:
    """With an XOFF of less than two frames, XON is an empty queue."""
    rule = settled([PfcRule(3, None, 5_000)], FABRIC)[2][3]
    assert rule.xon_offset_bytes == 5_000


def test_headroom_is_summed_per_switch() -> None:
    """All ports and classes of a switch; a switch without rules reserves nothing."""
    rules = [PfcRule(tc, headroom_bytes=1_000, ports="leaf1") for tc in (3, 4)]
    found = reserved_bytes(settled(rules, FABRIC), FABRIC)
    assert found == {"leaf1": 6_000, "leaf2": 0, "spine1": 0}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"tc": 8}, "tc: 8 must be 0 to 7"),
        ({"alpha": None}, "xoff_bytes: None must be given exactly when alpha is not"),
        ({"xoff_bytes": 1}, "xoff_bytes: 1 must be given exactly when alpha is not"),
        ({"alpha": 0}, "alpha: 0 must be a finite number above 0"),
        ({"alpha": None, "xoff_bytes": 0}, "xoff_bytes: 0 must be at least 1"),
        ({"alpha": None, "xoff_bytes": 5, "xon_offset_bytes": 6}, "6 puts XON below 0: XOFF is 5"),
        ({"headroom_bytes": 0}, "headroom_bytes: 0 must be at least 1"),
        ({"response_ns": -1}, "response_ns: -1 must be at least 0"),
        ({"xon_offset_bytes": -1}, "xon_offset_bytes: -1 must be at least 0"),
    ],
)
def test_bad_pause_rules(fields: dict[str, Any], message: str) -> None:
    """Each impossible value is an error that names the field."""
    with pytest.raises(SpecError, match=message):
        PfcRule(**({"tc": 3} | fields))


@pytest.mark.parametrize("fields", [(0, 1, "drop"), (1, 0, "drop")])
def test_watchdog_times_are_positive(fields: tuple[int, int, str]) -> None:
    """Neither detection nor restoration can take no time."""
    with pytest.raises(SpecError, match="must be at least 1"):
        PauseWatchdog(*fields)


def test_unknown_watchdog_action() -> None:
    """The known ones are listed."""
    with pytest.raises(UnknownNameError, match="known: drop, forward"):
        PauseWatchdog(1, 1, "alert")


@pytest.mark.parametrize(
    "rule",
    [
        PfcRule(3),
        PfcRule(4, None, 9_000, 1_000, 70_000, 5_000, PauseWatchdog(1, 2, "forward"), "leaf1"),
    ],
)
def test_rules_survive_being_written_down(rule: PfcRule) -> None:
    """As a mapping and back nothing changes."""
    assert pfc_rule_from_dict(rule_to_dict(rule)) == rule


def test_a_written_rule_is_read_strictly() -> None:
    """An unknown key and a wrong type are errors with their place."""
    raw = rule_to_dict(PfcRule(3))
    with pytest.raises(SpecError, match=r"^pfc\.colour: 'colour' is not a known key"):
        pfc_rule_from_dict({**raw, "colour": 1})
    with pytest.raises(SpecError, match=r"^pfc\.headroom_bytes: '1' must be a whole number"):
        pfc_rule_from_dict({**raw, "headroom_bytes": "1"})
