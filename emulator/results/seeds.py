"""Two runs of one experiment under different seeds: are their means those of one quantity? PURE.

Every sample of a run is used, in the order of time, so that batches can see how far it depends on
the one before. What a seed decides once for a whole run is not in such an interval: see
`traffic.intervals`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from emulator.results import format as fmt
from emulator.results.reader import RunReader, Table
from traffic.intervals import CONFIDENCE, Interval, mean_interval

_RESOLUTION_NS = 1.0
"""Times are written in whole nanoseconds."""

Samples = Mapping[tuple[str, str], list[float]]
"""(workload or class, figure) -> ns, in the order of time."""


@dataclass(frozen=True)
class Row:
    """One mean of two runs, ns.

    Attributes:
        group: the workload or class.
        name: what is averaged.
        first: of the first run.
        second: of the second.
    """

    group: str
    name: str
    first: Interval
    second: Interval

    @property
    def fits(self) -> bool:
        """Whether both may be of one quantity."""
        return self.first.fits(self.second, _RESOLUTION_NS)

    @property
    def cells(self) -> list[str]:
        """The row of a table."""
        both = [_shown(interval) for interval in (self.first, self.second)]
        return [self.group, self.name, *both, "fits" if self.fits else "DIFFERS"]


def _shown(interval: Interval) -> str:
    return f"{fmt.duration_ns(interval.middle)} +- {fmt.duration_ns(interval.half)}"


def samples(run: RunReader) -> Samples:
    """Latencies of probes; completion times of flows and times to the first token at full size."""
    shrink = float(run.manifest.get("shrink") or 1)
    found: dict[tuple[str, str], list[float]] = {}
    found |= _by_group(run.table("probes"), "class", "sent_ns", None, "latency_ns", "probe latency")
    flows = run.table("flows")
    found |= _by_group(flows, "job", "done_ns", "ready_ns", "done_ns", "flow completion", shrink)
    requests = run.table("requests")
    arrival, token = "arrival_ns", "first_token_ns"
    found |= _by_group(requests, "job", arrival, arrival, token, "TTFT", shrink)
    return found


def _by_group(
    table: Table,
    group: str,
    order: str,
    start: str | None,
    end: str,
    name: str,
    factor: float = 1.0,
) -> Iterator[tuple[tuple[str, str], list[float]]]:
    """What took how long, by group, where it ended at all."""
    took = (table.numbers(end) - (table.numbers(start) if start else 0.0)) * factor
    groups, times = np.array(table.text(group), dtype=np.str_), table.numbers(order)
    for key in sorted(set(groups.tolist())):
        mine = (groups == key) & ~np.isnan(took)
        in_order = np.argsort(times[mine], kind="stable")
        label = f"TC{key}" if group == "class" else key
        yield (label, name), took[mine][in_order].tolist()


def compare(first: RunReader, second: RunReader, confidence: float = CONFIDENCE) -> list[Row]:
    """All means that both runs have.

    Args:
        first: a run.
        second: the same experiment under another seed.
        confidence: that all of them fit when nothing but chance is between them; each single
            interval is the wider for that (Bonferroni).
    """
    mine, other = samples(first), samples(second)
    common = [key for key in mine if key in other]
    single = 1 - (1 - confidence) / max(1, len(common))
    pairs = [(mean_interval(mine[key], single), mean_interval(other[key], single), key)
             for key in common]  # fmt: skip
    return [Row(*key, a, b) for a, b, key in pairs if a is not None and b is not None]
