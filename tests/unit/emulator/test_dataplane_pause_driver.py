"""The pause driver: crossings become changes of gates after the reaction time, and are logged."""

from __future__ import annotations

import select
from collections.abc import Iterator
from pathlib import Path

import pytest

from emulator.dataplane.pausing import Act
from tests.fakes.fabrics import leaf_spine
from tests.fakes.pausing import PauseRig
from topologies.pause import notice_ns
from topologies.settings import PauseWatchdog, PfcRule

FABRIC = leaf_spine(2, 1, 2)
PORT, PEER = "leaf1-eth3", "spine1-eth1"
RESPONSE = 1_000
WATCHDOG = PauseWatchdog(50_000, 20_000)
RULES = [
    PfcRule(3, response_ns=RESPONSE, watchdog=WATCHDOG),
    PfcRule(4, response_ns=RESPONSE, control="follow"),
]
REACTION = notice_ns(FABRIC.link_of(FABRIC.port_named(PORT))) + RESPONSE
DILATION = 10
DELAY = REACTION * DILATION


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[PauseRig]:
    """Class 3 is paused by switches, class 4 by the controller; ten times slower."""
    one = PauseRig(FABRIC, RULES, tmp_path / "log", DILATION)
    yield one
    one.close()


def test_a_crossing_closes_and_opens_the_peers_gate(rig: PauseRig) -> None:
    """Each after the reaction time; the pausing port sends its frame at once."""
    rig.plane.cross(PORT, 100)
    rig.now_ns = 150
    rig.driver.on_crossing()
    assert rig.gates.told == [(PORT, 3, True)]
    assert rig.gates.done == []
    rig.at(100 + DELAY)
    assert rig.gates.done == [(PEER, 3, True)]
    assert rig.plane.pauses["closed"][FABRIC.port_named(PEER).index] == 1 << 3
    rig.plane.cross(PORT, 50_000)
    rig.now_ns = 50_000
    rig.driver.on_crossing()
    rig.at(50_000 + DELAY)
    assert rig.gates.done[1:] == [(PEER, 3, False)]
    assert not rig.plane.pauses["closed"].any()


def test_a_pause_frame_is_repeated_while_the_pause_lasts(rig: PauseRig) -> None:
    """One frame holds 65535 quanta, 335.5 us at 100 Gbit/s; each follows after half of it."""
    every = 335_539 // 2 * DILATION
    rig.plane.cross(PORT, 0)
    rig.driver.on_crossing()
    for number in range(1, 4):
        rig.at(number * every - 1)
        assert rig.gates.told == [(PORT, 3, True)] * number
        rig.at(number * every)
        assert rig.gates.told == [(PORT, 3, True)] * (number + 1)
    rig.plane.cross(PORT, 4 * every - 5)
    rig.now_ns = 4 * every - 5
    rig.driver.on_crossing()
    rig.at(9 * every)
    assert rig.gates.told[4:] == [(PORT, 3, False)]


def test_what_was_done_is_logged_with_its_times(rig: PauseRig) -> None:
    """When it was asked, due and done, and what the port held."""
    rig.plane.cross(PORT, 100, held=9_000)
    rig.driver.on_crossing()
    rig.at(100 + DELAY + 70)
    (record,) = rig.log()
    assert (record["act"], record["tc"]) == (Act.CLOSE, 3)
    assert FABRIC.port(int(record["port"])).name == PEER
    assert record["asked_ns"] == 100
    assert record["due_ns"] == 100 + DELAY
    assert record["done_ns"] == 100 + DELAY + 70
    assert record["held_bytes"] == 10_000
    assert len(rig.log()) == 0


def test_what_is_overdue_is_done_at_once(rig: PauseRig) -> None:
    """A crossing that is heard late closes the gate without the timer."""
    rig.plane.cross(PORT, 100)
    rig.now_ns = 100 + DELAY + 1
    rig.driver.on_crossing()
    assert rig.gates.done == [(PEER, 3, True)]


def test_it_says_what_it_waits_for(rig: PauseRig) -> None:
    """To be woken when something was crossed, and the time when something is due."""
    with select.epoll() as poll:
        calls = dict(rig.driver.wakers())
        for fd in calls:
            poll.register(fd, select.EPOLLIN)
        assert poll.poll(0) == []
        assert rig.driver.next_ns() is None
        rig.plane.cross(PORT, 0)
        (woken,) = poll.poll(0)
        calls[woken[0]]()
        assert rig.gates.done == []
        assert poll.poll(0) == []
    assert rig.driver.next_ns() == DELAY
    rig.at(DELAY)
    assert rig.gates.done == [(PEER, 3, True)]


