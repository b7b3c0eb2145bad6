"""Where things that can be made again are kept."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """The cache folder, created; ``FABRICLAB_CACHE`` overrides the user's default."""
    base = os.environ.get("FABRICLAB_CACHE")
    if base is None:
        home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
        base = str(Path(home) / "fabriclab")
    folder = Path(base)
    folder.mkdir(parents=True, exist_ok=True)
    return folder
