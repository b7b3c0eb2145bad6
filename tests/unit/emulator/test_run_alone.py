"""Two runs at once: the second is refused, unless the user accepts it."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path

import pytest

from emulator import calibration, doctor
from emulator.cli import main
from emulator.clock.traits import LIVE_CLOCK, VIRTUAL_CLOCK
from emulator.kernel.process import start_time
from emulator.ownership import Ledger, Owned
from emulator.run import launch, session
from emulator.run.alone import alone
from emulator.run.progress import Progress
from emulator.spec.load import load
from tests.fakes.machine import GONE, FakeMachine, child
from tests.unit.emulator.spec_samples import EXAMPLES
from topologies.errors import MachineError

SILENT = Progress(quiet=True)
SINGLE = str(EXAMPLES / "single-flow.yaml")


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeMachine:
    """A machine that has all that a run needs."""
    monkeypatch.setattr(doctor, "examine", list)
    monkeypatch.setattr(doctor, "require", lambda *_: None)
    monkeypatch.setattr(calibration, "capacity_pps", lambda _note: 30_000.0)
    return FakeMachine(tmp_path, monkeypatch)


def test_a_second_one_is_refused(machine: FakeMachine) -> None:
    """It names the first by what it is and what to do; once the first ended, all is well."""
    refused = pytest.raises(MachineError, match=r"run \(process \d+\) is under way.*--alongside")
    with alone("run"), refused, alone("run"):
        pass
    with alone("run"):
        pass


def test_it_names_the_run_that_is_under_way(machine: FakeMachine) -> None:
    """Also one that holds no lock; dead ones and this process itself do not count."""
    machine.add(Owned("aaaaaa", GONE))
    machine.add(Owned("bbbbbb", (os.getpid(), start_time(os.getpid()) or "")))
    with alone("run"):
        pass
    with child() as owner:
        machine.add(Owned("cccccc", owner, what="topo"))
        with pytest.raises(MachineError) as caught, alone("run"):
            pass
    assert f"topo cccccc (process {owner[0]}) is under way" in str(caught.value)
    assert "fabriclab clean --force cccccc" in str(caught.value)


def test_alongside_is_accepted(machine: FakeMachine) -> None:
    """Beside a lock and beside a run; the first one's lock stays."""
    with alone("bench"), child() as owner:
        machine.add(Owned("cccccc", owner))
        with alone("run", alongside=True), alone("run", alongside=True):
            pass
    with alone("run"):
        with alone("run", alongside=True):
            pass
        with pytest.raises(MachineError, match="is under way"), alone("run"):
            pass


def test_the_run_command_refuses_and_creates_nothing(
    machine: FakeMachine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line, code 2."""
    results = tmp_path / "results"
    with child() as owner:
        machine.add(Owned("cccccc", owner))
        assert main(["run", SINGLE, "--results", str(results)]) == 2
    error = capsys.readouterr().err
    assert "run cccccc" in error
    assert error.count("\n") == 1
    assert not results.exists()


def test_a_launcher_measures_once_and_hands_on_what_it_was_given(
    machine: FakeMachine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Label, results and capacity reach the session."""
    asked: list[session.Request] = []

    def run(request: session.Request, *_: object) -> None:
        asked.append(request)

    monkeypatch.setattr(session, "run", run)
    experiment = load(SINGLE)
    with launch.launcher(tmp_path, [LIVE_CLOCK], SILENT) as launcher:
        launcher.run(experiment, "a")
        launcher.run(experiment, "b")
    assert [(request.label, request.capacity_pps) for request in asked] == [
        ("a", 30_000.0),
        ("b", 30_000.0),
    ]
    assert {request.results for request in asked} == {tmp_path}


def test_the_virtual_clock_needs_neither_a_quiet_machine_nor_its_measure(
    machine: FakeMachine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It starts beside other runs, measures nothing, and the experiment goes to a guest."""
    asked: list[str] = []
    monkeypatch.setattr(calibration, "capacity_pps", lambda _note: pytest.fail("measured"))
    monkeypatch.setattr(launch.virtual, "run", lambda _x, label, *_: asked.append(label))
    experiment = load(SINGLE, {"clock": "virtual"})
    with alone("run"), launch.launcher(tmp_path, [VIRTUAL_CLOCK], SILENT) as launcher:
        launcher.run(experiment, "a")
    assert asked == ["a"]


def test_ctrl_c_while_measuring_starts_nothing(
    machine: FakeMachine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The measurement ends, then the command does."""

    def measure(_note: object) -> float:
        os.kill(os.getpid(), 2)
        return 1.0

    monkeypatch.setattr(calibration, "capacity_pps", measure)
    with pytest.raises(KeyboardInterrupt):
        ExitStack().enter_context(launch.launcher(tmp_path, [LIVE_CLOCK], SILENT))


def test_a_place_that_cannot_be_written_is_a_clear_error(
    machine: FakeMachine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No root, a full disk, a read-only system: the path and the reason."""
    machine.state.parent.mkdir(exist_ok=True)
    machine.state.touch()
    with pytest.raises(MachineError, match=r"live\.lock cannot be written"), alone("run"):
        pass
    with pytest.raises(MachineError, match="cannot be written"):
        Ledger("aaaaaa")


def test_a_full_disk_under_the_ledger_is_a_clear_error(
    machine: FakeMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing may start whose ownership cannot be written down."""
    ledger = Ledger("aaaaaa")

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(MachineError, match=r"aaaaaa cannot be written \(No space left on device\)"):
        ledger.add_namespaces(["fl-aaaaaa"])
