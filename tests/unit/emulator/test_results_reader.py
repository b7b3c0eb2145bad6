"""The reader's side of a run folder."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from emulator.results import columns
from emulator.results.catalog import find_runs, is_run_folder
from emulator.results.reader import RunReader
from emulator.results.store import RunFolder
from tests.fakes.run_folder import STARTED, FakeRun, write_run
from topologies.errors import SpecError


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run."""
    return write_run(tmp_path_factory.mktemp("results"), FakeRun(samples=50, probes=100))


def test_a_finished_run_is_read_back(run_dir: Path) -> None:
    """Manifest, spec, summary, tables and samples are what the writer was given."""
    run = RunReader.open(run_dir)
    assert run.complete
    assert run.name == "training-beside-inference"
    assert run.spec()["seed"] == 7
    assert run.manifest["dilation"] == 1000.0
    assert run.summary is not None
    assert run.summary["training"][0]["iterations"] == 3
    assert len(run.table("flows")) == 3 * 14 * 8
    samples = run.queues()
    assert samples is not None
    assert len(samples.time_ns) == 50
    assert run.notes == []


def test_opening_changes_nothing(run_dir: Path) -> None:
    """Reading is read-only: no file is made or changed."""
    before = {path: path.stat().st_mtime_ns for path in run_dir.rglob("*")}
    run = RunReader.open(run_dir)
    for table in columns.CSV_TABLES:
        run.table(table)
    run.queues()
    assert {path: path.stat().st_mtime_ns for path in run_dir.rglob("*")} == before


def test_missing_folder(tmp_path: Path) -> None:
    """A path that is not there says so, with the way out."""
    with pytest.raises(SpecError, match=r"does not exist.*fabriclab list"):
        RunReader.open(tmp_path / "nothing")


def test_folder_without_manifest(tmp_path: Path) -> None:
    """An ordinary folder is not a run."""
    with pytest.raises(SpecError, match=r"no manifest\.json"):
        RunReader.open(tmp_path)
    assert not is_run_folder(tmp_path)


def test_a_file_is_not_a_run(tmp_path: Path) -> None:
    """Giving a file instead of the folder is the same clear error."""
    (tmp_path / "report.html").write_text("")
    with pytest.raises(SpecError, match="is not a run folder"):
        RunReader.open(tmp_path / "report.html")


@pytest.mark.parametrize(
    ("content", "rule"),
    [
        ('{"name": "other tool"}', "is not a run folder of fabriclab"),
        ("[1]", "must hold a JSON object"),
        ("{", "cannot be read"),
        ('{"format": "fabriclab-run", "format_version": 99}', "another version"),
    ],
)
def test_foreign_manifests(tmp_path: Path, content: str, rule: str) -> None:
    """A manifest of something else, damaged, or of another version is named as such."""
    (tmp_path / "manifest.json").write_text(content)
    with pytest.raises(SpecError, match=rule):
        RunReader.open(tmp_path)


def test_incomplete_run_is_refused_unless_asked_for(tmp_path: Path) -> None:
    """A run without summary needs the caller's consent; then everything written is readable."""
    path = write_run(tmp_path, FakeRun(finished=False, samples=450, probes=10))
    with pytest.raises(SpecError, match=r"no summary\.json.*fabriclab report"):
        RunFolder.open(path)
    run = RunFolder.open(path, allow_incomplete=True)
    assert run.summary is None
    samples = run.queues()
    assert samples is not None
    assert len(samples.time_ns) == 450
    assert "unfinished" in run.notes[0]


def test_damaged_summary_is_one_clear_error(tmp_path: Path, run_dir: Path) -> None:
    """A summary that lacks keys says which."""
    summary = json.loads((run_dir / "summary.json").read_text())
    del summary["packets"]["dropped"]
    path = write_run(tmp_path, FakeRun(samples=10, probes=10))
    (path / "summary.json").write_text(json.dumps(summary))
    with pytest.raises(SpecError, match=r"packets\.dropped is missing"):
        RunReader.open(path)


