"""``fabriclab clean``: dead runs go, living ones and all that is foreign stay."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from emulator import leftovers, sysctls
from emulator.cli import main
from emulator.kernel import inhabitants as inhabitants_module
from emulator.kernel import process
from emulator.kernel.process import is_alive, start_time
from emulator.ownership import FILE, Owned
from tests.fakes.machine import GONE, FakeMachine, child


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeMachine:
    """An empty machine, as root sees it."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    return FakeMachine(tmp_path, monkeypatch)


def _me() -> tuple[int, str]:
    return os.getpid(), start_time(os.getpid()) or ""


def test_nothing_is_nothing(machine: FakeMachine, capsys: pytest.CaptureFixture[str]) -> None:
    """A machine that never ran anything is fine, and so is a second clean."""
    assert main(["clean"]) == 0
    assert capsys.readouterr().out == "nothing to remove\n"
    machine.add(Owned("aaaaaa", GONE))
    assert main(["clean"]) == 0
    assert "removed: folder" in capsys.readouterr().out
    assert main(["clean"]) == 0
    assert capsys.readouterr().out == "nothing to remove\n"


def test_a_dead_run_is_removed_and_foreign_things_stay(
    machine: FakeMachine, capsys: pytest.CaptureFixture[str]
) -> None:
    """Processes, namespaces and the folder of the dead run go; similar names stay."""
    foreign = machine.namespaces / "fl-aaaaaa-someone-else"
    foreign.touch()
    with child() as (pid, started):
        folder = machine.add(Owned("aaaaaa", GONE, [(pid, started)], ["fl-aaaaaa", "fl-aaaaaa-h1"]))
        assert main(["clean"]) == 0
        assert not is_alive(pid, started)
    out = capsys.readouterr().out
    assert [line.split(": ")[1] for line in out.splitlines()] == [
        f"process {pid}", "namespace fl-aaaaaa", "namespace fl-aaaaaa-h1", f"folder {folder}"
    ]  # fmt: skip
    assert list(machine.namespaces.iterdir()) == [foreign]
    assert not folder.exists()


def test_a_later_process_of_the_same_number_is_not_touched(machine: FakeMachine) -> None:
    """The start time tells it from the one that the run owned."""
    with child() as (pid, started):
        machine.add(Owned("aaaaaa", GONE, [(pid, "1")]))
        assert main(["clean"]) == 0
        assert is_alive(pid, started)


