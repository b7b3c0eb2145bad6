"""Processes that live in given network namespaces: what people or tools started there.

A background `iperf3 -s` in a host outlives the run that built the host, and keeps its namespace
alive after its name is gone. The kernel says for every process which namespace it is in.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from emulator.kernel import netns
from emulator.kernel.process import start_time

_PROCESSES = Path("/proc")
Identity = tuple[int, int]


def _identity(path: Path) -> Identity | None:
    """Device and inode of what a path leads to; None when it leads nowhere (any more)."""
    with contextlib.suppress(OSError):
        status = path.stat()
        return status.st_dev, status.st_ino
    return None


def _numbers() -> Iterator[int]:
    for entry in _PROCESSES.iterdir():
        if entry.name.isdigit():
            yield int(entry.name)


def inhabitants(names: Iterable[str]) -> list[tuple[int, str]]:
    """(process number, start time) of all processes in named namespaces.

    A name whose file is no namespace (a crash between making and mounting it) has none. The
    namespace of this very process never counts, whatever a name leads to.
    """
    wanted = {_identity(netns.FOLDER / name) for name in names}
    wanted -= {None, _identity(_PROCESSES / "self" / "ns" / "net")}
    found = []
    for pid in _numbers() if wanted else ():
        if pid != os.getpid() and _identity(_PROCESSES / str(pid) / "ns" / "net") in wanted:
            started = start_time(pid)
            if started is not None:
                found.append((pid, started))
    return found
