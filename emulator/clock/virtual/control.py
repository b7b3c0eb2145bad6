"""The folder through which a host and its guest know of each other, and those of dead hosts."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from emulator.kernel.process import is_alive, start_time
from topologies.errors import MachineError

PREFIX = "fabriclab-guest-"
SPEC, REQUEST, STOP = "spec.yaml", "request.json", "stop"
_OWNER = "owner"


@contextmanager
def control_folder(spec: str, request: Mapping[str, Any]) -> Iterator[Path]:
    """The folder of one guest, with its experiment and request; gone after the block.

    Args:
        spec: the experiment as YAML.
        request: what else the guest has to know.

    Raises:
        MachineError: it cannot be made or written.
    """
    with ExitStack() as made:
        try:
            folder = Path(tempfile.mkdtemp(prefix=PREFIX))
            made.callback(shutil.rmtree, folder, ignore_errors=True)
            (folder / _OWNER).write_text(f"{os.getpid()} {start_time(os.getpid())}")
            (folder / SPEC).write_text(spec)
            (folder / REQUEST).write_text(json.dumps(request))
            (folder / STOP).touch()
        except OSError as error:
            reason, hint = error.strerror or error, "free it, or name another in TMPDIR"
            raise MachineError(f"no folder for the guest can be made ({reason}); {hint}") from error
        yield folder


def stale() -> list[Path]:
    """Folders whose owner was killed: their guests died with it, they are all that is left."""
    folders = sorted(Path(tempfile.gettempdir()).glob(f"{PREFIX}*"))
    return [folder for folder in folders if _is_dead(folder)]


def _is_dead(folder: Path) -> bool:
    """False as well when it cannot be told, such as for a folder that is just being made."""
    try:
        pid, started = (folder / _OWNER).read_text().split()
        return not is_alive(int(pid), started)
    except (OSError, ValueError):
        return False


def remove_stale() -> list[Path]:
    """Removes those that this user may remove; returns them."""
    removed = stale()
    for folder in removed:
        shutil.rmtree(folder, ignore_errors=True)
    return [folder for folder in removed if not folder.exists()]