def test_settings_go_back(machine: FakeMachine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that was killed while a host-wide setting was raised gets it restored."""
    values = {"net.core.wmem_default": "67108864"}
    monkeypatch.setattr(sysctls, "read", values.__getitem__)
    monkeypatch.setattr(sysctls, "write", values.__setitem__)
    owned = Owned("aaaaaa", GONE, sysctls={"net.core.wmem_default": "212992"})
    machine.add(owned)
    assert leftovers.inventory(owned) == ("setting net.core.wmem_default (back to 212992)",)
    assert main(["clean"]) == 0
    assert values == {"net.core.wmem_default": "212992"}


def test_a_dry_run_says_the_same_and_changes_nothing(
    machine: FakeMachine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It needs no root either."""
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with child() as (pid, started):
        folder = machine.add(Owned("aaaaaa", GONE, [(pid, started)], ["fl-aaaaaa"]))
        assert main(["clean", "--dry-run"]) == 0
        out = capsys.readouterr().out
        assert is_alive(pid, started)
        assert folder.exists()
        monkeypatch.setattr(os, "geteuid", lambda: 0)
        assert main(["clean"]) == 0
    assert capsys.readouterr().out == out.replace("would remove", "removed")


def test_without_root_it_is_refused(
    machine: FakeMachine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line, code 2, nothing removed."""
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    folder = machine.add(Owned("aaaaaa", GONE))
    assert main(["clean"]) == 2
    assert "clean needs root; run it with sudo" in capsys.readouterr().err
    assert folder.exists()


def test_a_running_one_is_kept(machine: FakeMachine, capsys: pytest.CaptureFixture[str]) -> None:
    """It is named with its process and the way to end it."""
    folder = machine.add(Owned("aaaaaa", _me(), namespaces=["fl-aaaaaa"], what="bench"))
    assert main(["clean"]) == 0
    captured = capsys.readouterr()
    assert captured.out == "nothing to remove\n"
    assert captured.err == (
        f"kept: bench aaaaaa is under way (process {os.getpid()}); "
        "--force aaaaaa ends and removes it\n"
    )
    assert folder.exists()
    assert (machine.namespaces / "fl-aaaaaa").exists()


def test_a_running_one_goes_when_it_is_named(
    machine: FakeMachine, capsys: pytest.CaptureFixture[str]
) -> None:
    """Only the named one: its owner is ended, then all that it owned is removed."""
    with child() as owner, child() as other:
        gone = machine.add(Owned("aaaaaa", owner, namespaces=["fl-aaaaaa"]))
        stays = machine.add(Owned("bbbbbb", other))
        assert main(["clean", "--force", "aaaaaa"]) == 0
        assert not is_alive(*owner)
        assert is_alive(*other)
    assert f"removed: process {owner[0]} (its owner)" in capsys.readouterr().out
    assert not gone.exists()
    assert stays.exists()


def test_an_owner_that_does_not_end_is_ended() -> None:
    """First it is asked; when that is ignored, it is killed."""
    with child(stubborn=True) as owner:
        leftovers.end_owner(Owned("aaaaaa", owner), patience_s=0.01)
        assert not is_alive(*owner)


def test_an_unknown_run_removes_nothing(
    machine: FakeMachine, capsys: pytest.CaptureFixture[str]
) -> None:
    """A typing error must not clean the others on the way."""
    folder = machine.add(Owned("aaaaaa", GONE))
    assert main(["clean", "--force", "aaaaab"]) == 2
    assert "did you mean 'aaaaaa'?" in capsys.readouterr().err
    assert folder.exists()


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, "cannot be read (No such file or directory)"),
        ("", "cannot be read (damaged)"),
        ('{"run_id": "aaaaaa"}', "cannot be read (damaged)"),
        ('{"run_id": "bbbbbb", "owner": [1, "1"], "processes": []}', "another run, 'bbbbbb'"),
    ],
)
def test_what_cannot_be_read_is_kept_until_it_is_named(
    machine: FakeMachine,
    capsys: pytest.CaptureFixture[str],
    content: str | None,
    problem: str,
) -> None:
    """Only the folder goes then: what the file does not list is told, not touched."""
    folder = machine.state / "aaaaaa"
    folder.mkdir(parents=True)
    if content is not None:
        (folder / FILE).write_text(content)
    (machine.namespaces / "fl-aaaaaa").touch()
    (machine.namespaces / "fl-aaaaaa-h1").touch()
    assert main(["clean"]) == 0
    captured = capsys.readouterr()
    assert captured.out == "nothing to remove\n"
    assert problem in captured.err
    assert "ip netns delete fl-aaaaaa, 2 in all" in captured.err
    assert folder.exists()
    assert main(["clean", "--force", "aaaaaa"]) == 0
    assert not folder.exists()
    assert len(list(machine.namespaces.iterdir())) == 2


def test_folders_of_other_names_are_nobody_s(machine: FakeMachine) -> None:
    """Lock files and whatever else lies there is not looked at."""
    machine.state.mkdir()
    (machine.state / "settings.lock").touch()
    (machine.state / "not-a-run").mkdir()
    assert leftovers.survey() == []


def test_results_are_never_removed(machine: FakeMachine, tmp_path: Path) -> None:
    """A run folder belongs to the user, whatever the verdict."""
    results = tmp_path / "results" / "x"
    results.mkdir(parents=True)
    machine.add(Owned("aaaaaa", GONE, results=str(results)))
    assert main(["clean"]) == 0
    assert results.is_dir()


def test_a_zombie_does_not_live(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nobody collects dead processes, a dead owner must not block cleaning for ever."""
    states = {7: "S", 8: "Z"}
    monkeypatch.setattr(process, "_stat", lambda pid: [states[pid], *"0" * 18, "77"])
    assert is_alive(7, "77")
    assert not is_alive(7, "78")
    assert not is_alive(8, "77")


def test_whoever_lives_in_our_namespaces_is_found(
    machine: FakeMachine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the namespace's identity; this process and unmounted names never count."""
    proc = tmp_path / "proc"
    monkeypatch.setattr(inhabitants_module, "_PROCESSES", proc)
    monkeypatch.setattr(inhabitants_module, "start_time", lambda pid: f"started {pid}")
    ours, empty = machine.namespaces / "fl-aaaaaa", machine.namespaces / "fl-aaaaaa-h1"
    own = machine.namespaces / "host"
    for path in (ours, empty, own):
        path.touch()
    for name, target in (("7", ours), ("8", own), ("self", own), (str(os.getpid()), ours)):
        (proc / name / "ns").mkdir(parents=True)
        (proc / name / "ns" / "net").hardlink_to(target)
    (proc / "9").mkdir()
    names = ["fl-aaaaaa", "fl-aaaaaa-h1", "host", "never-made"]
    assert inhabitants_module.inhabitants(names) == [(7, "started 7")]
    assert inhabitants_module.inhabitants([]) == []
