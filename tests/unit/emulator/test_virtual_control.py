"""The folder that a host and its guest share: made, found when its host is dead, removed."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

import pytest

from emulator.clock.virtual import control
from emulator.kernel.process import start_time
from tests.fakes.machine import GONE, child
from topologies.errors import MachineError


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for temporary things."""
    place = tmp_path / "tmp"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    return place


def folder_of(place: Path, name: str, owner: str | None) -> Path:
    """A control folder as an earlier run left it."""
    folder = place / f"{control.PREFIX}{name}"
    folder.mkdir()
    (folder / control.SPEC).write_text("name: x")
    if owner is not None:
        (folder / "owner").write_text(owner)
    return folder


def test_a_guest_finds_what_it_has_to_run(place: Path) -> None:
    """Experiment and request as they were given; nobody but its user may look."""
    with control.control_folder("name: täst\n", {"needed": ["/a b"], "run": "x"}) as folder:
        assert folder.parent == place
        assert (folder / control.SPEC).read_text() == "name: täst\n"
        assert json.loads((folder / control.REQUEST).read_text()) == {
            "needed": ["/a b"], "run": "x",
        }  # fmt: skip
        assert (folder / control.STOP).read_text() == ""
        assert folder.stat().st_mode & 0o077 == 0


def test_two_guests_have_two_folders(place: Path) -> None:
    """They may run at the same time."""
    with control.control_folder("", {}) as first, control.control_folder("", {}) as second:
        assert first != second


def test_it_is_gone_after_the_block(place: Path) -> None:
    """With all that the guest put there, after an error too."""

    def fail() -> None:
        with control.control_folder("", {}) as folder:
            (folder / "guest").mkdir()
            (folder / "guest" / "pid").write_text("1")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert list(place.iterdir()) == []


def test_no_place_for_it_is_one_clear_error(place: Path) -> None:
    """It names the folder and the way out."""
    place.rmdir()
    with pytest.raises(MachineError, match=r"TMPDIR"), control.control_folder("", {}):
        pytest.fail("there is no folder")


def test_a_full_disk_leaves_nothing(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An experiment that cannot be written down is an error, and the folder is removed."""

    def write(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", write)
    with (
        pytest.raises(MachineError, match="No space left on device"),
        control.control_folder("", {}),
    ):
        pytest.fail("there is no folder")
    assert list(place.iterdir()) == []


def test_folders_of_dead_hosts_are_removed(place: Path) -> None:
    """Those of living ones stay, and what belongs to others."""
    dead = folder_of(place, "dead", f"{GONE[0]} {GONE[1]}")
    reused = folder_of(place, "reused", f"{os.getpid()} 1")
    other = place / "somebody-else"
    other.mkdir()
    with child() as (pid, started), control.control_folder("", {}) as mine:
        living = folder_of(place, "living", f"{pid} {started}")
        assert control.stale() == sorted([dead, reused])
        assert control.remove_stale() == sorted([dead, reused])
        assert sorted(place.iterdir()) == sorted([living, mine, other])


def test_a_host_that_has_just_been_killed_is_dead(place: Path) -> None:
    """Though nobody has waited for it yet."""
    with child() as (pid, started):
        folder = folder_of(place, "x", f"{pid} {started}")
        assert control.stale() == []
    assert control.stale() == [folder]


@pytest.mark.parametrize("owner", [None, "", "12", "twelve 13", "1 2 3"])
def test_what_cannot_be_told_stays(place: Path, owner: str | None) -> None:
    """Such as a folder that is just being made."""
    folder_of(place, "odd", owner)
    assert control.remove_stale() == []
    assert len(list(place.iterdir())) == 1


def test_what_may_not_be_removed_is_not_reported(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another user's folder: only its owner and root can."""
    folder = folder_of(place, "theirs", f"{GONE[0]} {GONE[1]}")
    monkeypatch.setattr(control.shutil, "rmtree", lambda *_, **__: None)
    assert control.stale() == [folder]
    assert control.remove_stale() == []


def test_the_owner_is_this_process(place: Path) -> None:
    """By number and start time, so that a later process of the same number is not it."""
    with control.control_folder("", {}) as folder:
        assert (folder / "owner").read_text() == f"{os.getpid()} {start_time(os.getpid())}"
