"""``fabriclab bench``: which measurements run, what is printed, what decides the exit code."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from emulator import doctor
from emulator.bench import registry, rows
from emulator.bench.rows import Measured, Row, at_least, at_most
from emulator.bench.setting import Setting
from emulator.cli import main
from emulator.ownership import Owned
from tests.fakes.machine import FakeMachine, child
from topologies.errors import MachineError, UnknownNameError


class FakeBench:
    """A measurement that says what the test wants."""

    SUMMARY = "something"

    def __init__(self, name: str, found: Callable[[], list[Row]]) -> None:
        self.NAME, self._found = name, found
        self.settings: list[Setting] = []

    def measure(self, setting: Setting) -> list[Row]:
        """Leaves a file behind, as measurements do."""
        assert setting.folder.is_dir()
        (setting.folder / self.NAME).touch()
        self.settings.append(setting)
        setting.note(f"measuring {self.NAME}")
        return self._found()


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeMachine:
    """A machine that has all that is needed."""
    monkeypatch.setattr(doctor, "require", lambda: None)
    return FakeMachine(tmp_path, monkeypatch)


def _use(monkeypatch: pytest.MonkeyPatch, *benches: FakeBench) -> None:
    monkeypatch.setattr(registry, "BENCHES", benches)


FAST = FakeBench("fast", lambda: [at_most("start", 1.5, "s", 2), Row("size", 12345.6, "frames")])
SLOW = FakeBench("slow", lambda: [at_least("ratio", 2.5, "x", 3, "beside the other")])


def test_tables_stand_beside_their_requirements(
    machine: FakeMachine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Figures, units, requirements, and whether they are met; progress goes elsewhere."""
    _use(monkeypatch, FAST)
    assert main(["bench"]) == 0
    captured = capsys.readouterr()
    lines = captured.out.splitlines()
    assert lines[0].startswith("load of the machine before: ")
    assert lines[2] == "fast: something"
    assert lines[3].split() == ["start", "1.5", "s", "at", "most", "2", "s", "ok"]
    assert lines[4].split() == ["size", "12,346", "frames"]
    assert captured.err == "  measuring fast\n"


def test_a_missed_requirement_is_code_1(
    machine: FakeMachine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is marked in its table and named at the end; the others run all the same."""
    _use(monkeypatch, SLOW, FAST)
    assert main(["bench", "--quiet"]) == 1
    captured = capsys.readouterr()
    assert "at least 3 x  MISSED  beside the other" in captured.out
    assert "fast: something" in captured.out
    assert captured.err == "fabriclab: requirement missed: slow: ratio\n"


def test_named_measurements_run_alone_and_in_the_list_s_order(
    machine: FakeMachine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The order of the command line does not matter."""
    ran: list[str] = []

    def note(name: str) -> Callable[[], list[Row]]:
        def found() -> list[Row]:
            ran.append(name)
            return []

        return found

    _use(monkeypatch, *(FakeBench(name, note(name)) for name in ("a", "b", "c")))
    assert main(["bench", "c", "a"]) == 0
    assert ran == ["a", "c"]
    assert main(["bench", "a", "d"]) == 2
    assert "'d' is not a known measurement; known: a, b, c" in capsys.readouterr().err
    assert ran == ["a", "c"]


def test_scratch_files_go(machine: FakeMachine, monkeypatch: pytest.MonkeyPatch) -> None:
    """All measurements share a folder, which is gone afterwards, also after Ctrl-C."""

    def interrupted() -> list[Row]:
        raise KeyboardInterrupt

    first, second = FakeBench("first", list), FakeBench("second", interrupted)
    _use(monkeypatch, first, second)
    assert main(["bench"]) == 130
    (used,) = {setting.folder for bench in (first, second) for setting in bench.settings}
    assert not used.exists()


def test_figures_are_written_for_programs(
    machine: FakeMachine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the machine and the version, also when a requirement was missed."""
    _use(monkeypatch, FAST, SLOW)
    target = tmp_path / "bench.json"
    assert main(["bench", "--json", str(target)]) == 1
    data = json.loads(target.read_text())
    assert data["machine"]["processors"] >= 1
    assert [bench["name"] for bench in data["benches"]] == ["fast", "slow"]
    assert data["benches"][1]["rows"] == [
        {"what": "ratio", "value": 2.5, "unit": "x", "requirement": "at least 3 x", "met": False,
         "remark": "beside the other"}
    ]  # fmt: skip


@pytest.mark.parametrize("target", ["missing/bench.json", "."])
def test_a_file_that_cannot_be_written_is_refused_before_measuring(
    machine: FakeMachine,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    target: str,
) -> None:
    """Minutes of measuring must not end in an error."""
    never = FakeBench("never", list)
    _use(monkeypatch, never)
    assert main(["bench", "--json", str(tmp_path / target)]) == 2
    assert "cannot be written" in capsys.readouterr().err
    assert never.settings == []


def test_a_failing_measurement_is_one_line_and_code_2(
    machine: FakeMachine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What was measured before it has been printed."""

    def failing() -> list[Row]:
        raise MachineError("the kernel took 3 of 256 frames")

    _use(monkeypatch, FAST, FakeBench("failing", failing))
    assert main(["bench", "--quiet"]) == 2
    captured = capsys.readouterr()
    assert "fast: something" in captured.out
    assert captured.err == "fabriclab: error: the kernel took 3 of 256 frames\n"


def test_it_keeps_out_of_the_way_of_a_run(
    machine: FakeMachine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both would be wrong; --alongside accepts that."""
    never = FakeBench("never", list)
    _use(monkeypatch, never)
    with child() as owner:
        machine.add(Owned("aaaaaa", owner))
        assert main(["bench"]) == 2
        assert "run aaaaaa" in capsys.readouterr().err
        assert never.settings == []
        assert main(["bench", "--alongside"]) == 0


def test_the_measurements_can_be_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """Without root and without measuring anything."""
    assert main(["bench", "--list"]) == 0
    names = [line.split(":")[0] for line in capsys.readouterr().out.splitlines()]
    assert names == [bench.NAME for bench in registry.BENCHES]
    assert {"startup", "frames", "throughput", "cost", "virtual"} == set(names)


def test_every_name_is_used_once() -> None:
    """So that a name on the command line means one thing."""
    names = [bench.NAME for bench in registry.BENCHES]
    assert len(set(names)) == len(names)
    with pytest.raises(UnknownNameError):
        registry.chosen(["nothing"])


@pytest.mark.parametrize(
    ("value", "limit", "most", "least"),
    [(1, 2, True, False), (2, 2, True, True), (3, 2, False, True)],
)
def test_limits_include_the_limit(value: float, limit: float, most: bool, least: bool) -> None:
    """At most and at least, as the words say."""
    assert at_most("a", value, "s", limit).met is most
    assert at_least("a", value, "s", limit).met is least
    missed = Measured("m", "", [at_most("a", value, "s", limit)]).missed
    assert missed == ([] if most else ["a"])


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.01234, "0.0123"), (3.14159, "3.14"), (99.94, "99.9"), (100.4, "100"), (729062.4, "729,062"),
     (0.0, "0")],
)  # fmt: skip
def test_figures_have_the_digits_that_they_deserve(value: float, text: str) -> None:
    """Three of them, and thousands with commas."""
    assert rows.number(value) == text
