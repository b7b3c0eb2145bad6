"""What is worth knowing about this machine before a run, beside what a run cannot do without."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from emulator import calibration, leftovers
from emulator.caching import cache_folder
from emulator.clock.virtual import kernel
from emulator.doctor import OK, REMARK, Finding
from emulator.programs import find_program
from emulator.run.machine import processor
from emulator.scale import CAPACITY_SHARE
from topologies.errors import MachineError

OPTIONAL_PROGRAMS = {
    "tshark": "looks into captures",
    "tcpdump": "captures by hand",
    "iperf3": "TCP and UDP by hand",
}
LEAST_PROCESSORS = 2
LEAST_MEMORY_BYTES = 1 << 30
LEAST_DISK_BYTES = 1 << 30
BUSY_SHARE = 0.5
"""Load of other programs, per processor, above which runs are likely to be disturbed."""
_MEMORY = Path("/proc/meminfo")
_GIB = 1 << 30


def remarks(folder: Path) -> list[Finding]:
    """All of them.

    Args:
        folder: where results would go.
    """
    looks: tuple[Callable[[], Iterator[Finding]], ...] = (
        _processors,
        _load,
        _memory,
        lambda: _disk(folder),
        _programs,
        _capacity,
        _virtual_clock,
        _runs,
    )
    return [finding for look in looks for finding in look()]


def _finding(what: str, fine: bool, text: str, caution: str) -> Finding:
    return Finding(what, OK, text) if fine else Finding(what, REMARK, f"{text}; {caution}")


def _processors() -> Iterator[Finding]:
    count = len(os.sched_getaffinity(0))
    text = f"{count} ({processor()})"
    caution = "switches and NICs take turns on one, so time must run slower"
    yield _finding("processors", count >= LEAST_PROCESSORS, text, caution)


def _load() -> Iterator[Finding]:
    load = os.getloadavg()[0]
    limit = BUSY_SHARE * len(os.sched_getaffinity(0))
    text = f"{load:.2f} over the last minute"
    yield _finding("load", load <= limit, text, "other programs may disturb the timing of runs")


def _memory() -> Iterator[Finding]:
    for line in _MEMORY.read_text().splitlines():
        if line.startswith("MemAvailable:"):
            available = int(line.split()[1]) * 1024
            text = f"{available / _GIB:.1f} GiB available"
            caution = "large fabrics need about 1 GiB"
            yield _finding("memory", available >= LEAST_MEMORY_BYTES, text, caution)


def _disk(folder: Path) -> Iterator[Finding]:
    existing = next(path for path in (folder, *folder.resolve().parents) if path.exists())
    free = shutil.disk_usage(existing).free
    text = f"{free / _GIB:.1f} GiB free for results in {folder}"
    caution = "a long run may not be able to write all of its tables"
    yield _finding("disk", free >= LEAST_DISK_BYTES, text, caution)


def _programs() -> Iterator[Finding]:
    for name, purpose in OPTIONAL_PROGRAMS.items():
        found = find_program(name)
        hint = f"not there; {purpose}: apt install {name}"
        yield Finding(name, OK if found else REMARK, found or hint)


def _capacity() -> Iterator[Finding]:
    try:
        cache_folder()
        rate = calibration.cached()
    except MachineError as error:
        yield Finding("capacity", REMARK, f"cannot be kept: {error}")
        return
    if rate is None:
        yield Finding("capacity", REMARK, "not measured yet; the first run measures it")
    else:
        text = f"{rate:,.0f} data packets/s over three switches, of which runs use at most"
        yield Finding("capacity", OK, f"{text} {CAPACITY_SHARE:.0%}")


def _virtual_clock() -> Iterator[Finding]:
    what = "virtual clock's kernel"
    try:
        built = kernel.find()
    except MachineError as error:
        yield Finding(what, REMARK, f"cannot be kept: {error}")
        return
    if built:
        yield Finding(what, OK, f"built, Linux {built.version}")
    else:
        yield Finding(what, REMARK, f"not built; clock: virtual needs it: {kernel.COMMAND}")


def _runs() -> Iterator[Finding]:
    found = leftovers.survey()
    for entry in found:
        if entry.owned is None:
            hint = f"fabriclab clean --force {entry.run_id} removes its folder"
            yield Finding(f"run {entry.run_id}", REMARK, f"{entry.problem}; {hint}")
        elif entry.running:
            text = f"is under way (process {entry.owned.owner[0]}); a second one disturbs both"
            yield Finding(f"{entry.owned.what} {entry.run_id}", REMARK, text)
        else:
            count = len(leftovers.inventory(entry.owned))
            text = f"was cut short and left {count} things besides its folder; fabriclab clean"
            yield Finding(f"{entry.owned.what} {entry.run_id}", REMARK, f"{text} removes them")
    if not found:
        yield Finding("other runs", OK, "none under way, nothing left behind")
