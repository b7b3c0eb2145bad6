"""Programs of the system, looked for where root's own are as well."""

from __future__ import annotations

import os
import shutil

_SYSTEM_PATH = os.pathsep + os.pathsep.join(("/usr/sbin", "/usr/local/sbin", "/sbin"))


def find_program(name: str) -> str | None:
    """Path of a program; None when it is not installed."""
    return shutil.which(name, path=os.environ.get("PATH", "") + _SYSTEM_PATH)
