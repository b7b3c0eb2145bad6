"""Samples of queues: shapes, chunks, merging."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from emulator.results import queues
from emulator.results.queues import QueueRecorder, QueueSeries, concat, load, merge_chunks
from emulator.results.store import RunFolder
from topologies.errors import SpecError

PORTS, SWITCHES = ("h1-eth1", "leaf1-eth1", "leaf1-eth2"), ("leaf1",)


def series(times: list[int], ports: tuple[str, ...] = PORTS) -> QueueSeries:
    """Samples in which every number tells its place."""
    grid = np.array(times)[:, None] * 100 + np.arange(len(ports))
    per_class = grid[:, :, None] * 10 + np.arange(8)
    arrays = {
        "time_ns": np.array(times),
        "bytes": grid,
        "bytes_tc": per_class,
        "tx_bytes": grid + 1,
        "dropped": grid + 2,
        "marked": grid + 3,
        "trimmed": grid + 4,
        "buffer_used": np.array(times)[:, None] * np.ones((1, len(SWITCHES)), dtype=int),
    }
    return QueueSeries(ports, SWITCHES, arrays)


def test_save_and_load_give_the_same(tmp_path: Path) -> None:
    """A file holds exactly what was put into it."""
    series([1, 2, 3]).save(tmp_path / "a.npz")
    back = load(tmp_path / "a.npz")
    assert back.names() == series([1]).names()
    for name, array in series([1, 2, 3]).arrays.items():
        np.testing.assert_array_equal(back.arrays[name], array)
        assert back.arrays[name].dtype == np.int64


def test_of_port_picks_a_column() -> None:
    """A port's series is found by its name; unknown names are an error."""
    assert series([1, 2]).of_port("tx_bytes", "leaf1-eth1").tolist() == [102, 202]
    with pytest.raises(KeyError):
        series([1]).of_port("bytes", "leaf9-eth1")


@pytest.mark.parametrize("name", ["bytes", "bytes_tc", "buffer_used", "dropped"])
def test_wrong_shapes_are_refused(name: str) -> None:
    """An array that does not fit the ports, switches or times is an error that names it."""
    arrays = dict(series([1, 2]).arrays)
    arrays[name] = arrays[name][:, :0]
    with pytest.raises(SpecError, match=name):
        QueueSeries(PORTS, SWITCHES, arrays)


def test_missing_arrays_are_refused() -> None:
    """All arrays of the contract must be there."""
    arrays = dict(series([1]).arrays)
    del arrays["marked"]
    with pytest.raises(SpecError, match="marked"):
        QueueSeries(PORTS, SWITCHES, arrays)


def test_merge_equals_concat(tmp_path: Path) -> None:
    """Merging array by array gives what joining in memory gives, in the order of numbers."""
    parts = {2: series([3, 4]), 1: series([1, 2]), 10: series([5])}
    for number, part in parts.items():
        part.save(tmp_path / f"{number:04d}.npz")
    (tmp_path / "notes.npz").write_bytes(b"not a chunk")
    merge_chunks(tmp_path, tmp_path / "merged")
    merged = load(tmp_path / "merged")
    joined = concat([parts[1], parts[2], parts[10]])
    assert merged.time_ns.tolist() == [1, 2, 3, 4, 5]
    for name, array in joined.arrays.items():
        np.testing.assert_array_equal(merged.arrays[name], array)


def test_ten_thousand_chunks_stay_in_order(tmp_path: Path) -> None:
    """Numbers with more digits sort after those with fewer."""
    for name in ("9999.npz", "10000.npz", "0001.npz"):
        (tmp_path / name).write_bytes(b"")
    found = [path.stem for path in queues.chunk_files(tmp_path)]
    assert found == ["0001", "9999", "10000"]


def test_chunks_of_other_ports_are_refused() -> None:
    """Chunks of different fabrics cannot be joined."""
    with pytest.raises(SpecError, match="differ"):
        concat([series([1]), series([2], ("a", "b", "c"))])


