"""``fabriclab compare FILE`` and ``fabriclab demo``: one experiment under several settings."""

from __future__ import annotations

import sysconfig
from pathlib import Path

import pytest

from emulator import calibration, examples
from emulator.cli import main
from emulator.commands import compare, demo
from emulator.plan import make_plan
from emulator.report import compare as pages
from emulator.report import html
from emulator.results import catalog
from emulator.results.reader import RunReader
from emulator.spec.load import load
from tests.fakes.launching import FakeLauncher
from tests.unit.emulator.spec_samples import EXAMPLES
from topologies.errors import MachineError

SINGLE = str(EXAMPLES / "single-flow.yaml")
BOTH = ["--profiles", "ethernet,roce-ecn"]


@pytest.fixture
def launcher(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeLauncher:
    """Takes the place of everything that needs root."""
    fake = FakeLauncher(tmp_path / "results")
    monkeypatch.setattr(compare, "launched", fake)
    monkeypatch.setattr(calibration, "cached", lambda: 30_000.0)
    # Pictures have tests of their own, and they take seconds.
    monkeypatch.setattr(pages, "pictures", lambda *_: [])
    monkeypatch.setattr(html, "build_report", _page_without_pictures)
    return fake


def _page_without_pictures(run: Path) -> Path:
    page = run / "report.html"
    page.touch()
    return page


def _compare(launcher: FakeLauncher, *arguments: str) -> int:
    return main(["compare", *arguments, "--results", str(launcher.results)])


def test_a_file_runs_under_each_profile(
    launcher: FakeLauncher, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same seed, the labels in the manifests, one table, a page, a report for each."""
    assert _compare(launcher, SINGLE, *BOTH, "--seed", "11") == 0
    assert [(label, x.profile, x.seed) for label, x in launcher.ran] == [
        ("ethernet", "ethernet", 11),
        ("roce-ecn", "roce-ecn", 11),
    ]
    out = capsys.readouterr().out
    assert "roce-ecn against ethernet" in out
    paths = [line.split(": ")[1] for line in out.splitlines() if ".html" in line]
    assert [Path(path).name for path in paths] == ["compare.html", "report.html", "report.html"]
    assert all(Path(path).is_file() for path in paths)
    assert launcher.log.getvalue().split("\n")[0] == "  1 of 2: ethernet"


def test_a_file_runs_under_each_change(
    launcher: FakeLauncher, capsys: pytest.CaptureFixture[str]
) -> None:
    """--set holds for all of them, --with for one; the labels stand in the table."""
    changes = ["--with", "small: fabric.buffer=1 MB", "--with", "large: fabric.buffer=8 MB, seed=2"]
    assert _compare(launcher, SINGLE, *changes, "--set", "seed=1", "--set", "name=mine") == 0
    ran = [(label, x.fabric.buffer_bytes, x.seed, x.name) for label, x in launcher.ran]
    assert ran == [("small", 1_000_000, 1, "mine"), ("large", 8_000_000, 2, "mine")]
    assert "large against small" in capsys.readouterr().out


def test_a_file_runs_under_both_clocks(
    launcher: FakeLauncher, capsys: pytest.CaptureFixture[str]
) -> None:
    """Shrunk alike, though each clock alone would shrink otherwise; their figures are judged."""
    assert _compare(launcher, SINGLE, "--clock", "live,virtual", "--budget", "2 s") == 0
    (first, live), (second, virtual) = launcher.ran
    assert (first, live.clock) == ("live clock", "live")
    assert (second, virtual.clock) == ("virtual clock", "virtual")
    alone = load(SINGLE, {"clock": "virtual", "budget": "2 s"})
    assert make_plan(alone).scaling.shrink.value < live.shrink == virtual.shrink
    out = capsys.readouterr().out
    assert "Live against virtual: live clock, virtual clock" in out
    assert "The clocks agree: " in out


def test_one_clock_holds_for_all_settings(launcher: FakeLauncher) -> None:
    """It is no label, and leaves each its own scale."""
    assert _compare(launcher, SINGLE, *BOTH, "--clock", "virtual") == 0
    assert [(label, x.clock, x.shrink) for label, x in launcher.ran] == [
        ("ethernet", "virtual", None),
        ("roce-ecn", "virtual", None),
    ]


def test_a_scale_of_the_user_s_stays(launcher: FakeLauncher) -> None:
    """Only "auto" is chosen anew."""
    chosen = ["--clock", "live,virtual", "--set", "shrink=50"]
    assert _compare(launcher, SINGLE, *chosen) == 0
    assert [x.shrink for _, x in launcher.ran] == [50, 50]


def test_the_comparison_goes_where_the_user_says(launcher: FakeLauncher, tmp_path: Path) -> None:
    """--out names the folder."""
    out = tmp_path / "elsewhere"
    assert _compare(launcher, SINGLE, *BOTH, "--out", str(out)) == 0
    assert (out / "compare.csv").is_file()


def test_an_invalid_run_is_code_1_and_named(
    launcher: FakeLauncher, capsys: pytest.CaptureFixture[str]
) -> None:
    """The comparison is made all the same."""
    launcher.invalid = ("roce-ecn",)
    assert _compare(launcher, SINGLE, *BOTH) == 1
    captured = capsys.readouterr()
    assert captured.err == "fabriclab: the run 'roce-ecn' is INVALID; its report says why\n"
    assert "comparison: " in captured.out


THREE = ["--with", "a: seed=1", "--with", "b: seed=2", "--with", "c: seed=3"]


def test_ctrl_c_compares_what_had_finished(
    launcher: FakeLauncher, capsys: pytest.CaptureFixture[str]
) -> None:
    """The run that was cut short keeps its report but is not compared; the rest does not start."""
    launcher.interrupted_in = "c"
    assert _compare(launcher, SINGLE, *THREE, "--with", "d: seed=4") == 130
    captured = capsys.readouterr()
    assert [label for label, _ in launcher.ran] == ["a", "b", "c"]
    assert "b against a" in captured.out
    assert "c against a" not in captured.out
    assert captured.out.count("report: ") == 3
    assert "ended early: the comparison holds the runs that had finished" in captured.err


def test_ctrl_c_in_the_first_run_shows_that_run(
    launcher: FakeLauncher, capsys: pytest.CaptureFixture[str]
) -> None:
    """There is nothing to compare, so its own table is shown."""
    launcher.interrupted_in = "a"
    assert _compare(launcher, SINGLE, *THREE) == 130
    captured = capsys.readouterr()
    assert captured.out.startswith("INVALID")
    assert "comparison: " not in captured.out
    assert "ended early: the comparison needs two runs that finished" in captured.err


def test_one_that_cannot_run_does_not_stop_the_others(
    launcher: FakeLauncher, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is named with its reason; code 2."""
    launcher.failing = ("b",)
    assert _compare(launcher, SINGLE, *THREE) == 2
    captured = capsys.readouterr()
    assert "c against a" in captured.out
    assert "fabriclab: b: the controller ended early" in captured.err


def test_a_report_that_cannot_be_written_does_not_hide_the_table(
    launcher: FakeLauncher, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """On a full disk the runs are there all the same; what is missing is named; code 2."""

    def full(run: Path) -> Path:
        if run.name.endswith("000002"):
            raise MachineError(f"{run / 'report.html'} cannot be written: No space left on device")
        return _page_without_pictures(run)

    monkeypatch.setattr(html, "build_report", full)
    assert _compare(launcher, SINGLE, *BOTH) == 2
    captured = capsys.readouterr()
    assert "roce-ecn against ethernet" in captured.out
    assert captured.out.count("report: ") == 1
    assert "000002/report.html cannot be written: No space left on device" in captured.err


def test_a_comparison_that_cannot_be_written_is_named(
    launcher: FakeLauncher, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The reports' paths are printed before it."""
    (tmp_path / "file").touch()
    assert _compare(launcher, SINGLE, *BOTH, "--out", str(tmp_path / "file" / "x")) == 2
    captured = capsys.readouterr()
    assert captured.out.count("report: ") == 2
    assert "cannot be created" in captured.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([SINGLE], "0 is too few settings to run under"),
        ([SINGLE, "--profiles", "ethernet"], "1 is too few settings"),
        ([SINGLE, "--profiles", "ethernet,nonsense"], "'nonsense': profile: 'nonsense' is not"),
        ([SINGLE, "--with", "a:", "--with", "b: fabric.leaves=0"], "single-flow.yaml"),
        ([SINGLE, "--with", "a:", "--with", "b: dilation=1e9"], "'b': dilation: 1000000000.0"),
        ([SINGLE, SINGLE, *BOTH], "is a file beside other files or runs"),
        (["aa11", SINGLE], "is a file beside other files or runs"),
        (["missing.yaml", *BOTH], "'missing.yaml' does not exist"),
        (["missing.yaml"], "0 is too few settings"),
        ([SINGLE, "--clock", "virtual"], "0 is too few settings"),
        ([SINGLE, "--clock", "live,x"], "'x' is not a known clock"),
        (["aa11", "bb22", "--clock", "live"], "--clock: 'aa11' has no meaning for runs that exist"),
        (
            [SINGLE, "--clock", "live,virtual", "--set", "clock=live"],
            "--set clock: 'live' contradicts --clock live,virtual",
        ),
        (["aa11", "bb22", *BOTH], "--profiles: 'aa11' has no meaning for runs that exist"),
        (["aa11", "bb22", "--seed", "3"], "--seed: 'aa11' has no meaning for runs that exist"),
        ([".", "bb22", "--with", "a: b=c"], "--with: '.' has no meaning for runs that exist"),
    ],
)
def test_mistakes_are_found_before_anything_runs(
    launcher: FakeLauncher,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    message: str,
) -> None:
    """One line, code 2; also a mistake in the last of the settings keeps the first from running."""
    assert _compare(launcher, *arguments) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert launcher.ran == []
    assert not launcher.results.exists()


def test_the_demo_compares_two_profiles(
    launcher: FakeLauncher, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tail drop first, then marking with senders that react, on the example of both workloads."""
    assert main(["demo", "--results", str(launcher.results), "--quiet"]) == 0
    (first, without), (second, with_ecn) = launcher.ran
    assert (first, second) == ("ethernet", "roce-ecn")
    assert not without.ecn
    assert with_ecn.ecn
    assert {workload.kind for workload in without.workloads} == {"training", "inference"}
    labels = [
        RunReader.open(path).manifest["label"] for path in catalog.find_runs(launcher.results)
    ]
    assert sorted(labels) == ["ethernet", "roce-ecn"]
    assert "comparison: " in capsys.readouterr().out


def test_the_demo_runs_under_either_clock(launcher: FakeLauncher) -> None:
    """Without root, where the kernel is built."""
    assert main(["demo", "--results", str(launcher.results), "--clock", "virtual"]) == 0
    assert [x.clock for _, x in launcher.ran] == ["virtual", "virtual"]


def test_examples_come_from_the_checkout() -> None:
    """Where there is one, so that what a user edits is what runs."""
    assert examples.example(demo.EXAMPLE) == EXAMPLES / demo.EXAMPLE


def test_examples_of_an_installation_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the files that setup.cfg installs, below the installation's data folder."""
    monkeypatch.setattr(examples, "_CHECKOUT", tmp_path / "none")
    monkeypatch.setattr(sysconfig, "get_path", lambda *_: str(tmp_path / "prefix"))
    with pytest.raises(MachineError, match="is not installed; looked in"):
        examples.example(demo.EXAMPLE)
    _install(tmp_path / "prefix")
    found = examples.example(demo.EXAMPLE)
    assert found.parent == tmp_path / "prefix" / "share" / "fabriclab" / "examples"
    assert load(found).name == "training-beside-inference"


def _install(prefix: Path) -> None:
    """Puts the data files where setup.cfg says."""
    import configparser

    root = EXAMPLES.parent
    parser = configparser.ConfigParser()
    parser.read(root / "setup.cfg", encoding="utf-8")
    for folder, patterns in parser["options.data_files"].items():
        (prefix / folder).mkdir(parents=True)
        for pattern in patterns.split():
            for file in root.glob(pattern):
                (prefix / folder / file.name).write_bytes(file.read_bytes())
