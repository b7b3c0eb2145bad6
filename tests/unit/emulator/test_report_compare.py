"""Several runs side by side."""

from __future__ import annotations

import copy
import csv
import io
from pathlib import Path
from typing import Any

import pytest

from emulator.report import comparison, who_pays
from emulator.report.compare import build_compare, compare_csv, compare_text, open_runs
from emulator.report.comparison import Compared, Figure
from emulator.report.html import build_report
from emulator.results import format as fmt
from emulator.results.reader import RunReader
from tests.fakes.pages import Page
from tests.fakes.run_folder import FakeRun, write_run
from topologies.errors import MachineError, SpecError

SMALL: dict[str, Any] = {"samples": 30, "probes": 200, "requests": 30}
REASON = "port leaf1-eth3 reached 94.9 % of its rate"


@pytest.fixture(scope="module")
def dirs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Four runs: tail drop, marking, one that is invalid, one without any workload."""
    root = tmp_path_factory.mktemp("results")
    runs = {
        "drop": FakeRun(run_id="drop", ecn=False, profile="ethernet", **SMALL),
        "mark": FakeRun(run_id="mark", **SMALL),
        "bad": FakeRun(run_id="bad", profile="infiniband", reasons=(REASON,), **SMALL),
        "bare": FakeRun(
            run_id="bare", profile="ultra-ethernet", iterations=0, requests=0, probes=0, samples=9
        ),
    }
    return {name: write_run(root, run) for name, run in runs.items()}


def opened(dirs: dict[str, Path], *names: str) -> list[Compared]:
    """These runs, labelled."""
    return open_runs([dirs[name] for name in names])


def figure(values: tuple[float | None, ...], better: str = comparison.LOWER) -> Figure:
    """A row of the comparison."""
    return Figure("job", "iteration, mean", "ms", better, values, fmt.duration_ms)


def test_changes_are_against_the_first() -> None:
    """A quarter more is +25 %; against nothing there is no change."""
    assert figure((4.0, 5.0, None, 2.0)).changes() == [0.0, 0.25, None, -0.5]
    assert figure((0.0, 5.0)).changes() == [None, None]
    assert figure((None, 5.0)).changes() == [None, None]


@pytest.mark.parametrize(
    ("first", "value", "better", "verdict"),
    [
        (100.0, 90.0, "lower", 1), (100.0, 110.0, "lower", -1), (100.0, 110.0, "higher", 1),
        (100.0, 100.9, "lower", 0), (100.0, 110.0, "", 0), (None, 1.0, "lower", 0),
        (0.0, 0.1, "lower", -1), (0.0, 0.0, "lower", 0),
    ],
)  # fmt: skip
def test_better_and_worse(first: float | None, value: float, better: str, verdict: int) -> None:
    """Direction counts, and what is within one per cent is no difference."""
    assert figure((first, value), better).judge(1) == verdict


def test_labels_are_as_short_as_they_can_be(dirs: dict[str, Path]) -> None:
    """Profiles name runs that differ in it; else the run's id is added."""
    assert [run.label for run in opened(dirs, "drop", "mark")] == ["ethernet", "rocev2"]


def test_equal_profiles_are_told_apart_by_id(tmp_path: Path) -> None:
    """Two runs of one profile and seed keep distinct labels; a label of the user comes first."""
    runs = [FakeRun(run_id=name, samples=5, probes=5) for name in ("one", "two")]
    paths = [write_run(tmp_path, run) for run in runs]
    assert [run.label for run in open_runs(paths)] == ["rocev2, run one", "rocev2, run two"]
    named = [
        write_run(tmp_path, FakeRun(run_id=f"l{name}", samples=5, extra_manifest={"label": name}))
        for name in ("K = 100 KB", "K = 400 KB")
    ]
    assert [run.label for run in open_runs(named)] == ["K = 100 KB", "K = 400 KB"]


