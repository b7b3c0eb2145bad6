"""The commands about existing runs: report, compare, list."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from emulator.cli import main
from emulator.commands.compare import default_out
from emulator.results import catalog
from emulator.results.store import RunFolder
from tests.fakes.run_folder import STARTED, FakeRun, write_run
from topologies.errors import SpecError

QUICK = {"samples": 5, "probes": 20, "requests": 5, "iterations": 1}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A results folder with three runs, one of them cut short, and something foreign."""
    root = tmp_path_factory.mktemp("work") / "results"
    write_run(root, FakeRun(run_id="aa11", **QUICK))
    write_run(root, FakeRun(run_id="ab22", profile="ethernet", ecn=False, **QUICK))
    RunFolder.create(root, "later", "cc33", STARTED.replace(hour=23)).close()
    (root / "notes").mkdir()
    return root


def test_list_shows_all_runs_with_verdicts(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One aligned line per run, oldest first, also of runs that were cut short."""
    assert main(["list", "--results", str(root)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[0] == "started"
    assert [line.split()[2] for line in lines[1:]] == ["aa11", "ab22", "cc33"]
    assert [line.split()[-1] for line in lines[1:]] == ["VALID", "VALID", "INCOMPLETE"]


def test_list_as_json(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Programs get the same with the folders."""
    assert main(["list", "--json", "--results", str(root)]) == 0
    runs = json.loads(capsys.readouterr().out)
    assert [run["run"] for run in runs] == ["aa11", "ab22", "cc33"]
    assert all(Path(run["folder"]).is_dir() for run in runs)


def test_list_of_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No runs is a sentence, not an error."""
    assert main(["list", "--results", str(tmp_path / "none")]) == 0
    assert "no runs in" in capsys.readouterr().out


def test_list_survives_a_damaged_run(tmp_path: Path) -> None:
    """A broken summary is listed as such."""
    run = write_run(tmp_path, FakeRun(**QUICK))
    (run / "summary.json").write_text("{")
    assert catalog.entry_of(run).verdict == catalog.DAMAGED


def test_runs_are_found_by_id_name_or_path(root: Path) -> None:
    """An id, the beginning of a name, or a path; ambiguity and absence are errors."""
    run = catalog.resolve_run("aa11", root)
    assert run.name.endswith("aa11")
    assert catalog.resolve_run("aa", root) == run
    assert catalog.resolve_run(run.name, root) == run
    assert catalog.resolve_run(str(run), Path("elsewhere")) == run
    with pytest.raises(SpecError, match="fits 2 runs"):
        catalog.resolve_run("a", root)
    with pytest.raises(SpecError, match=r"neither a folder nor a run.*fabriclab list"):
        catalog.resolve_run("zz", root)


def test_exact_ids_win_over_beginnings(tmp_path: Path) -> None:
    """A run whose id is the beginning of another's can be named."""
    for name in ("ab", "abc"):
        RunFolder.create(tmp_path, "x", name, STARTED).close()
    assert catalog.resolve_run("ab", tmp_path).name.endswith("-ab")


def test_report_prints_the_table_and_the_path(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The report of a named run is written again."""
    assert main(["report", "aa11", "--results", str(root)]) == 0
    out = capsys.readouterr().out
    assert out.startswith("VALID  training-beside-inference")
    page = Path(out.rsplit("report: ", 1)[1].strip())
    assert page.name == "report.html"
    assert page.is_file()


def test_report_without_a_name_takes_the_latest(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The latest run is the one that people mean; a run that was cut short is said to be."""
    assert main(["report", "--results", str(root)]) == 0
    out = capsys.readouterr().out
    assert out.startswith("INCOMPLETE  later-")


def test_compare_prints_and_stores(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two runs by id: the table on the screen, three files beside the runs."""
    assert main(["compare", "ab22", "aa11", "--results", str(root)]) == 0
    out = capsys.readouterr().out
    assert "rocev2 against ethernet" in out
    page = Path(out.rsplit("comparison: ", 1)[1].strip())
    assert page == root / "compare-ab22-aa11" / "compare.html"
    assert page.is_file()


def test_many_runs_have_a_short_default_folder(root: Path) -> None:
    """The folder's name stays short however many runs there are."""
    run = catalog.resolve_run("aa11", root)
    assert default_out([run] * 7, root).name == "compare-aa11-aa11-aa11-aa11-and-3-more"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["report", "nothing"], "neither a folder nor a run"),
        (["compare", "aa11"], "at least 2 runs"),
        (["compare", "aa11", "cc33"], "no summary.json"),
        (["compare", "aa11", "aa11"], "is given twice"),
    ],
)
def test_mistakes_are_one_line_and_exit_code_two(
    root: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    """Each mistake is one clear line on standard error; nothing is created."""
    before = sorted(root.iterdir())
    assert main([*arguments, "--results", str(root)]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert sorted(root.iterdir()) == before


def test_report_of_an_empty_results_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without any run there is nothing to report, which is said with the way out."""
    assert main(["report", "--results", str(tmp_path)]) == 2
    assert "holds no run" in capsys.readouterr().err
