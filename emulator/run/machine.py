"""How busy the emulating machine is, and what it is."""

from __future__ import annotations

import os
import platform
import time
from pathlib import Path

_STAT = Path("/proc/stat")
_PERIOD_S = 1.0
_IDLE, _IO_WAIT = 3, 4


def _times() -> tuple[int, int]:
    """(idle, total) ticks of all processors since boot."""
    with _STAT.open() as handle:
        values = [int(part) for part in handle.readline().split()[1:9]]
    return values[_IDLE] + values[_IO_WAIT], sum(values)


class IdleMeter:
    """Smallest share of idle processor time in any second of a run."""

    def __init__(self) -> None:
        self.shares: list[float] = []
        self._last = _times()
        self._next_s = time.monotonic() + _PERIOD_S

    def look(self) -> None:
        """To be called often; measures once a second."""
        if time.monotonic() < self._next_s:
            return
        self._next_s = time.monotonic() + _PERIOD_S
        idle, total = _times()
        passed = total - self._last[1]
        if passed > 0:
            self.shares.append((idle - self._last[0]) / passed)
        self._last = idle, total

    @property
    def least(self) -> float | None:
        """The smallest share, 0-1; None for runs of less than a second."""
        return min(self.shares) if self.shares else None


def processor() -> str:
    """The processor's name."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith(("model name", "Model")):
            return line.partition(":")[2].strip()
    return platform.machine()


def description() -> dict[str, object]:
    """What results depend on."""
    return {
        "processor": processor(),
        "processors": os.cpu_count(),
        "architecture": platform.machine(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
    }