@pytest.mark.parametrize("content", [b"", b"hello", b"PK\x03\x04 broken zip"])
def test_damaged_files_are_one_clear_error(tmp_path: Path, content: bytes) -> None:
    """A file that is no .npz names itself in the error."""
    (tmp_path / "queues.npz").write_bytes(content)
    with pytest.raises(SpecError, match=r"queues\.npz.*cannot be read"):
        load(tmp_path / "queues.npz")


def test_a_file_that_lacks_arrays_is_one_clear_error(tmp_path: Path) -> None:
    """An .npz of something else is recognised."""
    np.savez(tmp_path / "other.npz", x=np.zeros(3))
    with pytest.raises(SpecError, match="cannot be read"):
        load(tmp_path / "other.npz")


def test_counters_that_came_later_are_zeros_in_old_files(tmp_path: Path) -> None:
    """A run folder of an earlier version is still read."""
    arrays = dict(series([1, 2]).arrays)
    del arrays["trimmed"]
    np.savez(tmp_path / "old.npz", ports=np.array(PORTS), switches=np.array(SWITCHES), **arrays)
    back = load(tmp_path / "old.npz")
    assert back.arrays["trimmed"].tolist() == [[0, 0, 0]] * 2
    assert back.of_port("dropped", "h1-eth1").tolist() == [102, 202]


def test_recorder_writes_chunks_and_sums_classes(tmp_path: Path) -> None:
    """A chunk is written whenever enough samples came; `bytes` is the sum over classes."""
    folder = RunFolder.create(tmp_path, "a", "id", datetime(2026, 1, 1, tzinfo=UTC))
    recorder = QueueRecorder(folder, PORTS, SWITCHES, chunk_samples=2)
    counters = {"tx_bytes": [1, 2, 3], "dropped": [0, 0, 1], "marked": [0, 0, 0]}
    counters["trimmed"] = [0, 2, 0]
    per_class = np.arange(24).reshape(3, 8)
    for at in range(5):
        recorder.add(at, bytes_tc=per_class, buffer_used=[7], **counters)
        per_class = per_class + 1
    chunks = queues.chunk_files(folder.path / "queues")
    assert [path.name for path in chunks] == ["0001.npz", "0002.npz"]
    recorder.flush()
    recorder.flush()
    folder.finish_queues()
    samples = load(folder.path / "queues.npz")
    assert samples.time_ns.tolist() == [0, 1, 2, 3, 4]
    assert samples.arrays["bytes"][0].tolist() == [28, 92, 156]
    assert samples.arrays["bytes"][1].tolist() == [36, 100, 164]
    assert samples.arrays["buffer_used"].tolist() == [[7]] * 5


def test_recorder_keeps_samples_apart_from_reused_arrays(tmp_path: Path) -> None:
    """The caller may fill the same array again for the next sample."""
    folder = RunFolder.create(tmp_path, "a", "id", datetime(2026, 1, 1, tzinfo=UTC))
    recorder = QueueRecorder(folder, ("p",), (), chunk_samples=10)
    sent = np.zeros(1, dtype=np.int64)
    for at in range(3):
        sent[0] = at
        recorder.add(
            at,
            bytes_tc=np.zeros((1, 8)),
            tx_bytes=sent,
            dropped=[0],
            trimmed=[0],
            marked=[0],
            buffer_used=[],
        )
    recorder.flush()
    folder.finish_queues()
    assert load(folder.path / "queues.npz").arrays["tx_bytes"].ravel().tolist() == [0, 1, 2]


def test_a_fabric_without_switches_has_empty_names(tmp_path: Path) -> None:
    """Empty name lists survive writing and reading."""
    arrays = {name: np.zeros((1,) + (0,) * (len(axes) - 1), dtype=int)
              for name, axes in queues.QUEUE_ARRAYS.items()}  # fmt: skip
    arrays["bytes_tc"] = np.zeros((1, 0, 8), dtype=int)
    QueueSeries((), (), arrays).save(tmp_path / "a.npz")
    assert load(tmp_path / "a.npz").ports == ()
