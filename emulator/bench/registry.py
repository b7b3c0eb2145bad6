"""The measurements of `fabriclab bench`, by name.

To add one: write its file and name it in `BENCHES`, in the order in which they run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol

from emulator.bench import cost, frames, startup, throughput, virtual
from emulator.bench.rows import Measured, Row
from emulator.bench.setting import Setting
from topologies.errors import UnknownNameError


class Bench(Protocol):
    """What a measurement's module has."""

    NAME: str
    SUMMARY: str

    def measure(self, setting: Setting) -> list[Row]:
        """Measure; the result has a row for each figure."""


BENCHES: tuple[Bench, ...] = (frames, cost, throughput, startup, virtual)


def chosen(names: Sequence[str]) -> list[Bench]:
    """The measurements of these names, in the order of the list; all of them without any.

    Raises:
        UnknownNameError: there is none of a name.
    """
    known = [bench.NAME for bench in BENCHES]
    for name in names:
        if name not in known:
            raise UnknownNameError("bench", "measurement", name, known)
    return [bench for bench in BENCHES if not names or bench.NAME in names]


def measure_all(
    benches: Sequence[Bench], datapath: str, note: Callable[[str], None]
) -> Iterator[Measured]:
    """Runs measurements one after the other; each result comes as soon as it is there."""
    with TemporaryDirectory(prefix="fabriclab-bench-") as folder:
        for bench in benches:
            rows = bench.measure(Setting(Path(folder), datapath, note))
            yield Measured(bench.NAME, bench.SUMMARY, rows)
