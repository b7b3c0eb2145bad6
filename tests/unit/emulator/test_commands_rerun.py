"""``fabriclab rerun``: a run is repeated as it was, and compared."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from emulator.cli import main
from emulator.commands import rerun
from emulator.report import html
from emulator.run.inputs import copier, input_files, self_contained
from emulator.run.session import Outcome
from emulator.spec.load import load
from emulator.spec.model import Experiment
from tests.fakes.launching import FakeLauncher
from tests.fakes.run_folder import FakeRun, write_run
from tests.unit.emulator.spec_samples import EXAMPLES

SMALL: dict[str, Any] = {"samples": 5, "probes": 20, "requests": 5, "iterations": 1}
Edit = Callable[[dict[str, Any]], None]


@dataclass
class Repeating(FakeLauncher):
    """A launcher whose runs come out as the first one did, but for what a test changes.

    Attributes:
        summary: changes the repetition's summary.
        manifest: changes its manifest.
        slower: factor on the latency of its probes.
    """

    summary: Edit = field(default=lambda _: None)
    manifest: Edit = field(default=lambda _: None)
    slower: int = 1

    def run(self, experiment: Experiment, label: str = "") -> Outcome:
        """Writes a run folder of the experiment."""
        outcome = super().run(experiment, label)
        complete(outcome.folder, experiment, self.summary, self.manifest)
        slow_down(outcome.folder / "probes.csv", self.slower)
        return outcome


def slow_down(probes: Path, factor: int) -> None:
    """Makes every latency longer."""
    header, *rows = [line.split(",") for line in probes.read_text().splitlines()]
    at = header.index("latency_ns")
    for row in rows:
        row[at] = str(int(row[at]) * factor) if row[at] else ""
    probes.write_text("".join(",".join(row) + "\n" for row in [header, *rows]))


def complete(folder: Path, experiment: Experiment, summary: Edit, manifest: Edit) -> None:
    """Puts the experiment, its scale and what it depends on into a synthetic run folder."""
    text = self_contained(experiment, input_files(experiment), copier(folder))
    (folder / "spec.yaml").write_text(text)
    scale = {"dilation": experiment.dilation or 1.0, "shrink": experiment.shrink or 1.0}

    def common(value: dict[str, Any]) -> None:
        value.update(scale, depends_on={"kernel": "ab12", "seed": experiment.seed})

    for name, edits in (("manifest.json", (common, manifest)), ("summary.json", (summary,))):
        value = json.loads((folder / name).read_text())
        for edit in edits:
            edit(value)
        if name == "summary.json":
            value.update(scale)
        (folder / name).write_text(json.dumps(value))


@pytest.fixture
def launcher(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repeating:
    """Takes the place of everything that runs."""
    fake = Repeating(tmp_path / "results")
    monkeypatch.setattr(rerun, "launched", fake)
    monkeypatch.setattr(html, "build_report", lambda run: run / "report.html")
    return fake


def nothing(_: dict[str, Any]) -> None:
    """No change."""


def first_run(
    tmp_path: Path, clock: str = "virtual", label: str = "", file: str = "single-flow.yaml",
    **settings: str,
) -> Path:  # fmt: skip
    """A run that exists, in a folder that was taken from another machine."""
    experiment = load(EXAMPLES / file, {"clock": clock, **settings})
    run = FakeRun(
        name=experiment.name, run_id="fffff1", profile=experiment.profile, clock=clock,
        seed=experiment.seed, extra_manifest={"label": label}, **SMALL,
    )  # fmt: skip
    folder = write_run(tmp_path / "elsewhere", run)
    complete(folder, experiment, nothing, nothing)
    return folder


def repeat(launcher: Repeating, run: Path, *arguments: str) -> int:
    """Runs the command."""
    return main(["rerun", str(run), "--results", str(launcher.results), *arguments])


def test_a_repetition_under_the_virtual_clock_is_equal(
    launcher: Repeating, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Seed, label and all settings as they were; code 0, and every file is equal."""
    run = first_run(tmp_path, label="small", seed="11", shrink="1")
    assert repeat(launcher, run, "--quiet") == 0
    ((label, experiment),) = launcher.ran
    assert (label, experiment.seed, experiment.clock) == ("small", 11, "virtual")
    out = capsys.readouterr().out
    assert "All that the results depend on is the same." in out
    assert "9 of 9 files are equal" in out
    assert out.endswith("The results are the same.\n")


