"""The kernels that were built for the virtual clock: where they lie, which one a run takes.

``kernel-<hash>/`` in the cache folder holds ``linux``, the program, and ``kernel.json``, which says
what it was made of. There is at most one for each recipe: the newest replaces the one before.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from emulator import DISTRIBUTION
from emulator.caching import cache_folder
from emulator.clock.virtual import recipe
from topologies.errors import MachineError

PREFIX = "kernel-"
PROGRAM, DESCRIPTION = "linux", "kernel.json"
COMMAND = f"{DISTRIBUTION} kernel build"


@dataclass(frozen=True)
class BuiltKernel:
    """A kernel in the cache.

    Attributes:
        path: the program.
        version: of its source, such as ``6.12.117``.
        hash: of all that it was made of, in 16 hexadecimal digits.
        recipe: `recipe.digest` of the time.
        source: where the source came from, for people.
        compiler: what compiled it, for people.
        sha256: of the program.
        built: when, UTC, ISO 8601.
        seconds: wall time of the build, s.
        size_bytes: of the program.
    """

    path: Path
    version: str
    hash: str
    recipe: str
    source: str
    compiler: str
    sha256: str
    built: str
    seconds: float
    size_bytes: int


def folder_of(digest: str) -> Path:
    """Where the kernel of a hash lies, or would lie."""
    return cache_folder() / f"{PREFIX}{digest}"


def to_text(built: BuiltKernel) -> str:
    """The content of its description."""
    fields = asdict(built)
    del fields["path"]
    return json.dumps(fields, indent=2) + "\n"


def read(folder: Path) -> BuiltKernel | None:
    """The kernel in a folder; None when there is none that could be started."""
    program = folder / PROGRAM
    try:
        fields: Mapping[str, Any] = json.loads((folder / DESCRIPTION).read_text(encoding="utf-8"))
        built = BuiltKernel(path=program, **fields)
    except (OSError, ValueError, TypeError):
        return None
    usable = os.access(program, os.X_OK) and program.stat().st_size == built.size_bytes
    return built if usable else None


def folders() -> list[Path]:
    """Everything in the cache that is a kernel, whole or not, of any recipe."""
    return sorted(path for path in cache_folder().glob(f"{PREFIX}*") if path.is_dir())


def all_built() -> list[BuiltKernel]:
    """All usable kernels in the cache, of any recipe."""
    return [built for folder in folders() if (built := read(folder))]


def find() -> BuiltKernel | None:
    """The kernel that runs take: made by the present recipe; None when it is not built."""
    current = recipe.digest()
    fitting = [built for built in all_built() if built.recipe == current]
    return max(fitting, key=lambda built: built.built, default=None)


def require() -> BuiltKernel:
    """As `find`.

    Raises:
        MachineError: it is not built; the text says how to.
    """
    built = find()
    if built is None:
        raise MachineError(f"the virtual clock's kernel is not built; run: {COMMAND}")
    return built


def discard(folder: Path) -> None:
    """Removes a kernel; one that runs at the moment goes on running."""
    try:
        shutil.rmtree(folder)
    except OSError as error:
        raise MachineError(f"{folder} cannot be removed ({error.strerror})") from error
