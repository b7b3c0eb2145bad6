"""``fabriclab doctor`` and what a run refuses to start without."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from emulator import calibration, doctor, remarks
from emulator.cli import main
from emulator.clock.virtual import kernel
from emulator.clock.virtual.kernel import BuiltKernel
from emulator.dataplane import compiling
from emulator.doctor import MISSING, OK, REMARK, Finding
from emulator.kernel import bpf, probing
from emulator.ownership import Owned
from tests.fakes.machine import GONE, FakeMachine, child
from tests.unit.emulator.spec_samples import EXAMPLES
from topologies.errors import MachineError

SINGLE = str(EXAMPLES / "single-flow.yaml")
FINE = Finding("root", OK, "running as root")
BUILT = BuiltKernel(Path("linux"), "6.12.1", "1", "2", "here", "gcc", "3", "2026-01-01", 150.0, 7)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeMachine:
    """A machine that was measured and has the guest's kernel, with nothing under way."""
    monkeypatch.setattr(calibration, "cached", lambda: 30_000.0)
    monkeypatch.setattr(kernel, "find", lambda: BUILT)
    monkeypatch.setenv("FABRICLAB_CACHE", str(tmp_path / "cache"))
    return FakeMachine(tmp_path, monkeypatch)


def _by_name(findings: list[Finding]) -> dict[str, Finding]:
    return {finding.what: finding for finding in findings}


def _needs(monkeypatch: pytest.MonkeyPatch, *findings: Finding) -> None:
    monkeypatch.setattr(doctor, "examine", lambda: list(findings))


def test_a_machine_that_has_everything(
    machine: FakeMachine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Code 0, whatever is only remarked on."""
    _needs(monkeypatch, FINE, Finding("kernel", REMARK, "strange"))
    assert main(["doctor"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["ok", "root", "running", "as", "root"]
    assert lines[1].split() == ["note", "kernel", "strange"]
    assert lines[-1] == "runs can start here"


def test_a_machine_that_lacks_something(
    machine: FakeMachine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Code 2; all of it is listed with the way out, and named again at the end."""
    lacking = [Finding("clang", MISSING, "apt install clang"), Finding("HTB", MISSING, "a kernel")]
    _needs(monkeypatch, FINE, *lacking)
    assert main(["doctor"]) == 2
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split() == ["MISSING", "clang", "apt", "install", "clang"]
    assert lines[-1] == "no run can start here: clang, HTB"


def test_json_says_the_same(
    machine: FakeMachine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """For programs: whether it is ready, and every finding."""
    _needs(monkeypatch, Finding("root", MISSING, "use sudo"))
    assert main(["doctor", "--json"]) == 2
    data = json.loads(capsys.readouterr().out)
    assert data["ready"] is False
    assert data["findings"][0] == {"what": "root", "state": MISSING, "detail": "use sudo"}
    assert {entry["what"] for entry in data["findings"]} >= {"memory", "load", "capacity"}


def test_without_root_the_rest_is_examined_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """A user sees what else is missing before asking for root."""
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    found = _by_name(doctor.examine())
    assert found["root"].state == MISSING
    assert "sudo fabriclab" in found["root"].detail
    assert found["kernel"].state == REMARK
    assert {"ovs-vswitchd", "clang", "libbpf", "mininet"} <= set(found)


def _no_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "find_program", lambda _name: None)


def _no_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bpf, "library_name", lambda: None)


def _no_feature(monkeypatch: pytest.MonkeyPatch) -> None:
    features = [("veth", True, ""), ("HTB", False, "install the full kernel")]
    monkeypatch.setattr(probing, "features", lambda _fd: iter(features))


def _refused_program(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_path: Path) -> None:
        raise MachineError("the kernel refused the eBPF program")

    monkeypatch.setattr(bpf, "BpfObject", refuse)
    monkeypatch.setattr(compiling, "object_file", lambda: Path("mmu.o"))
    monkeypatch.setattr(probing, "features", lambda _fd: iter(()))


