"""Slow receivers: what the program is told, and when a level is down to XON."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from emulator.dataplane import layout
from emulator.dataplane.receivers import Receivers
from emulator.spec.receivers import ReceiverSpec
from tests.fakes.fabrics import leaf_spine
from tests.fakes.pausing import PauseRig
from tests.fakes.plane import FakePlane
from topologies.settings import PfcRule

FABRIC = leaf_spine(2, 1, 2)
PORT = FABRIC.port_named("h3-eth1").index
LEAF = "leaf2-eth1"
DILATION = 10.0
SLOW = ReceiverSpec("h3", 8_192_000_000, 1_000_000)
NS_PER_KIB = 10_000


def slow(spec: ReceiverSpec = SLOW) -> Receivers:
    """Receivers of a fabric with one slow host, which has begun at wall ns 1000."""
    one = Receivers(FABRIC, FakePlane(FABRIC).configs)
    one.apply([spec], (3, 5), DILATION)
    one.begin(1_000, DILATION)
    return one


def fill(one: Receivers, above_xon: int, at_ns: int, tc: int = 3) -> None:
    """So much lies in the buffer above XON at a time, and XOFF was crossed."""
    level = one.levels[PORT : PORT + 1, tc]
    level["bytes"], level["time_ns"] = int(one.configs["xon"][PORT]) + above_xon, at_ns
    level["changes"] = 1


def test_the_program_is_told_in_emulated_units() -> None:
    """1 KiB takes ten times as long as in the target; the lossless classes are bits."""
    plane = FakePlane(FABRIC)
    one = Receivers(FABRIC, plane.configs)
    one.apply([SLOW], (3, 5), DILATION)
    entry = one.configs[PORT]
    link = FABRIC.links[2]
    assert entry["ns_per_kib"] == NS_PER_KIB
    assert entry["xoff"] == SLOW.xoff_bytes(link, FABRIC.mtu_bytes)
    assert entry["xon"] == SLOW.xon_bytes(link, FABRIC.mtu_bytes)
    assert entry["classes"] == 1 << 3 | 1 << 5
    assert plane.configs["flags"][PORT] == layout.FLAG_RECEIVER
    assert [port.name for port in FABRIC.ports if one.is_slow(port.index)] == ["h3-eth1"]


def test_a_receiver_is_fast_before_it_begins() -> None:
    """So that the preparation of a run is not slowed down."""
    one = Receivers(FABRIC, FakePlane(FABRIC).configs)
    one.apply([SLOW], (3,), DILATION)
    assert one.configs["from_ns"][PORT] == one.configs["until_ns"][PORT] == 2**64 - 1
    one.begin(1_000, DILATION)
    assert one.configs["from_ns"][PORT] == 1_000
    assert one.configs["until_ns"][PORT] == 2**64 - 1


def test_the_time_of_a_slow_spell() -> None:
    """In wall time, from the run's start."""
    one = slow(ReceiverSpec("h3", 0, 1_000_000, start_ns=500, duration_ns=200))
    assert one.configs["from_ns"][PORT] == 6_000
    assert one.configs["until_ns"][PORT] == 8_000
    assert one.configs["ns_per_kib"][PORT] == 0


def test_when_a_level_is_down_to_xon() -> None:
    """By what lies above, since the last frame; not before now."""
    one = slow()
    fill(one, 2 * 1024, at_ns=5_000)
    assert one.calm_ns(PORT, 3, 5_000) == 5_000 + 2 * NS_PER_KIB
    assert one.calm_ns(PORT, 3, 20_000) == 5_000 + 2 * NS_PER_KIB
    assert one.calm_ns(PORT, 3, 90_000) == 90_000
    fill(one, 1, at_ns=5_000)
    assert one.calm_ns(PORT, 3, 5_000) == 5_010
    fill(one, 0, at_ns=5_000)
    assert one.calm_ns(PORT, 3, 5_001) == 5_001


def test_a_stuck_receiver_is_never_calm() -> None:
    """Until its spell is over."""
    forever = slow(ReceiverSpec("h3", 0, 1_000_000))
    fill(forever, 1, at_ns=5_000)
    assert forever.calm_ns(PORT, 3, 5_000) is None
    for_a_while = slow(ReceiverSpec("h3", 0, 1_000_000, 0, 1_000))
    fill(for_a_while, 1, at_ns=5_000)
    assert for_a_while.calm_ns(PORT, 3, 5_000) == 11_000
    assert for_a_while.calm_ns(PORT, 3, 12_000) == 12_000


def test_a_resume_counts_as_a_change_once() -> None:
    """The program counts the next XOFF from there."""
    one = slow()
    fill(one, 1, at_ns=0)
    assert one.resume(PORT, 3) == 2
    assert one.resume(PORT, 3) == 2
    assert one.levels[PORT, 3]["changes"] == 2


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[PauseRig]:
    """A pause driver over a fabric in which h3 is slow."""
    made = PauseRig(FABRIC, [PfcRule(3, response_ns=100)], tmp_path / "log", DILATION)
    made.plane.receivers.apply([SLOW], (3,), DILATION)
    made.plane.receivers.begin(0, DILATION)
    yield made
    made.close()


def test_a_host_pauses_its_leaf_and_lets_it_go_on(rig: PauseRig) -> None:
    """XON is found by looking when it should be, and again when more has come in the meantime."""
    receivers = rig.plane.receivers
    rig.now_ns = 1_000
    fill(receivers, 1_024, at_ns=1_000)
    rig.plane.cross("h3-eth1", 1_000)
    rig.driver.on_crossing()
    assert rig.gates.told == [("h3-eth1", 3, True)]
    fill(receivers, 1_024, at_ns=9_000)
    rig.at(11_000)
    assert rig.driver.next_ns() == 19_000
    rig.at(19_000)
    assert rig.gates.told == [("h3-eth1", 3, True), ("h3-eth1", 3, False)]
    rig.at(1_000_000)
    assert rig.gates.done == [(LEAF, 3, True), (LEAF, 3, False)]
    assert receivers.levels[PORT, 3]["changes"] == 2
