"""Host-wide kernel settings that a run has to raise for a moment, recorded and restored."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Protocol

_BASE = Path("/proc/sys")
SOCKET_BUFFER_BYTES = 64 * 1024 * 1024
# Open vSwitch's userspace datapath opens its sockets with the default buffers, which would bound
# every queue at some 130 KB and drop without a counter.
FOR_OPEN_VSWITCH = {
    "net.core.wmem_default": str(SOCKET_BUFFER_BYTES),
    "net.core.rmem_default": str(SOCKET_BUFFER_BYTES),
}


class Journal(Protocol):
    """Remembers what to restore, also when this process is killed."""

    def sysctls_changed(self, before: Mapping[str, str]) -> None:
        """These settings are about to change; their values now."""

    def sysctls_restored(self) -> None:
        """All are as they were."""


def _path(name: str) -> Path:
    return _BASE / name.replace(".", "/")


def read(name: str) -> str:
    """The value of a setting."""
    return _path(name).read_text().strip()


def write(name: str, value: str) -> None:
    """Sets a setting."""
    _path(name).write_text(value)


@contextlib.contextmanager
def raised(values: Mapping[str, str], journal: Journal) -> Iterator[dict[str, str]]:
    """The settings are at least these numbers during the block.

    Yields:
        The values before of those that had to be raised.
    """
    found = {name: read(name) for name in values}
    before = {name: value for name, value in found.items() if int(value) < int(values[name])}
    journal.sysctls_changed(before)
    try:
        for name in before:
            write(name, values[name])
        yield before
    finally:
        for name, value in before.items():
            write(name, value)
        journal.sysctls_restored()