def test_the_watchdog_drops_and_restores(rig: PauseRig) -> None:
    """The queue is discarded while the storm lasts, its gate open; then all is as before."""
    queue = FABRIC.port_named(PEER).index
    rig.plane.cross(PORT, 0)
    rig.driver.on_crossing()
    rig.at(DELAY)
    rig.at(DELAY + WATCHDOG.detect_ns * DILATION)
    assert rig.gates.done == [(PEER, 3, True), (PEER, 3, False)]
    assert rig.plane.pauses["classes"][queue, 3]["discard"] == 1
    rig.plane.cross(PORT, 900_000)
    rig.now_ns = 900_000
    rig.driver.on_crossing()
    rig.at(900_000 + DELAY)
    rig.at(900_000 + DELAY + WATCHDOG.restore_ns * DILATION)
    assert rig.plane.pauses["classes"][queue, 3]["discard"] == 0
    assert rig.log()["act"].tolist() == [Act.CLOSE, Act.STORM_DROP, Act.RESTORE]


def test_a_policy_pauses_and_resumes(rig: PauseRig) -> None:
    """On its own, after the same reaction time."""
    port = FABRIC.port_named(PORT).index
    rig.driver.wish(port, 3, paused=True)
    assert rig.gates.told == [(PORT, 3, True)]
    rig.at(DELAY)
    assert rig.driver.paused() == [(FABRIC.port_named(PEER).index, 3)]
    rig.driver.wish(port, 3, paused=False)
    rig.at(2 * DELAY)
    assert rig.gates.done == [(PEER, 3, True), (PEER, 3, False)]


def test_a_pause_for_a_time_is_in_model_time(rig: PauseRig) -> None:
    """It ends by itself."""
    rig.driver.wish(FABRIC.port_named(PORT).index, 3, paused=True, for_ns=500)
    rig.at(DELAY)
    rig.at(DELAY + 500 * DILATION - 1)
    assert rig.gates.done == [(PEER, 3, True)]
    rig.at(DELAY + 500 * DILATION)
    assert rig.gates.done[1:] == [(PEER, 3, False)]


def test_the_controllers_classes_wait_for_the_controller(rig: PauseRig) -> None:
    """It is told; the reaction to what it then asks for is counted from the crossing."""
    heard: list[tuple[int, int, bool, int, int]] = []
    rig.driver.listeners.append(lambda *crossing: heard.append(crossing))
    port = FABRIC.port_named(PORT).index
    rig.plane.cross(PORT, 100, tc=4)
    rig.driver.on_crossing()
    assert heard == [(port, 4, True, 100, 10_000)]
    rig.at(10 * DELAY)
    assert rig.gates.done == rig.gates.told == []
    rig.driver.wish(port, 4, paused=True)
    rig.at(11 * DELAY)
    (record,) = rig.log()
    assert record["asked_ns"] == 100
    assert record["due_ns"] == 11 * DELAY


def test_a_pause_frame_of_a_program_is_obeyed(rig: PauseRig) -> None:
    """For its quanta, of its classes that have gates; time 0 ends it at once."""
    rig.plane.frame(PORT, 0, 1 << 3 | 1 << 0, {3: 1_000, 0: 1_000, 4: 1_000})
    rig.driver.on_crossing()
    assert rig.gates.told == []
    rig.at(DELAY)
    assert rig.gates.done == [(PEER, 3, True)]
    quanta_ns = 5_120 * DILATION
    rig.at(quanta_ns + DELAY - 1)
    assert rig.gates.done == [(PEER, 3, True)]
    rig.at(quanta_ns + DELAY)
    assert rig.gates.done == [(PEER, 3, True), (PEER, 3, False)]
    for quanta in (0xFFFF, 0):
        rig.plane.frame(PORT, 10 * quanta_ns, 1 << 4, {4: quanta})
    rig.driver.on_crossing()
    rig.at(10 * quanta_ns + DELAY)
    assert rig.gates.done[2:] == [(PEER, 4, True), (PEER, 4, False)]


def test_a_class_that_becomes_lossy_is_resumed(rig: PauseRig) -> None:
    """Its rule is gone from the table, and its gate opens."""
    port = FABRIC.port_named(PORT).index
    rig.plane.cross(PORT, 0)
    rig.driver.on_crossing()
    rig.at(DELAY)
    rig.driver.set_rule(port, 3, None)
    rig.at(10 * DELAY)
    assert rig.gates.done == [(PEER, 3, True), (PEER, 3, False)]
    assert rig.plane.pauses["classes"][port, 3]["headroom"] == 0
    assert rig.driver.rules.get(port, 3) is None


def test_a_reaction_includes_what_the_emulation_leaves_out(tmp_path: Path) -> None:
    """The pause frame's way, the peer's response, and the time of data that does not wait."""
    from emulator.dataplane.pause_rules import PauseRules

    bare = PauseRules(FABRIC, {}, lambda _port: 0)
    late = PauseRules(FABRIC, {}, lambda port: FABRIC.link_of(port).delay_ns + 500)
    port = FABRIC.port_named(PORT).index
    assert late.reaction_ns(port, 3) - bare.reaction_ns(port, 3) == 1_500
    assert bare.reaction_ns(port, 3) == 1_007 + 2_018
