"""Who is paused and when: reaction times, reasons, order, watchdogs."""

from __future__ import annotations

import pytest

from emulator.dataplane.pausing import MMU, POLICY, Act, Order, PauseControl
from tests.fakes.fabrics import leaf_spine
from topologies.settings import PauseWatchdog

FABRIC = leaf_spine(2, 1, 2)
PORT = FABRIC.port_named("leaf1-eth3").index
PEER = FABRIC.port_named("spine1-eth1").index
OTHER = FABRIC.port_named("leaf1-eth1").index
TC, REACTION, DILATION = 3, 4, 1_000
DELAY = REACTION * DILATION
WATCHDOG = PauseWatchdog(detect_ns=100, restore_ns=50)
DETECT, RESTORE = 100 * DILATION, 50 * DILATION


def control(watchdog: PauseWatchdog | None = None) -> PauseControl:
    """Gates that react after 4 model ns, 4000 ns of wall time."""
    return PauseControl(FABRIC, lambda port, tc: REACTION, lambda port, tc: watchdog, DILATION)


def acts(orders: list[Order]) -> list[tuple[Act, int, int]]:
    """What, at which port, of which class."""
    return [(order.act, order.port, order.tc) for order in orders]


def xoff(one: PauseControl, at_ns: int, changes: int = 1, port: int = PORT) -> None:
    """A crossing by number: odd ones are XOFF."""
    one.crossed(port, TC, changes, at_ns, 77)


def test_the_peers_gate_closes_after_the_reaction() -> None:
    """Not before, and the order tells when it was asked, when it was due, what was held."""
    one = control()
    xoff(one, 1_000)
    assert one.next_ns() == 1_000 + DELAY
    assert list(one.due(1_000 + DELAY - 1)) == []
    assert list(one.due(1_000 + DELAY + 30)) == [
        Order(Act.CLOSE, PEER, TC, 1_000, 1_000 + DELAY, 77)
    ]
    assert one.is_closed(PEER, TC)
    assert not one.is_closed(PEER, 4)
    assert one.next_ns() is None


def test_xon_opens_it() -> None:
    """After the same time."""
    one = control()
    xoff(one, 0)
    xoff(one, 500, changes=2)
    assert acts(list(one.due(DELAY))) == [(Act.CLOSE, PEER, TC)]
    assert acts(list(one.due(DELAY + 500))) == [(Act.OPEN, PEER, TC)]
    assert one.paused() == []


def test_crossings_that_are_told_in_the_wrong_order() -> None:
    """The later one counts, whichever is heard first."""
    one = control()
    xoff(one, 500, changes=2)
    xoff(one, 0, changes=1)
    assert list(one.due(10 * DELAY)) == []
    xoff(one, 20_000, changes=3)
    assert acts(list(one.due(20_000 + DELAY))) == [(Act.CLOSE, PEER, TC)]


def test_two_reasons_for_one_gate() -> None:
    """It opens when neither the MMU nor a policy wants the pause any more, and closes once."""
    one = control()
    xoff(one, 0)
    one.wish(PORT, TC, POLICY, 100, paused=True)
    assert acts(list(one.due(DELAY + 100))) == [(Act.CLOSE, PEER, TC)]
    xoff(one, 20_000, changes=2)
    assert list(one.due(20_000 + DELAY)) == []
    one.wish(PORT, TC, POLICY, 30_000, paused=False)
    assert acts(list(one.due(30_000 + DELAY))) == [(Act.OPEN, PEER, TC)]


def test_wishes_of_different_ports_and_classes_do_not_mix() -> None:
    """Each has its own gate, and orders come in the order of their time."""
    one = control()
    one.crossed(PORT, 4, 1, 50, 0)
    xoff(one, 0)
    xoff(one, 20, port=OTHER)
    peer = FABRIC.port(OTHER).peer
    assert acts(list(one.due(10 * DELAY))) == [
        (Act.CLOSE, PEER, 3), (Act.CLOSE, peer, 3), (Act.CLOSE, PEER, 4),
    ]  # fmt: skip
    assert one.paused() == sorted([(PEER, 3), (PEER, 4), (peer, 3)])


