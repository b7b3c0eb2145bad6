"""Arithmetic on series for pictures: thinning, rates out of counters, distributions. PURE."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Interval = tuple[float, float]


def thin(x: NDArray[Any], y: NDArray[Any], buckets: int) -> tuple[Floats, Floats]:
    """Fewer points with the same outline: first, minimum, maximum and last of each bucket stay.

    Args:
        x: ascending.
        y: as many values.
        buckets: at most four points are kept in each.
    """
    xs, ys = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if len(xs) <= 4 * buckets:
        return xs, ys
    kept: set[int] = set()
    for part in np.array_split(np.arange(len(xs)), buckets):
        values = ys[part]
        kept |= {int(part[0]), int(part[-1])}
        kept |= {int(part[np.argmin(values)]), int(part[np.argmax(values)])}
    order = np.array(sorted(kept))
    return xs[order], ys[order]


def binned_rate_bps(
    time_ns: NDArray[Any], counter_bytes: NDArray[Any], bins: int
) -> tuple[Floats, Floats]:
    """Mean rate between equally spaced instants, from a cumulative byte counter.

    Returns:
        The edges (ns, one more than rates) and the rates (bit/s); empty without two samples.
    """
    times, counts = _increasing(time_ns, counter_bytes)
    if len(times) < 2:
        return np.zeros(0), np.zeros(0)
    edges = np.linspace(times[0], times[-1], min(bins, len(times) - 1) + 1)
    at_edges = np.interp(edges, times, counts)
    return edges, np.diff(at_edges) * 8e9 / np.diff(edges)


def _increasing(time_ns: NDArray[Any], values: NDArray[Any]) -> tuple[Floats, Floats]:
    """Without samples that repeat an instant."""
    times = np.asarray(time_ns, dtype=np.float64)
    keep = np.concatenate([[True], np.diff(times) > 0]) if len(times) else np.zeros(0, dtype=bool)
    return times[keep], np.asarray(values, dtype=np.float64)[keep]


def cdf(values: NDArray[Any], total: int | None = None) -> tuple[Floats, Floats]:
    """Points of the empirical distribution: value, fraction of `total` that is at most so large.

    Args:
        values: samples; NaN is left out.
        total: number of all samples, with those that have no value (the curve ends below 1).
    """
    known = np.sort(np.asarray(values, dtype=np.float64)[~np.isnan(values)])
    whole = max(total if total is not None else len(known), 1)
    return known, np.arange(1, len(known) + 1) / whole


def ccdf(values: NDArray[Any], total: int | None = None) -> tuple[Floats, Floats]:
    """Value, fraction of `total` that is larger; samples without a value count as larger."""
    known, below = cdf(values, total)
    return known, np.maximum(1 - below, 0)


def thin_tail(x: Floats, y: Floats, points: int = 400) -> tuple[Floats, Floats]:
    """Fewer points of a CCDF, as dense in its far tail as in its body."""
    if len(x) <= points:
        return x, y
    linear = np.linspace(0, len(x) - 1, points // 2)
    from_end = len(x) - np.geomspace(1, len(x), points // 2)
    order = np.unique(np.concatenate([linear, from_end]).astype(int))
    return x[order], y[order]


def merge_intervals(intervals: Sequence[Interval], gap: float = 0.0) -> list[Interval]:
    """The union of intervals, ascending; neighbours closer than `gap` become one."""
    merged: list[Interval] = []
    for start, end in sorted(intervals):
        if merged and start <= merged[-1][1] + gap:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged


@dataclass(frozen=True)
class Unit:
    """A unit that suits an axis.

    Attributes:
        factor: value in base units / value on the axis.
        name: for the label.
    """

    factor: float
    name: str


_TIMES = (Unit(1e9, "s"), Unit(1e6, "ms"), Unit(1e3, "µs"), Unit(1.0, "ns"))
_SIZES = (Unit(1e9, "GB"), Unit(1e6, "MB"), Unit(1e3, "KB"), Unit(1.0, "B"))


def _unit(largest: float, units: Sequence[Unit]) -> Unit:
    return next((unit for unit in units if largest >= unit.factor), units[-1])


def time_unit(largest_ns: float) -> Unit:
    """Unit of a time axis that ends at `largest_ns`."""
    return _unit(largest_ns, _TIMES)


def size_unit(largest_bytes: float) -> Unit:
    """Unit of a size axis."""
    return _unit(largest_bytes, _SIZES)
