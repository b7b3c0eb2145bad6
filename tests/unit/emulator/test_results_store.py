"""The writer's side of a run folder."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from emulator.results import columns
from emulator.results.files import LineFile
from emulator.results.queues import QueueRecorder
from emulator.results.store import RunFolder, folder_name, new_folder
from topologies.errors import MachineError

STARTED = datetime(2026, 3, 4, 12, 30, 5, tzinfo=UTC)
FLOW = dict.fromkeys(columns.FLOWS, 0) | {"job": "a", "tag": "i0.s0.r0", "status": "done"}


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    """A fresh run folder."""
    return RunFolder.create(tmp_path / "results", "my run", "abc123", STARTED)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("plain", "plain-20260304-123005-id"),
        ("with spaces/and: more", "with-spaces-and-more-20260304-123005-id"),
        ("../..", "run-20260304-123005-id"),
        ("x" * 300, "x" * 60 + "-20260304-123005-id"),
        ("naïve", "na-ve-20260304-123005-id"),
    ],
)
def test_folder_names_are_safe(name: str, expected: str) -> None:
    """Name, time and id make the folder's name; nothing of it leaves the results folder."""
    assert folder_name(name, STARTED, "id") == expected


def test_create_makes_marked_manifest_and_empty_tables(folder: RunFolder) -> None:
    """From the first moment on the folder can be recognised and read."""
    manifest = json.loads((folder.path / "manifest.json").read_text())
    assert manifest["format"] == columns.FORMAT
    assert manifest["run"] == "abc123"
    assert manifest["name"] == "my run"
    for table, names in columns.CSV_TABLES.items():
        text = (folder.path / f"{table}.csv").read_text()
        assert text == ",".join(names) + "\n"


def test_create_refuses_an_existing_folder(tmp_path: Path) -> None:
    """Two runs never share a folder."""
    RunFolder.create(tmp_path, "a", "id", STARTED)
    with pytest.raises(MachineError, match="cannot be created"):
        RunFolder.create(tmp_path, "a", "id", STARTED)


def test_create_under_a_file_is_one_clear_error(tmp_path: Path) -> None:
    """A results place that is a file is an error that says how to choose another."""
    (tmp_path / "results").write_text("")
    with pytest.raises(MachineError, match="--results"):
        RunFolder.create(tmp_path / "results", "a", "id", STARTED)


def test_create_on_a_full_disk_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_space: Callable[..., None]
) -> None:
    """When not even the empty tables fit, the run is refused and the folder removed."""
    monkeypatch.setattr(LineFile, "append", no_space)
    with pytest.raises(MachineError, match="disk is full"):
        RunFolder.create(tmp_path, "a", "id", STARTED)
    assert list(tmp_path.iterdir()) == []


def test_a_new_folder_is_empty_and_new(tmp_path: Path) -> None:
    """With the folders above it; a second one of the same name is refused."""
    path = new_folder(tmp_path / "a" / "results", "my run", "abc123", STARTED)
    assert path == tmp_path / "a" / "results" / "my-run-20260304-123005-abc123"
    assert list(path.iterdir()) == []
    with pytest.raises(MachineError, match="cannot be created"):
        new_folder(tmp_path / "a" / "results", "my run", "abc123", STARTED)


def test_an_empty_folder_becomes_a_run_folder(tmp_path: Path) -> None:
    """The same that `create` makes, wherever the folder lies and whatever it is called."""
    adopted = RunFolder.adopt(tmp_path, "my run", "abc123", STARTED)
    created = RunFolder.create(tmp_path / "other", "my run", "abc123", STARTED)
    assert adopted.path == tmp_path
    files = {path.name: path.read_bytes() for path in created.path.iterdir()}
    assert len(files) > len(columns.CSV_TABLES)
    assert {name: (tmp_path / name).read_bytes() for name in files} == files


