"""Statistics of samples, which never divide by zero: without samples the answer is None."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence


def percentile(values: Sequence[float], percent: float) -> float | None:
    """Percentile by linear interpolation between ranks (NumPy's default); None without values.

    Args:
        values: in any order.
        percent: 0-100.
    """
    if not values:
        return None
    ordered = sorted(values)
    position = (len(ordered) - 1) * percent / 100
    low = math.floor(position)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (position - low)


def mean(values: Sequence[float]) -> float | None:
    """Arithmetic mean; None without values."""
    return math.fsum(values) / len(values) if values else None


def percentiles(values: Sequence[float], percents: Iterable[int]) -> dict[str, float | None]:
    """Percentiles by name, such as ``{"p50": 1.5, "p99": 2.0}``."""
    return {f"p{percent}": percentile(values, percent) for percent in percents}


def jain_index(values: Sequence[float]) -> float | None:
    """Jain's fairness index (sum x)^2 / (n sum x^2): 1 is equal shares, 1/n is one takes all.

    None without values and when all are 0 (Jain, Chiu and Hawe 1984).
    """
    squares = math.fsum(value * value for value in values)
    return math.fsum(values) ** 2 / (len(values) * squares) if squares else None


def ratio(part: float | None, whole: float | None) -> float | None:
    """part / whole; None when either is missing or the whole is 0."""
    return None if part is None or not whole else part / whole
