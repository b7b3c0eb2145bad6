"""Pauses of a run: rows as it goes, totals, reaction times, what pfc.json says."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from emulator.clock.live import LiveClock
from emulator.dataplane.pause_log import PauseLogWriter
from emulator.dataplane.pausing import Act, Order
from emulator.results.reader import RunReader
from emulator.results.store import RunFolder
from emulator.run.pauses import PauseTotals, PauseWatch, details, headroom_drops
from tests.fakes.fabrics import leaf_spine
from tests.fakes.plane import FakePlane
from topologies.pause import settled
from topologies.settings import PfcRule

FABRIC = leaf_spine(2, 1, 2)
DILATION, START = 10.0, 1_000_000
HOST, LEAF = FABRIC.port_named("h1-eth1").index, FABRIC.port_named("leaf1-eth3").index


class Rig:
    """A log that is written, and the watch that reads it."""

    def __init__(self, path: Path) -> None:
        self.folder = RunFolder.create(path, "test", "abc123", datetime(2026, 1, 2, tzinfo=UTC))
        self.plane = FakePlane(FABRIC)
        self.plane.apply_pfc(settled([PfcRule(3)], FABRIC))
        self.log = PauseLogWriter(path / "log")
        clock = LiveClock(DILATION, START)
        self.watch = PauseWatch(self.plane, path / "log", clock, self.folder)

    def did(self, act: Act, port: int, at_ns: int, reaction_ns: int = 40, held: int = 0) -> None:
        """Something was done at a model time, on time."""
        done = START + round(at_ns * DILATION)
        asked = done - round(reaction_ns * DILATION)
        self.log.add(Order(act, port, 3, asked, done, held), done)
        self.log.flush()

    def rows(self) -> list[dict[str, Any]]:
        """events.csv."""
        return list(RunReader.open(self.folder.path, allow_incomplete=True).table("events").rows())


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    """Nothing has happened."""
    return Rig(tmp_path)


def test_pauses_become_events_as_they_happen(rig: Rig) -> None:
    """Where, when, by whom; what was held at the beginning, how long it lasted at the end."""
    rig.did(Act.CLOSE, HOST, 100, held=9_000)
    rig.watch.note()
    assert len(rig.rows()) == 1
    rig.did(Act.OPEN, HOST, 350)
    rig.watch.note()
    rig.watch.note()
    first, second = rig.rows()
    assert first == {
        "time_ns": "100", "kind": "pause", "node": "h1", "port": "h1-eth1", "tc": "3",
        "value": "9000", "detail": "by leaf1-eth1",
    }  # fmt: skip
    assert (second["time_ns"], second["kind"], second["value"]) == ("350", "resume", "250")


def test_totals_of_all_gates(rig: Rig) -> None:
    """Counts, the share of all gates' time, the longest pause."""
    for begin, end in ((0, 100), (500, 800)):
        rig.did(Act.CLOSE, HOST, begin)
        rig.did(Act.OPEN, HOST, end)
    rig.did(Act.CLOSE, LEAF, 900)
    totals = rig.watch.finish(1_000)
    assert vars(totals.gates[HOST, 3]) == {
        "pauses": 2, "paused_ns": 400, "longest_ns": 300, "storms": 0,
    }  # fmt: skip
    assert totals.gates[LEAF, 3].paused_ns == 100
    assert totals.pauses == 3
    assert totals.section["paused_fraction"] == pytest.approx(500 / (len(FABRIC.ports) * 1_000))


def test_reaction_times_are_in_target_units(rig: Rig) -> None:
    """From the crossing to the closed gate; openings do not count."""
    for number in range(100):
        rig.did(Act.CLOSE, HOST, 1_000 * number + 500, reaction_ns=4_000 if number else 9_000)
        rig.did(Act.OPEN, HOST, 1_000 * number + 900, reaction_ns=100)
    totals = rig.watch.finish(200_000)
    assert totals.reaction_us["p50"] == totals.modelled_us["p50"] == 4.0
    assert totals.reaction_us["p99"] == pytest.approx(4.05)
    assert totals.lateness_ns == 0


def test_late_gates_are_noticed(rig: Rig) -> None:
    """In wall time, because the machine is late, not the model."""
    order = Order(Act.CLOSE, HOST, 3, START, START + 5_000)
    rig.log.add(order, START + 5_700)
    rig.log.flush()
    totals = rig.watch.finish(2_000)
    assert totals.lateness_ns == 700
    assert (totals.modelled_us["p50"], totals.reaction_us["p50"]) == (0.5, 0.57)


def test_storms_end_pauses_and_are_counted(rig: Rig) -> None:
    """The watchdog opened the gate; when it was restored, nothing was paused."""
    rig.did(Act.CLOSE, HOST, 100)
    rig.did(Act.STORM_DROP, HOST, 400)
    rig.did(Act.RESTORE, HOST, 900)
    totals = rig.watch.finish(1_000)
    assert (totals.gates[HOST, 3].storms, totals.gates[HOST, 3].paused_ns) == (1, 300)
    assert totals.section["watchdog_events"] == 1
    assert [(row["kind"], row["value"], row["detail"]) for row in rig.rows()] == [
        ("pause", "0", "by leaf1-eth1"), ("storm", "300", "watchdog drops"),
        ("restore", "", "by leaf1-eth1"),
    ]  # fmt: skip


def test_a_run_without_pauses(rig: Rig) -> None:
    """An empty log: no rows, no reaction times."""
    totals = rig.watch.finish(1_000)
    assert totals.section == {
        "pauses": 0, "paused_fraction": 0.0, "reaction_us": {}, "watchdog_events": 0,
    }  # fmt: skip
    assert PauseTotals().section["paused_fraction"] == 0.0


def test_details_tell_of_every_ingress_port(rig: Rig) -> None:
    """How much of its headroom it needed, and for how many packets that was too little."""
    index = FABRIC.port_named("leaf1-eth1").index
    held = rig.plane.held["classes"][index : index + 1, 3]
    held["peak_headroom"], held["drop_packets"] = 7_000, 2
    rig.did(Act.CLOSE, HOST, 100)
    told = details(rig.plane, rig.watch.finish(500))
    assert told["queues"] == [
        {"port": "h1-eth1", "tc": 3, "pauses": 1, "paused_ns": 400, "longest_ns": 400, "storms": 0}
    ]
    (row,) = [row for row in told["ingress"] if row["dropped"]]
    assert (row["port"], row["tc"], row["peak_headroom_bytes"]) == ("leaf1-eth1", 3, 7_000)
    assert headroom_drops(rig.plane) == {("leaf1-eth1", 3): 2}