def test_one_run_or_the_same_twice_is_refused(dirs: dict[str, Path]) -> None:
    """There must be something to compare."""
    with pytest.raises(SpecError, match="at least 2"):
        opened(dirs, "drop")
    with pytest.raises(SpecError, match="is given twice"):
        opened(dirs, "drop", "mark", "drop")


def test_incomplete_runs_are_refused(tmp_path: Path, dirs: dict[str, Path]) -> None:
    """A run without summary has nothing to compare."""
    cut = write_run(tmp_path, FakeRun(finished=False, samples=5))
    with pytest.raises(SpecError, match=r"no summary\.json"):
        open_runs([dirs["drop"], cut])


def test_text_table_has_values_and_changes(dirs: dict[str, Path]) -> None:
    """Verdict first, one block per workload and class, changes in per cent."""
    lines = compare_text(opened(dirs, "drop", "mark")).splitlines()
    assert lines[0].split() == ["ethernet", "rocev2"]
    assert lines[1].split() == ["verdict", "VALID", "VALID"]
    row = next(line for line in lines if "iteration, mean" in line)
    assert row.split("  ")[0] == "job-a"
    assert "288 ms" in row
    assert "256 ms (-11.1 %)" in row


def test_csv_holds_numbers(dirs: dict[str, Path]) -> None:
    """The file is rectangular, raw and names its units."""
    rows = list(csv.reader(io.StringIO(compare_csv(opened(dirs, "drop", "mark", "bare")))))
    assert {len(row) for row in rows} == {8}
    assert rows[0][:6] == ["group", "figure", "unit", "ethernet", "rocev2", "ultra-ethernet"]
    assert rows[1][3:6] == ["VALID", "VALID", "VALID"]
    mean = next(row for row in rows if row[1] == "iteration, mean")
    assert mean == ["job-a", "iteration, mean", "ms", "288.0", "256.0", "", "-11.111", ""]


def test_every_unit_of_the_table_is_known(dirs: dict[str, Path]) -> None:
    """Figures of all groups are there: training, inference, probes, packets."""
    runs = opened(dirs, "drop", "mark")
    groups = list(dict.fromkeys(row.group for row in comparison.figures(runs)))
    assert groups == ["job-a", "chat", "TC0", "TC3", "packets"]
    assert all(len(row.values) == 2 for row in comparison.figures(runs))


def test_sentences_say_who_pays(dirs: dict[str, Path]) -> None:
    """Training and inference each get a clause, loss another, and the sum is plain."""
    runs = opened(dirs, "drop", "mark")
    (text,) = who_pays.sentences(runs, comparison.figures(runs))
    assert text.startswith("rocev2 against ethernet: job-a: an iteration takes 11.1 % less time")
    assert "(288 ms to 256 ms)" in text
    assert "chat: the slowest 1 % of first tokens takes" in text
    assert text.endswith("Nobody pays; job-a and chat gain.")
    backwards = opened(dirs, "mark", "drop")
    (text,) = who_pays.sentences(backwards, comparison.figures(backwards))
    assert "an iteration takes 12.5 % more time" in text
    assert text.endswith("job-a and chat pay; nobody gains.")


def test_mixed_outcomes_name_both_sides(dirs: dict[str, Path]) -> None:
    """When one workload gains and the other loses, both are named."""
    runs = opened(dirs, "drop", "mark")
    rows = [
        figure((100.0, 300.0)),
        Figure("chat", "TTFT p99", "ms", comparison.LOWER, (10.0, 5.0), fmt.duration_ms),
    ]
    (text,) = who_pays.sentences(runs, rows)
    assert "job: an iteration takes 3 times as long (100 ms to 300 ms)" in text
    assert "chat: the slowest 1 % of first tokens takes 50 % less time" in text
    assert text.endswith("job pays; chat gains.")
    same = [figure((100.0, 100.5))]
    assert who_pays.sentences(runs, same)[0].endswith("Nobody pays or gains.")


