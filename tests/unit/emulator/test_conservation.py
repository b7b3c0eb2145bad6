"""Where packets went: every sum, and every place at which one can be lost."""

from __future__ import annotations

from emulator.conservation import balance, by_class
from tests.fakes.fabrics import leaf_spine
from tests.fakes.plane import FakePlane

FABRIC = leaf_spine(2, 2, 2)
WAY = ("h1-eth1", "leaf1-eth3", "spine1-eth2", "leaf2-eth1")
BACK = ("h3-eth1", "leaf2-eth3", "spine1-eth1", "leaf1-eth1")


def plane() -> FakePlane:
    """A data plane that has carried 100 packets there and 40 back."""
    one = FakePlane(FABRIC)
    one.carry(WAY, 100)
    one.carry(BACK, 40, tc=6)
    return one


def test_what_was_sent_was_delivered() -> None:
    """Nothing dropped, nothing left, nothing missing."""
    ledger = balance(FABRIC, plane().states)
    assert (ledger.sent, ledger.delivered) == (140, 140)
    assert (ledger.dropped, ledger.queued, ledger.overrun, ledger.marked) == (0, 0, 0, 0)
    assert ledger.unaccounted == 0
    assert ledger.lost_in_switch == {}
    assert ledger.dropped_at == {}


def test_drops_are_accounted_for_by_place_and_class() -> None:
    """The MMU of a switch port refused them, and says so."""
    one = plane()
    one.carry(WAY[:1], 9)
    one.drop(WAY[1], 7)
    one.drop(WAY[1], 2, tc=0)
    ledger = balance(FABRIC, one.states)
    assert (ledger.dropped, ledger.unaccounted) == (9, 0)
    assert ledger.dropped_at == {("leaf1-eth3", 3): 7, ("leaf1-eth3", 0): 2}


def test_what_still_waits_is_accounted_for() -> None:
    """In a host's queue as well as in a switch's."""
    one = plane()
    one.enter(WAY[0], 3)
    one.carry(WAY[:1], 5)
    one.enter(WAY[1], 5)
    ledger = balance(FABRIC, one.states)
    assert (ledger.sent, ledger.queued, ledger.unaccounted) == (148, 8, 0)


def test_what_was_cut_is_delivered_as_headers_or_dropped() -> None:
    """It leaves one class and enters another; each cut comes to an end that is counted."""
    one = plane()
    one.carry(WAY[:1], 10)
    one.cut(WAY[1], 10)
    one.leave(WAY[1], 10, tc=5, length=64)
    one.drop(WAY[2], 3, tc=5, length=64)
    one.add(WAY[2], tc=5, trim_drops=3)
    one.carry(WAY[2:], 7, tc=5)
    one.states["trimmed_packets"][FABRIC.port_named("h3-eth1").index] = 7
    ledger = balance(FABRIC, one.states)
    assert (ledger.sent, ledger.delivered, ledger.trimmed, ledger.dropped) == (150, 140, 7, 3)
    assert (ledger.cut, ledger.cut_dropped, ledger.lost_headers) == (10, 3, 0)
    assert ledger.unaccounted == 0
    assert ledger.dropped_at == {("spine1-eth2", 5): 3}


def test_headers_that_come_to_no_end_are_missed() -> None:
    """Also where the packets themselves add up: whole ones came where cut ones should have."""
    one = plane()
    one.carry(WAY[:1], 4)
    one.cut(WAY[1], 4)
    one.leave(WAY[1], 4, tc=5, length=64)
    one.carry(WAY[2:], 4, tc=5)
    host = FABRIC.port_named("h3-eth1").index
    one.states["trimmed_packets"][host] = 3
    assert (balance(FABRIC, one.states).lost_headers, balance(FABRIC, one.states).unaccounted) == (
        1,
        1,
    )
    one.states["trimmed_packets"][host] = 6
    assert balance(FABRIC, one.states).unaccounted == 2


def test_headers_that_still_wait_are_not_missed() -> None:
    """They are among what is queued, which makes a run invalid by itself."""
    one = plane()
    one.carry(WAY[:1], 4)
    one.cut(WAY[1], 4)
    ledger = balance(FABRIC, one.states)
    assert (ledger.queued, ledger.lost_headers, ledger.unaccounted) == (4, 0, 0)


def test_a_packet_that_a_switch_swallows_is_missed_there() -> None:
    """It came in and reached none of its ports: no rule, or an emulation that loses packets."""
    one = plane()
    one.carry(WAY[:2], 4)
    ledger = balance(FABRIC, one.states)
    assert ledger.unaccounted == 4
    assert ledger.lost_in_switch == {"spine1": 4}


def test_losses_and_copies_do_not_cancel() -> None:
    """One switch that loses and one that duplicates are both named, though the sum is 0."""
    one = plane()
    one.carry(WAY[:1], 3)
    one.carry(WAY[2:], 3)
    ledger = balance(FABRIC, one.states)
    assert ledger.sent == ledger.delivered
    assert ledger.lost_in_switch == {"leaf1": 3, "spine1": -3}
    assert ledger.unaccounted == 6


def test_the_sum_over_switches_is_what_is_unaccounted_for() -> None:
    """Both ways of counting agree when packets are only lost."""
    one = plane()
    one.carry(WAY[:1], 11)
    one.drop(WAY[1], 2)
    one.enter(WAY[1], 3)
    one.leave(WAY[1], 1)
    ledger = balance(FABRIC, one.states)
    assert ledger.unaccounted == 7
    assert ledger.sent - ledger.delivered - ledger.dropped - ledger.queued == 7


def test_frames_that_found_the_receive_ring_full_are_counted() -> None:
    """They were delivered to the host, which could not take them."""
    one = plane()
    one.states["overruns"][FABRIC.port_named("h3-eth1").index] = 6
    ledger = balance(FABRIC, one.states)
    assert (ledger.overrun, ledger.unaccounted) == (6, 0)


def test_classes_that_were_used_are_summed_over_all_ports() -> None:
    """A class counts its packets once per queue; classes without packets are left out."""
    one = plane()
    one.drop("leaf1-eth3", 5)
    one.add("leaf1-eth3", mark_packets=8)
    one.drop("leaf1-eth3", 1, tc=0)
    one.add("leaf1-eth3", trim_packets=3)
    one.add("leaf1-eth4", tc=2, trim_packets=1)
    assert by_class(one.states) == [
        {"tc": 0, "sent": 0, "dropped": 1, "trimmed": 0, "marked": 0},
        {"tc": 2, "sent": 0, "dropped": 0, "trimmed": 1, "marked": 0},
        {"tc": 3, "sent": 400, "dropped": 5, "trimmed": 3, "marked": 8},
        {"tc": 6, "sent": 160, "dropped": 0, "trimmed": 0, "marked": 0},
    ]
    assert balance(FABRIC, one.states).marked == 8
