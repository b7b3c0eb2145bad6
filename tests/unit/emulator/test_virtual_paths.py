"""What of the host's files a guest sees, and where its memory lies."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import emulator
from emulator.clock.virtual import paths
from topologies.errors import MachineError


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Packages and interpreter where distributions put them."""
    monkeypatch.setattr(emulator, "__file__", "/usr/lib/fabriclab/emulator/__init__.py")
    monkeypatch.setattr(sys, "prefix", "/usr")
    monkeypatch.setattr(sys, "base_prefix", "/usr")


def test_the_packages_are_those_that_run_now() -> None:
    """Their folder holds all four."""
    names = {path.name for path in paths.packages().iterdir()}
    assert {"controller", "emulator", "topologies", "traffic"} <= names


@pytest.mark.usefixtures("installed")
def test_what_the_guest_sees_anyway_is_not_put_back() -> None:
    """Most machines have nothing below /tmp and /run that a guest needs."""
    assert paths.needed() == []
    assert paths.needed(Path("/var/cache/x")) == []


@pytest.mark.usefixtures("installed")
def test_what_lies_below_a_replaced_folder_is_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkout, an environment or a cache below /tmp; each once, in order."""
    monkeypatch.setattr(sys, "prefix", "/tmp/venv")
    monkeypatch.setattr(emulator, "__file__", "/tmp/checkout/emulator/__init__.py")
    found = paths.needed(Path("/run/user/1000/cache"), Path("/tmp/checkout"))
    assert found == ["/run/user/1000/cache", "/tmp/checkout", "/tmp/venv"]


@pytest.mark.usefixtures("installed")
def test_a_name_that_only_begins_like_one_is_not_below_it() -> None:
    """/tmpfiles is not in /tmp."""
    assert paths.needed(Path("/tmpfiles"), Path("/runner")) == []


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("place", ["/dev/shm/venv", "/proc/1/cwd/venv", "/sys/x"])
def test_what_a_guest_cannot_have_is_refused(place: str) -> None:
    """Its own /proc, /sys and /dev lie there."""
    with pytest.raises(MachineError, match=f"a guest cannot see {place}"):
        paths.needed(Path(place))


@pytest.mark.parametrize(("blocks", "folder"), [(1000, "/dev/shm"), (999, "/var/tmp")])
def test_memory_lies_where_there_is_room(
    monkeypatch: pytest.MonkeyPatch, blocks: int, folder: str
) -> None:
    """In memory if that is allowed to hold it all, else in a file on the disk."""
    room = SimpleNamespace(f_bavail=blocks, f_frsize=4096)
    monkeypatch.setattr(os, "statvfs", lambda _path: room)
    assert paths.memory_folder(1000 * 4096) == {"TMPDIR": folder}


def test_memory_lies_on_the_disk_where_there_is_no_shared_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A container may have none."""

    def missing(_path: object) -> object:
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setattr(os, "statvfs", missing)
    assert paths.memory_folder(1) == {"TMPDIR": "/var/tmp"}