def test_adopting_on_a_full_disk_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_space: Callable[..., None]
) -> None:
    """The error names the folder, and it is gone."""
    path = new_folder(tmp_path, "a", "id", STARTED)
    monkeypatch.setattr(LineFile, "append", no_space)
    with pytest.raises(MachineError, match=f"{path}: no results can be written: the disk is full"):
        RunFolder.adopt(path, "a", "id", STARTED)
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def no_space() -> Callable[..., None]:
    """A write that finds the disk full."""

    def write(*_: object) -> None:
        raise OSError(28, "No space left on device")

    return write


def test_rows_are_written_in_column_order(folder: RunFolder) -> None:
    """Mappings in any order and plain sequences give the same file; None is empty."""
    row = {"time_ns": 5, "kind": "drop", "node": "leaf1", "port": "leaf1-eth3"}
    row |= {"tc": 3, "value": 2, "detail": None}
    assert folder.append("events", dict(reversed(row.items())))
    assert folder.extend("events", [list(row.values())])
    lines = (folder.path / "events.csv").read_text().splitlines()
    assert lines[1:] == ["5,drop,leaf1,leaf1-eth3,3,2,"] * 2


def test_text_with_commas_and_newlines_stays_one_line(folder: RunFolder) -> None:
    """Commas are quoted and line breaks become spaces, so that one row is one line."""
    folder.append("events", (1, "note", "", "", None, None, 'a, "b"\r\nc'))
    assert (folder.path / "events.csv").read_text().splitlines()[1] == ('1,note,,,,,"a, ""b"" c"')


def test_flags_and_numpy_numbers_are_plain(folder: RunFolder) -> None:
    """True becomes 1, NumPy integers print as numbers."""
    folder.append("probes", (3, "h1", "h2", np.int64(7), np.int64(10), None, True))
    assert (folder.path / "probes.csv").read_text().splitlines()[1] == "3,h1,h2,7,10,,1"


@pytest.mark.parametrize(
    "row",
    [{"time_ns": 1}, dict.fromkeys(columns.EVENTS, 0) | {"colour": 1}, (1, 2, 3)],
)
def test_wrong_columns_are_an_error(folder: RunFolder, row: dict[str, object]) -> None:
    """A row with missing, unknown or too few fields is refused before anything is written."""
    with pytest.raises(ValueError, match=r"events\.csv has"):
        folder.append("events", row)
    assert len((folder.path / "events.csv").read_text().splitlines()) == 1


def test_unknown_table_is_an_error(folder: RunFolder) -> None:
    """There are only the tables of the contract."""
    with pytest.raises(KeyError):
        folder.append("colours", (1,))


def test_attach_continues_tables_without_a_second_header(folder: RunFolder) -> None:
    """A second process of the run appends to the same files."""
    folder.append("flows", FLOW)
    other = RunFolder.attach(folder.path)
    other.append("flows", FLOW)
    other.append("computes", (1, "a", "i0.c.r0", "gpu", 0, 5))
    other.close()
    lines = (folder.path / "flows.csv").read_text().splitlines()
    assert len(lines) == 3
    assert lines[1] == lines[2]


def test_full_disk_ends_tables_but_not_the_run(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch, no_space: Callable[..., None]
) -> None:
    """Rows that do not fit are counted, no exception comes, and the summary is still written."""
    folder.append("flows", FLOW)
    with monkeypatch.context() as patch:
        patch.setattr(LineFile, "append", no_space)
        assert not folder.extend("flows", [FLOW, FLOW])
    assert not folder.append("flows", FLOW), "a hole in the middle would mislead"
    assert not folder.append("events", dict.fromkeys(columns.EVENTS, 0))
    assert folder.lost_rows == {"flows.csv": 3, "events.csv": 1}
    assert folder.degraded is not None
    assert "3 rows of flows.csv" in folder.degraded
    assert folder.write_summary({"verdict": "INVALID"})
    assert (folder.path / "summary.json").exists()
    assert not (folder.path / columns.RESERVE).exists()


FULL_SCRIPT = """
import resource, sys
from datetime import datetime, UTC
from pathlib import Path
from emulator.results.store import RunFolder
folder = RunFolder.create(Path(sys.argv[1]), "full", "id", datetime(2026, 1, 1, tzinfo=UTC))
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
row = (1, "drop", "leaf1", "leaf1-eth1", 3, 1, "")
results = [folder.append("events", row) for _ in range(400)]
assert results[0] and not results[-1]
folder.write_summary({"reasons": [folder.degraded]})
folder.close()
print(folder.lost_rows["events.csv"], results.count(True))
"""