@pytest.mark.parametrize(
    ("take_away", "message"),
    [
        (_no_program, "ovs-vswitchd is missing: install it with: apt install openvswitch-switch"),
        (_no_library, "libbpf is missing: install it with: apt install libbpf1"),
        (_no_feature, "HTB is missing: install the full kernel"),
        (_refused_program, "eBPF data plane is missing: the kernel refused the eBPF program"),
    ],
)
def test_a_run_names_what_is_missing_and_creates_nothing(
    machine: FakeMachine,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    take_away: Callable[[pytest.MonkeyPatch], None],
    message: str,
) -> None:
    """One line, code 2, no folder: the same for programs, libraries and kernel features."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(doctor, "find_program", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(bpf, "library_name", lambda: "libbpf.so.1")
    monkeypatch.setattr(doctor, "_mininet", lambda: Finding("mininet", OK, "2.3.0"))
    monkeypatch.setattr(doctor, "_controller", lambda: Finding("controller", OK, "some"))
    if take_away not in (_no_feature, _refused_program):
        monkeypatch.setattr(doctor, "_kernel", lambda: iter(()))
    if take_away is _no_feature:
        monkeypatch.setattr(doctor, "_data_plane", lambda: (None, FINE))
    take_away(monkeypatch)
    results = tmp_path / "results"
    assert main(["run", SINGLE, "--results", str(results)]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not results.exists()
    assert not machine.state.exists()


def test_a_run_without_root_says_so(
    machine: FakeMachine,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Root comes first of all that is missing."""
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(doctor, "find_program", lambda _name: None)
    assert main(["run", SINGLE, "--results", str(tmp_path / "results")]) == 2
    assert "root is missing: run it with: sudo fabriclab" in capsys.readouterr().err
    assert not (tmp_path / "results").exists()


def test_other_runs_and_left_overs_are_remarked_on(machine: FakeMachine, tmp_path: Path) -> None:
    """What lives, what died and what cannot be read, each with what to do about it."""
    with child() as owner:
        machine.add(Owned("aaaaaa", owner, what="bench"))
        machine.add(Owned("bbbbbb", GONE, namespaces=["fl-bbbbbb", "fl-bbbbbb-h1"]))
        (machine.state / "cccccc").mkdir()
        found = _by_name(remarks.remarks(tmp_path))
    assert found["bench aaaaaa"].state == REMARK
    assert f"under way (process {owner[0]})" in found["bench aaaaaa"].detail
    assert "left 2 things besides its folder; fabriclab clean" in found["run bbbbbb"].detail
    assert "fabriclab clean --force cccccc" in found["run cccccc"].detail


def test_an_idle_machine_of_some_size_gets_no_remarks(
    machine: FakeMachine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two processors, no load, memory, disk and all tools: nothing to say."""
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemTotal: 9 kB\nMemAvailable:    4194304 kB\n")
    monkeypatch.setattr(remarks, "_MEMORY", meminfo)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {0, 1})
    monkeypatch.setattr(os, "getloadavg", lambda: (0.3, 0.2, 0.1))
    monkeypatch.setattr(remarks, "find_program", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(remarks, "LEAST_DISK_BYTES", 0)
    found = remarks.remarks(tmp_path / "no" / "such" / "folder")
    assert [finding for finding in found if finding.state != OK] == []
    assert "30,000 data packets/s" in _by_name(found)["capacity"].detail


def test_a_small_and_busy_machine_is_warned_about(
    machine: FakeMachine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One processor, load, little memory and disk, no tools, not measured: all remarks, no more."""
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemAvailable:    1000 kB\n")
    monkeypatch.setattr(remarks, "_MEMORY", meminfo)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {0})
    monkeypatch.setattr(os, "getloadavg", lambda: (3.0, 0.2, 0.1))
    monkeypatch.setattr(remarks, "find_program", lambda _name: None)
    monkeypatch.setattr(remarks, "LEAST_DISK_BYTES", 1 << 62)
    monkeypatch.setattr(calibration, "cached", lambda: None)
    monkeypatch.setattr(kernel, "find", lambda: None)
    found = _by_name(remarks.remarks(tmp_path))
    noted = {name for name, finding in found.items() if finding.state == REMARK}
    assert noted == {
        "processors", "load", "memory", "disk", "tshark", "tcpdump", "iperf3", "capacity",
        "virtual clock's kernel",
    }  # fmt: skip
    assert "not measured yet" in found["capacity"].detail
    assert "apt install tshark" in found["tshark"].detail


def test_a_cache_that_cannot_be_made_is_a_remark(
    machine: FakeMachine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """doctor goes on where a run would stop, and names the variable that helps."""
    (tmp_path / "file").touch()
    monkeypatch.setenv("FABRICLAB_CACHE", str(tmp_path / "file" / "cache"))
    found = _by_name(remarks.remarks(tmp_path))
    assert found["capacity"].state == REMARK
    assert "name another one in FABRICLAB_CACHE" in found["capacity"].detail