def test_a_pause_of_a_policy_can_end_by_itself() -> None:
    """After its time, unless it was asked for again."""
    one = control()
    one.wish(PORT, TC, POLICY, 0, paused=True, until_ns=1_000)
    assert acts(list(one.due(1_000 + DELAY))) == [(Act.CLOSE, PEER, TC), (Act.OPEN, PEER, TC)]
    one.wish(PORT, TC, POLICY, 10_000, paused=True, until_ns=11_000)
    one.wish(PORT, TC, POLICY, 10_500, paused=True, until_ns=12_000)
    assert acts(list(one.due(11_000 + DELAY))) == [(Act.CLOSE, PEER, TC)]
    assert acts(list(one.due(12_000 + DELAY))) == [(Act.OPEN, PEER, TC)]


def test_a_shorter_reaction_does_not_overtake() -> None:
    """When the response is changed between XOFF and XON, the gate still ends up open."""
    times = [40, 1]
    one = PauseControl(FABRIC, lambda port, tc: times.pop(0), lambda port, tc: None, DILATION)
    xoff(one, 0)
    xoff(one, 10, changes=2)
    assert acts(list(one.due(40 * DILATION))) == [(Act.CLOSE, PEER, TC), (Act.OPEN, PEER, TC)]


def test_a_wish_that_changes_nothing_is_no_order() -> None:
    """A resume of what was not paused, and the same pause twice."""
    one = control()
    one.wish(PORT, TC, POLICY, 0, paused=False)
    assert list(one.due(DELAY)) == []
    one.wish(PORT, TC, MMU, 10_000, paused=True)
    one.wish(PORT, TC, MMU, 10_001, paused=True)
    assert acts(list(one.due(99_999))) == [(Act.CLOSE, PEER, TC)]


@pytest.mark.parametrize(
    ("action", "act"), [("drop", Act.STORM_DROP), ("forward", Act.STORM_FORWARD)]
)
def test_the_watchdog_ends_a_pause_that_does_not_end(action: str, act: Act) -> None:
    """After the detection time without a break; it restores after a calm of the restore time."""
    one = control(PauseWatchdog(100, 50, action))
    xoff(one, 0)
    assert acts(list(one.due(DELAY))) == [(Act.CLOSE, PEER, TC)]
    assert list(one.due(DELAY + DETECT - 1)) == []
    (storm,) = one.due(DELAY + DETECT)
    assert (storm.act, storm.asked_ns, storm.due_ns) == (act, DELAY, DELAY + DETECT)
    assert not one.is_closed(PEER, TC)
    xoff(one, 300_000, changes=2)
    calm = 300_000 + DELAY
    assert list(one.due(calm)) == []
    assert list(one.due(calm + RESTORE - 1)) == []
    assert acts(list(one.due(calm + RESTORE))) == [(Act.RESTORE, PEER, TC)]
    xoff(one, 900_000, changes=3)
    assert acts(list(one.due(900_000 + DELAY))) == [(Act.CLOSE, PEER, TC)]


def test_pauses_with_breaks_are_no_storm() -> None:
    """Each break starts the detection anew."""
    one = control(WATCHDOG)
    for number in range(10):
        xoff(one, number * DETECT, changes=2 * number + 1)
        xoff(one, number * DETECT + DETECT - 10, changes=2 * number + 2)
    found = acts(list(one.due(20 * DETECT)))
    assert {act for act, _, _ in found} == {Act.CLOSE, Act.OPEN}
    assert len(found) == 20


def test_a_storm_that_flares_up_again_is_not_over() -> None:
    """A pause within the restore time keeps the gate in its storm."""
    one = control(WATCHDOG)
    xoff(one, 0)
    assert len([*one.due(DELAY), *one.due(DELAY + DETECT)]) == 2
    xoff(one, 200_000, changes=2)
    xoff(one, 200_000 + RESTORE // 2, changes=3)
    assert list(one.due(400_000)) == []
    xoff(one, 400_000, changes=4)
    assert list(one.due(400_000 + DELAY)) == []
    assert acts(list(one.due(400_000 + DELAY + RESTORE))) == [(Act.RESTORE, PEER, TC)]


def test_without_a_watchdog_a_pause_lasts() -> None:
    """Nothing is planned."""
    one = control()
    xoff(one, 0)
    list(one.due(DELAY))
    assert one.next_ns() is None
