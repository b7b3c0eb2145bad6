"""Names that carry a run's id: namespaces, folders. PURE."""

from __future__ import annotations

import re
import secrets
from pathlib import Path

PREFIX = "fl"
STATE_FOLDER = Path("/run/fabriclab")
_RUN_ID = re.compile(r"[0-9a-f]{6}")


def new_run_id() -> str:
    """A random id, six hexadecimal digits."""
    return secrets.token_hex(3)


def is_run_id(text: str) -> bool:
    """True for something that `new_run_id` can make."""
    return _RUN_ID.fullmatch(text) is not None


def switches_namespace(run_id: str) -> str:
    """The namespace of all switches, Open vSwitch and the controller."""
    return f"{PREFIX}-{run_id}"


def host_namespace(run_id: str, host: str) -> str:
    """The namespace of one host."""
    return f"{PREFIX}-{run_id}-{host}"


def state_folder(run_id: str) -> Path:
    """Where a run keeps sockets, database, and what it owns."""
    return STATE_FOLDER / run_id
