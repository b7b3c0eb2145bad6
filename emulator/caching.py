"""Where things that can be made again are kept."""

from __future__ import annotations

import os
from pathlib import Path

from topologies.errors import MachineError


def cache_folder() -> Path:
    """The cache folder, created; ``FABRICLAB_CACHE`` overrides the user's default.

    Raises:
        MachineError: it cannot be created.
    """
    base = os.environ.get("FABRICLAB_CACHE")
    if base is None:
        home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
        base = str(Path(home) / "fabriclab")
    folder = Path(base)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        hint = "name another one in FABRICLAB_CACHE"
        raise MachineError(f"{folder} cannot be created ({error.strerror}); {hint}") from error
    return folder
