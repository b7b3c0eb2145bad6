"""What of the host's file system a guest needs to see, and where its memory lies."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import emulator
from topologies.errors import MachineError

REPLACED = (Path("/run"), Path("/tmp"))  # noqa: S108 - the guest's own, empty
"""Folders in whose place a guest has its own; what it needs of the host's is put back."""
_SYSTEM = (Path("/proc"), Path("/sys"), Path("/dev"))
_SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - the kernel's own choice
_ON_DISK = "/var/tmp"  # noqa: S108 - a guest's memory is an unnamed file there


def packages() -> Path:
    """The folder that holds the packages."""
    return Path(emulator.__file__).resolve().parent.parent


def needed(*more: Path) -> list[str]:
    """Folders of the host that a guest must see although it has its own in their place.

    Args:
        more: beside the packages and the interpreter.

    Raises:
        MachineError: one lies where a guest cannot have it.
    """
    wanted = {packages(), Path(sys.prefix).resolve(), Path(sys.base_prefix).resolve(), *more}
    for path in sorted(wanted):
        if any(path.is_relative_to(folder) for folder in _SYSTEM):
            raise MachineError(f"a guest cannot see {path}; install fabriclab somewhere else")
    return [
        str(path)
        for path in sorted(wanted)
        if any(path.is_relative_to(folder) for folder in REPLACED)
    ]


def memory_folder(memory_bytes: int) -> dict[str, str]:
    """Environment that puts a guest's memory where there is room for it."""
    try:
        room = os.statvfs(_SHARED_MEMORY)
    except OSError:
        return {"TMPDIR": _ON_DISK}
    enough = room.f_bavail * room.f_frsize >= memory_bytes
    return {"TMPDIR": str(_SHARED_MEMORY) if enough else _ON_DISK}
