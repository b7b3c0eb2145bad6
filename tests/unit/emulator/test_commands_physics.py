"""``fabriclab validate-physics``: what runs, what is printed and written, exit codes."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from emulator.cli import main
from emulator.commands import validate_physics
from emulator.physics import registry
from emulator.physics.case import Case, Measured, Runs
from emulator.physics.drawing import Look, Panel, Series
from tests.fakes.launching import FakeLauncher
from tests.fakes.physics import toy_case


@pytest.fixture
def launcher(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeLauncher:
    """Takes the place of everything that runs."""
    fake = FakeLauncher(tmp_path / "results")
    monkeypatch.setattr(validate_physics, "launched", fake)
    return fake


@pytest.fixture
def suite(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Puts cases in place of the real ones."""

    def use(*cases: Case) -> None:
        monkeypatch.setattr(registry, "MAKERS", [lambda case=case: case for case in cases])

    return use


def validate(launcher: FakeLauncher, *arguments: str) -> int:
    """The command's exit code."""
    return main(["validate-physics", *arguments, "--results", str(launcher.results)])


def test_cases_that_pass_are_code_0(
    launcher: FakeLauncher, suite: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    """One row for each quantity, the conclusion, and where the page is."""
    suite(toy_case("one"), toy_case("two", runs=["a", "b"], expected=2 * 412_345))
    assert validate(launcher) == 0
    out = capsys.readouterr().out
    assert "one   packets   412,340 packets  412,340 packets  5 %        PASS" in out
    assert "2 of 2 cases passed." in out
    assert "physics.html" in out
    assert [label for label, _ in launcher.ran] == ["one run", "two a", "two b"]
    assert {experiment.clock for _, experiment in launcher.ran} == {"virtual"}
    assert launcher.ran[1][1].name == "physics-two-a"


def test_one_that_fails_is_code_1_and_the_others_still_run(
    launcher: FakeLauncher, suite: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    """A number out of tolerance."""
    suite(toy_case("wrong", expected=1.0), toy_case("right"))
    assert validate(launcher) == 1
    out = capsys.readouterr().out
    assert "FAIL" in out
    assert "1 of 2 cases passed; FAIL: wrong" in out


def test_invalid_runs_and_runs_that_cannot_be_made_are_failures_with_a_reason(
    launcher: FakeLauncher, suite: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    """Both stop nothing else."""
    suite(toy_case("slow"), toy_case("broken"), toy_case("right"))
    launcher.invalid, launcher.failing = ("slow run",), ("broken run",)
    assert validate(launcher) == 1
    out = capsys.readouterr().out
    assert "! slow: run 'run' is INVALID: too slow" in out
    assert "! broken: run 'run' could not be made: the controller ended early" in out
    assert "1 of 3 cases passed; FAIL: slow, broken" in out


def test_files_hold_what_was_printed(
    launcher: FakeLauncher, suite: Callable[..., None], tmp_path: Path
) -> None:
    """physics.json for programs, physics.txt, and a page with figures beside their references."""
    suite(with_figure(toy_case("drawn")), toy_case("wrong", expected=1.0))
    assert validate(launcher, "--out", str(tmp_path / "out")) == 1
    data = json.loads((tmp_path / "out" / "physics.json").read_text())
    assert (data["format"], data["clock"], data["passed"]) == (
        "fabriclab-physics",
        "virtual",
        False,
    )
    drawn = data["cases"][0]
    assert drawn["passed"] is True
    assert drawn["rows"] == [
        {"quantity": "packets", "unit": "packets", "expected": 412345.0, "measured": 412345.0,
         "tolerance": 0.05, "relative": True, "sense": "near", "source": "", "passed": True}
    ]  # fmt: skip
    assert (launcher.results / drawn["runs"]["run"]).is_dir()
    assert "1 of 2 cases passed" in (tmp_path / "out" / "physics.txt").read_text()
    page = (tmp_path / "out" / "physics.html").read_text()
    assert page.count("<svg") == 2
    for words in ("what was expected", "A toy called drawn", "412,340 packets", "FAIL: wrong"):
        assert words in page
    assert "<script" not in page


def with_figure(case: Case) -> Case:
    """The case with a diagram."""

    def draw(_runs: Runs) -> list[Panel]:
        reference = Series("what was expected", [0, 1], [0, 1], Look.REFERENCE)
        line = Series("over time", [0, 1], [1, 1], Look.LINE)
        return [Panel("A diagram", "x", "y", (reference, line, Series("measured", [1], [1])))]

    return dataclasses.replace(case, draw=draw)


def test_ctrl_c_keeps_what_is_done(
    launcher: FakeLauncher, suite: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    """The case under way is left out; the page says that the suite was ended early."""
    suite(toy_case("done"), toy_case("half"), toy_case("never"))
    launcher.interrupted_in = "half run"
    assert validate(launcher) == 130
    out = capsys.readouterr().out
    assert "1 of 1 cases passed." in out
    assert "half" not in out
    page = next(launcher.results.glob("physics-virtual-*/physics.html")).read_text()
    assert "ended early" in page
    assert len(launcher.ran) == 2


def test_ctrl_c_before_anything_is_done_still_ends_in_order(
    launcher: FakeLauncher, suite: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    """No table, no crash."""
    suite(toy_case("half"))
    launcher.interrupted_in = "half run"
    assert validate(launcher) == 130
    assert "0 of 0 cases passed." in capsys.readouterr().out


def test_only_the_cases_of_a_clock_run_under_it(
    launcher: FakeLauncher, suite: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    """And at the table's whole tolerance."""
    suite(toy_case("both", expected=412_345 / 1.08), toy_case("reference", live=False))
    assert validate(launcher, "--clock", "live") == 0
    assert [label for label, _ in launcher.ran] == ["both run"]
    assert {experiment.clock for _, experiment in launcher.ran} == {"live"}
    assert "10 %" in capsys.readouterr().out


def test_list_runs_nothing(
    launcher: FakeLauncher, suite: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    """Names, tables, clocks."""
    suite(toy_case("one"), toy_case("two", live=False))
    assert validate(launcher, "--list") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split()[:4] == ["one", "V0", "virtual,", "live"]
    assert lines[2].split()[:3] == ["two", "V0", "virtual"]
    assert launcher.ran == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--case", "nothing"], "one, two"),
        (["--case", "two", "--clock", "live"], "does not run under the live clock"),
        (["--out", "FILE/below"], "cannot be created"),
    ],
)
def test_wrong_input_is_code_2_before_anything_runs(
    launcher: FakeLauncher,
    suite: Callable[..., None],
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    arguments: list[str],
    message: str,
) -> None:
    """One line that says what is wrong."""
    (tmp_path / "file").touch()
    suite(toy_case("one"), toy_case("two", live=False))
    asked = [word.replace("FILE", str(tmp_path / "file")) for word in arguments]
    assert validate(launcher, *asked) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert launcher.ran == []


def test_a_measurement_that_is_missing_fails(
    launcher: FakeLauncher, suite: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    """A dash, not a crash and not a pass."""

    def nothing(_runs: Runs) -> Measured:
        return {}

    suite(dataclasses.replace(toy_case("empty"), measure=nothing))
    assert validate(launcher) == 1
    assert "412,340 packets  -         5 %" in capsys.readouterr().out