def test_invalid_runs_are_never_hidden(dirs: dict[str, Path]) -> None:
    """An INVALID run is marked in warning, table, sentence; who pays stays open."""
    runs = opened(dirs, "drop", "bad")
    text = compare_text(runs)
    assert text.startswith(f"! infiniband is INVALID ({REASON}): do not rely on its figures")
    assert "INVALID" in text.splitlines()[3]
    assert "infiniband (INVALID) against ethernet" in text
    assert text.endswith("so who pays stays open.")


def test_runs_without_anything_in_common(dirs: dict[str, Path]) -> None:
    """A run without workloads is compared by what it has, and no gain is invented."""
    runs = opened(dirs, "drop", "bare")
    (text,) = who_pays.sentences(runs, comparison.figures(runs))
    assert "dropped packets go from" in text
    assert text.endswith("to 0 %.")


def test_unlike_runs_are_warned_about(dirs: dict[str, Path]) -> None:
    """Different seeds, scales or schedules may explain a difference, so they are said."""
    runs = opened(dirs, "drop", "mark")
    assert who_pays.cautions(runs) == []
    other = copy.deepcopy(dict(runs[1].summary))
    other |= {"seed": 8, "shrink": 2, "dilation": 10, "hashes": {"schedule": "x", "results": "y"}}
    found = who_pays.cautions([runs[0], Compared("other", runs[1].run, other)])
    assert len(found) == 4
    assert any("different seeds" in text for text in found)
    assert any("different workloads" in text for text in found)


def test_page_is_complete_and_self_contained(dirs: dict[str, Path], tmp_path: Path) -> None:
    """All three files are there; the page links the runs' reports and nothing else."""
    report = build_report(dirs["bare"])
    out = tmp_path / "deep" / "compare"
    page_file = build_compare([dirs[name] for name in ("drop", "mark", "bad", "bare")], out)
    page = Page(page_file.read_text(encoding="utf-8"))
    assert page_file == out / "compare.html"
    assert {path.name for path in out.iterdir()} == {"compare.html", "compare.csv", "compare.txt"}
    assert page.problems == []
    (link,) = page.outside_links()
    assert (out / link).resolve() == report.resolve()
    labels = [picture.get("aria-label") for picture in page.pictures()]
    assert labels == [
        "Training", "Inference", "Time to first token, all runs", "Probe latency, all runs",
        "Loss and marks",
    ]  # fmt: skip
    assert page.words.count("infiniband (INVALID)") >= 3
    assert "Read with care" in page.text
    assert page_file.stat().st_size < 1_500_000


def test_runs_of_nothing_have_sentences(tmp_path: Path) -> None:
    """Where no run has something to draw, a sentence says so."""
    runs = [
        FakeRun(run_id=name, iterations=0, requests=0, probes=0, samples=5) for name in ("a", "b")
    ]
    page = Page(build_compare([write_run(tmp_path, r) for r in runs], tmp_path / "out").read_text())
    assert page.problems == []
    assert page.pictures() == []
    for sentence in (
        "None of the runs had a training job.", "None of the runs had inference requests.",
        "None of the runs had background traffic.",
        "None of the runs has probes that arrived.", "No run dropped or marked a packet.",
    ):  # fmt: skip
        assert sentence in page.words


def test_a_place_that_cannot_be_written(dirs: dict[str, Path], tmp_path: Path) -> None:
    """A comparison that cannot be stored is one clear error."""
    (tmp_path / "file").write_text("")
    with pytest.raises(MachineError, match="cannot be created"):
        build_compare([dirs["drop"], dirs["mark"]], tmp_path / "file" / "out")


def test_first_run_may_be_the_one_that_lacks_a_workload(dirs: dict[str, Path]) -> None:
    """A figure that only later runs have is shown without a change."""
    runs = opened(dirs, "bare", "drop")
    row = next(r for r in comparison.figures(runs) if r.name == "iteration, mean")
    assert row.values == (None, 288.0)
    cells = next(r for r in comparison.table_rows(runs, [row]) if r[1] == "iteration, mean")
    assert cells[2:] == ["-", "288 ms"]
    assert isinstance(runs[0].run, RunReader)