def test_other_results_are_code_1_with_the_reason(
    launcher: Repeating, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Hashes, versions that are not the same, and the files that differ."""
    run = first_run(tmp_path, shrink="1")
    launcher.summary = lambda value: value["hashes"].update(results="another")
    launcher.manifest = lambda value: value.update(depends_on={"kernel": "cd34", "seed": 1})
    assert repeat(launcher, run) == 1
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["hashes.results", "0be18a55", "another", "NOT", "EQUAL"] in lines
    assert ["kernel", "ab12", "cd34"] in lines
    assert ["summary.json:", "hashes.results:", "0be18a55,", "another"] in lines
    assert lines[-1] == ["The", "results", "are", "NOT", "the", "same."]


def test_the_scale_is_that_of_the_run(launcher: Repeating, tmp_path: Path) -> None:
    """What the tool chose itself under the virtual clock it chooses again; else numbers are set."""
    run = first_run(tmp_path, "live", file="incast.yaml", dilation="3000", shrink="20")
    spec = run / "spec.yaml"
    spec.write_text(spec.read_text().replace("3000", "auto").replace("shrink: 20", "shrink: auto"))
    assert repeat(launcher, run) in (0, 1)
    ((_, experiment),) = launcher.ran
    assert (experiment.dilation, experiment.shrink) == (3000, 20)


def test_auto_stays_where_it_means_the_same(launcher: Repeating, tmp_path: Path) -> None:
    """So that spec.yaml is equal; where this version would choose otherwise, the number is set."""
    run = first_run(tmp_path, shrink="auto")
    assert repeat(launcher, run) == 0
    assert launcher.ran[-1][1].shrink is None
    for name in ("manifest.json", "summary.json"):
        value = json.loads((run / name).read_text())
        value["shrink"] = 2.0
        (run / name).write_text(json.dumps(value))
    repeat(launcher, run)
    assert launcher.ran[-1][1].shrink == 2


def test_a_folder_from_elsewhere_has_its_input_files(launcher: Repeating, tmp_path: Path) -> None:
    """The trace that it replays is in it."""
    run = first_run(tmp_path, file="training-beside-inference.yaml", shrink="500")
    moved = run.rename(tmp_path / "moved")
    assert repeat(launcher, moved) == 0
    (trace,) = input_files(launcher.ran[0][1])
    assert trace.path.parent == moved / "inputs"


def test_live_runs_are_compared_by_their_statistics(
    launcher: Repeating, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """They do not repeat to the byte; code 0 as long as figures are within tolerance."""
    run = first_run(tmp_path, "live", dilation="1000", shrink="1")
    launcher.summary = lambda value: value["hashes"].update(results="another")
    assert repeat(launcher, run) == 0
    out = capsys.readouterr().out
    assert "Runs under the live clock do not repeat to the byte" in out
    assert out.endswith("figures of 4 within tolerance.\n")
    assert "files are equal" not in out


@pytest.mark.parametrize(
    "change",
    [
        lambda value: value["training"][0].update(busbw_gbps=1.0),
        lambda value: value["hashes"].update(schedule="another"),
        lambda value: value.update(verdict="INVALID", reasons=["too slow"]),
    ],
    ids=["figures", "schedule", "verdict"],
)
def test_live_runs_that_disagree_are_code_1(
    launcher: Repeating, tmp_path: Path, change: Edit
) -> None:
    """Other figures, another schedule, or a run that cannot be believed."""
    launcher.summary = change
    assert repeat(launcher, first_run(tmp_path, "live", dilation="1000", shrink="1")) == 1


def test_another_seed_must_give_other_results_and_fitting_means(
    launcher: Repeating, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """At the same scale; equal results are no agreement but a seed without effect."""
    run = first_run(tmp_path, shrink="auto")
    assert repeat(launcher, run, "--seed", "8") == 1
    assert "so the seed decides about nothing" in capsys.readouterr().out
    launcher.summary = lambda value: value["hashes"].update(results="another")
    assert repeat(launcher, run, "--seed", "8") == 0
    assert (launcher.ran[-1][1].seed, launcher.ran[-1][1].shrink) == (8, None)
    out = capsys.readouterr().out
    assert out.endswith("The means fit.\n")
    assert [line.split() for line in out.splitlines() if line.startswith("seed")] == [
        ["seed", "1", "8"]
    ]


def test_means_that_do_not_fit_are_code_1(
    launcher: Repeating, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every probe takes ten times as long."""
    run = first_run(tmp_path, shrink="1")
    launcher.summary = lambda value: value["hashes"].update(results="another")
    launcher.slower = 10
    assert repeat(launcher, run, "--seed", "8") == 1
    assert capsys.readouterr().out.endswith("The means do NOT fit.\n")


def test_ctrl_c_compares_nothing(
    launcher: Repeating, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What was cut short has no results to be the same."""
    launcher.interrupted_in = "x"
    assert repeat(launcher, first_run(tmp_path, label="x")) == 130
    captured = capsys.readouterr()
    assert "ended early, so nothing is compared" in captured.err
    assert "hashes.results" not in captured.out


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda run: (run / "summary.json").unlink(), "was cut short"),
        (lambda run: (run / "spec.yaml").unlink(), "has no spec.yaml, so it cannot be repeated"),
        (lambda run: (run / "manifest.json").unlink(), "is not a run folder"),
        (lambda run: (run / "spec.yaml").write_text("fabric: {}"), "spec.yaml"),
        (lambda run: next((run / "inputs").iterdir()).unlink(), "does not exist; looked for"),
    ],
    ids=["summary", "spec", "manifest", "experiment", "input"],
)
def test_what_cannot_be_repeated_is_code_2(
    launcher: Repeating,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    damage: Callable[[Path], object],
    message: str,
) -> None:
    """One line, before anything runs."""
    run = first_run(tmp_path, file="training-beside-inference.yaml")
    damage(run)
    assert repeat(launcher, run) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert launcher.ran == []


def test_an_unknown_run_is_code_2(launcher: Repeating, capsys: pytest.CaptureFixture[str]) -> None:
    """Neither a folder nor an id."""
    assert main(["rerun", "nothing", "--results", str(launcher.results)]) == 2
    assert "is neither a folder nor a run" in capsys.readouterr().err
