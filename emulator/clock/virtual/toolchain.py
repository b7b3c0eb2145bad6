"""What a machine needs to build the virtual clock's kernel, and what it lacks of that."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

from emulator.clock.virtual import recipe
from topologies.errors import MachineError

_PROGRAMS = {
    "gcc": "gcc",
    "ld": "binutils",
    "make": "make",
    "flex": "flex",
    "bison": "bison",
    "bc": "bc",
    "tar": "tar",
    "xz": "xz-utils",
}
_HEADERS = "C library headers"
_TRY_HEADERS = "#include <pty.h>\n#include <linux/types.h>\n"


@dataclass(frozen=True)
class Lack:
    """Something that is missing.

    Attributes:
        what: its name.
        package: the Debian package that has it.
    """

    what: str
    package: str


def missing() -> list[Lack]:
    """All that is missing here."""
    lacks = [Lack(name, package) for name, package in _PROGRAMS.items() if not shutil.which(name)]
    if shutil.which("gcc") and not _has_headers():
        lacks.append(Lack(_HEADERS, "libc6-dev"))
    return lacks


def _has_headers() -> bool:
    command = ["gcc", "-E", "-x", "c", "-", "-o", os.devnull]
    done = subprocess.run(
        command, input=_TRY_HEADERS, capture_output=True, text=True, check=False
    )  # fmt: skip
    return done.returncode == 0


def way_out(lacks: Sequence[Lack]) -> str:
    """How to get what is missing."""
    return f"apt install {' '.join(dict.fromkeys(lack.package for lack in lacks))}"


def require() -> None:
    """All that a build needs is there.

    Raises:
        MachineError: the processor is none that the kernel exists for, or something is missing;
            everything that is missing is named at once.
    """
    machine = os.uname().machine
    if machine != recipe.ARCHITECTURE:
        raise MachineError(
            f"the virtual clock's kernel (User-Mode-Linux) exists for {recipe.ARCHITECTURE} only, "
            f"this machine is {machine}; use clock: live"
        )
    lacks = missing()
    if lacks:
        names = ", ".join(lack.what for lack in lacks)
        raise MachineError(f"to build the kernel, this machine lacks {names}; {way_out(lacks)}")


def compiler() -> str:
    """The compiler, as it calls itself."""
    done = subprocess.run(["gcc", "--version"], capture_output=True, text=True, check=False)
    return done.stdout.partition("\n")[0].strip() or "unknown"