def test_a_file_that_the_kernel_cuts_ends_with_a_whole_line(tmp_path: Path) -> None:
    """With a real limit of the kernel, the file ends after the last row that fitted."""
    done = subprocess.run(
        [sys.executable, "-c", FULL_SCRIPT, str(tmp_path)],
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    lost, written = map(int, done.stdout.split())
    assert lost + written == 400
    run = next(tmp_path.iterdir())
    text = (run / "events.csv").read_text()
    assert text.endswith("\n")
    assert len(text.splitlines()) == written + 1
    assert "disk is full" in (run / "summary.json").read_text()


KILLED_SCRIPT = """
import os, signal, sys
from datetime import datetime, UTC
from pathlib import Path
import numpy as np
from emulator.results.queues import QueueRecorder
from emulator.results.store import RunFolder
folder = RunFolder.create(Path(sys.argv[1]), "killed", "id", datetime(2026, 1, 1, tzinfo=UTC))
recorder = QueueRecorder(folder, ["h1-eth1"], ["leaf1"], chunk_samples=2)
for number in range(4):
    folder.append("computes", (number, "a", "i0.r0", "gpu", 0, 5))
    recorder.add(number, bytes_tc=np.zeros((1, 8)), tx_bytes=[number], dropped=[0], marked=[0],
                 trimmed=[0], buffer_used=[0])
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_sigkill_loses_nothing_that_was_appended(tmp_path: Path) -> None:
    """After SIGKILL every appended row and every chunk of samples is there."""
    done = subprocess.run([sys.executable, "-c", KILLED_SCRIPT, str(tmp_path)], check=False)
    assert done.returncode == -9
    run = RunFolder.open(next(tmp_path.iterdir()), allow_incomplete=True)
    assert not run.complete
    assert list(run.table("computes").numbers("id")) == [0, 1, 2, 3]
    samples = run.queues()
    assert samples is not None
    assert samples.time_ns.tolist() == [0, 1, 2, 3]


def add_sample(folder: RunFolder) -> None:
    """One chunk of one sample, eight bytes in the only queue."""
    recorder = QueueRecorder(folder, ["p"], ["s"], chunk_samples=1)
    counters = {"tx_bytes": [5], "dropped": [0], "trimmed": [0], "marked": [0]}
    recorder.add(1, bytes_tc=np.ones((1, 8)), buffer_used=[2], **counters)


def test_leaving_the_context_merges_queues(tmp_path: Path) -> None:
    """At the end, also after an error, chunks become queues.npz and everything is closed."""
    folder = RunFolder.create(tmp_path, "a", "id", STARTED)

    def run() -> None:
        with folder:
            add_sample(folder)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        run()
    assert (folder.path / "queues.npz").exists()
    assert not (folder.path / "queues").exists()
    assert not (folder.path / columns.RESERVE).exists()


def test_chunks_stay_when_merging_fails(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch, no_space: Callable[..., None]
) -> None:
    """No sample is removed before the merged file is on the disk."""
    recorder = QueueRecorder(folder, ["p"], ["s"], chunk_samples=1)
    recorder.add(
        1,
        bytes_tc=np.ones((1, 8)),
        tx_bytes=[5],
        dropped=[0],
        trimmed=[0],
        marked=[0],
        buffer_used=[2],
    )
    monkeypatch.setattr("emulator.results.queues.merge_chunks", no_space)
    assert not folder.finish_queues()
    assert folder.degraded is not None
    assert "queues.npz" in folder.degraded
    samples = RunFolder.open(folder.path, allow_incomplete=True).queues()
    assert samples is not None
    assert samples.arrays["bytes"].tolist() == [[8]]


def test_no_samples_make_no_queue_file(folder: RunFolder) -> None:
    """A run without samples ends without queues.npz and without complaint."""
    assert folder.finish_queues()
    assert folder.degraded is None
    assert not (folder.path / "queues.npz").exists()
