"""Samples of queues and counters, and events that are counted between them."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from emulator.results import queues
from emulator.results.reader import RunReader
from emulator.results.store import RunFolder
from emulator.run.sampling import Sampler
from tests.fakes.fabrics import leaf_spine
from tests.fakes.plane import LENGTH, FakePlane

FABRIC = leaf_spine(2, 2, 2)


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    """A new run folder."""
    return RunFolder.create(tmp_path, "test", "abc123", datetime(2026, 1, 2, tzinfo=UTC))


def series(folder: RunFolder) -> queues.QueueSeries:
    """All samples."""
    folder.finish_queues()
    return queues.load(folder.path / "queues.npz")


def events(folder: RunFolder) -> list[tuple[str, ...]]:
    """(time, kind, node, port, class, value) of all events."""
    table = RunReader.open(folder.path, allow_incomplete=True).table("events")
    names = ("time_ns", "kind", "node", "port", "tc", "value")
    return [tuple(row[name] for name in names) for row in table.rows()]


def test_a_sample_has_every_port_and_switch(folder: RunFolder) -> None:
    """Lengths by class, bytes sent with the line's overhead, counts, the buffers' use."""
    plane = FakePlane(FABRIC)
    sampler = Sampler(plane, folder)
    plane.carry(["leaf1-eth3"], 10)
    plane.enter("leaf1-eth3", 4)
    plane.enter("leaf1-eth3", 2, tc=6, length=62)
    plane.drop("leaf1-eth3", 3)
    plane.add("leaf1-eth3", mark_packets=5, trim_packets=7)
    plane.switches["in_bytes"][1], plane.switches["out_bytes"][1] = 9_000, 2_000
    sampler.finish(1_000)
    taken = series(folder)
    at = [port.name for port in FABRIC.ports].index("leaf1-eth3")
    assert taken.time_ns.tolist() == [1_000]
    assert taken.of_port("bytes", "leaf1-eth3").tolist() == [4 * LENGTH + 2 * 62]
    assert taken.arrays["bytes_tc"][0, at].tolist() == [0, 0, 0, 4 * LENGTH, 0, 0, 124, 0]
    assert taken.of_port("tx_bytes", "leaf1-eth3").tolist() == [10 * (LENGTH + 24)]
    assert taken.of_port("dropped", "leaf1-eth3").tolist() == [3]
    assert taken.of_port("marked", "leaf1-eth3").tolist() == [5]
    assert taken.of_port("trimmed", "leaf1-eth3").tolist() == [7]
    assert taken.arrays["buffer_used"].tolist() == [[0, 7_000, 0, 0]]


def test_what_was_sent_before_the_run_does_not_count(folder: RunFolder) -> None:
    """Bytes sent begin at 0 with the sampler."""
    plane = FakePlane(FABRIC)
    plane.carry(["h1-eth1"], 50)
    sampler = Sampler(plane, folder)
    plane.carry(["h1-eth1"], 1)
    sampler.finish(5)
    assert series(folder).of_port("tx_bytes", "h1-eth1").tolist() == [LENGTH + 24]


def test_a_length_is_never_negative(folder: RunFolder) -> None:
    """A frame can be counted out between the two readings of a sample."""
    plane = FakePlane(FABRIC)
    sampler = Sampler(plane, folder)
    plane.leave("h1-eth1", 1)
    sampler.finish(5)
    assert series(folder).of_port("bytes", "h1-eth1").tolist() == [0]


def test_drops_cuts_and_marks_are_events_with_their_growth(folder: RunFolder) -> None:
    """One row per place, class and sample in which it grew, with how much."""
    plane = FakePlane(FABRIC)
    plane.drop("spine1-eth1", 99)
    sampler = Sampler(plane, folder)
    plane.drop("leaf1-eth3", 3)
    plane.add("leaf1-eth3", mark_packets=5)
    sampler.sample(100)
    sampler.sample(200)
    plane.drop("leaf1-eth3", 1)
    plane.drop("spine1-eth1", 2, tc=0)
    plane.cut("leaf1-eth3", 4)
    sampler.finish(300)
    assert events(folder) == [
        ("100", "drop", "leaf1", "leaf1-eth3", "3", "3"),
        ("100", "mark", "leaf1", "leaf1-eth3", "3", "5"),
        ("300", "drop", "leaf1", "leaf1-eth3", "3", "1"),
        ("300", "drop", "spine1", "spine1-eth1", "0", "2"),
        ("300", "trim", "leaf1", "leaf1-eth3", "3", "4"),
    ]