def test_a_cut_last_line_is_left_out_with_a_note(tmp_path: Path) -> None:
    """After a crash in the middle of a write, all whole lines are used."""
    path = write_run(tmp_path, FakeRun(samples=10, probes=10, iterations=1))
    file = path / "computes.csv"
    file.write_bytes(file.read_bytes()[:-5])
    run = RunReader.open(path)
    assert len(run.table("computes")) == 7
    assert run.notes == ["the last line of computes.csv is cut off and left out"]


def test_missing_table_is_empty_with_a_note(tmp_path: Path) -> None:
    """A table that is not there reads as empty."""
    path = write_run(tmp_path, FakeRun(samples=10, probes=10))
    (path / "probes.csv").unlink()
    run = RunReader.open(path)
    assert len(run.table("probes")) == 0
    assert run.table("probes").numbers("latency_ns").size == 0
    assert run.notes == ["probes.csv is missing"]


def test_wrong_header_and_wrong_fields_name_the_place(tmp_path: Path) -> None:
    """Edited tables are refused with file and line."""
    path = write_run(tmp_path, FakeRun(samples=10, probes=0, iterations=0, requests=0))
    (path / "computes.csv").write_text("id,job\n1,a\n")
    (path / "probes.csv").write_text("class,src,dst,seq,sent_ns,latency_ns,lost\n1,2\n")
    (path / "events.csv").write_text("time_ns,kind,node,port,tc,value,detail\n1,drop,a,b,3,many,\n")
    run = RunReader.open(path)
    with pytest.raises(SpecError, match=r"computes\.csv: line 1.*must have the columns"):
        run.table("computes")
    with pytest.raises(SpecError, match=r"probes\.csv: line 2.*7 fields, has 2"):
        run.table("probes")
    with pytest.raises(SpecError, match=r"line 2, value: 'many' is not a number"):
        run.table("events").numbers("value")


def test_empty_fields_are_nan_and_integers_exact(tmp_path: Path) -> None:
    """What did not happen is NaN; large integers keep every digit."""
    folder = RunFolder.create(tmp_path, "a", "id", STARTED)
    folder.append("probes", (0, "h1", "h2", 1, 2**52 + 1, None, 1))
    run = RunReader.open(folder.path, allow_incomplete=True)
    assert int(run.table("probes").numbers("sent_ns")[0]) == 2**52 + 1
    assert np.isnan(run.table("probes").numbers("latency_ns")[0])
    assert next(run.table("probes").rows())["latency_ns"] == ""


def test_odd_text_survives(tmp_path: Path) -> None:
    """Quotes, commas and line separators of Unicode come back as one field."""
    folder = RunFolder.create(tmp_path, "a", "id", STARTED)
    folder.append("events", (1, "note", "", "", None, None, 'say "x", \u00e9\u4e2d'))
    run = RunReader.open(folder.path, allow_incomplete=True)
    assert run.table("events").text("detail") == ('say "x", \u00e9\u4e2d',)


def test_damaged_spec_is_a_note(tmp_path: Path) -> None:
    """A spec that is no YAML does not stop the reading of results."""
    path = write_run(tmp_path, FakeRun(samples=10, probes=10))
    (path / "spec.yaml").write_text("a: [1")
    run = RunReader.open(path)
    assert run.spec() == {}
    assert "spec.yaml cannot be read" in run.notes[0]


def test_runs_are_found_oldest_first(tmp_path: Path) -> None:
    """Only run folders are listed, by their start."""
    (tmp_path / "other").mkdir()
    (tmp_path / "file").write_text("")
    for number, hour in (("late", 20), ("early", 8)):
        started = STARTED.replace(hour=hour)
        RunFolder.create(tmp_path, "z" if number == "early" else "a", number, started)
    assert [path.name[-5:].strip("-") for path in find_runs(tmp_path)] == ["early", "late"]
    assert find_runs(tmp_path / "nothing") == []
