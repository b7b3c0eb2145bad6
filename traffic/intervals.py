"""PURE: how far a mean can be trusted: intervals by Student's t.

Packets of one run are not independent: a queue that is long now is long a moment later. So the
samples of a run are cut into consecutive batches, whose means nearly are (the method of batch
means: Law, Simulation Modeling and Analysis, 5th edition, section 9.5.3). What a seed decides once
for a whole run, such as which paths flows take, shows in several runs only: `prediction_interval`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

BATCHES = 20
"""Law, ibid.: more than 20 to 30 batches gain little, fewer make the interval wide."""
CONFIDENCE = 0.99


@dataclass(frozen=True)
class Interval:
    """A value and how far it may be off.

    Attributes:
        middle: the mean.
        half: half the interval's width, in the unit of the mean.
        samples: how many values the mean is of.
    """

    middle: float
    half: float
    samples: int

    def holds(self, value: float) -> bool:
        """Whether a value lies within."""
        return abs(value - self.middle) <= self.half

    def fits(self, other: Interval, resolution: float = 0.0) -> bool:
        """Whether two independent means may be of one quantity.

        Args:
            other: the other mean, of the same confidence.
            resolution: of the values, in their unit; means are not told apart below it.
        """
        allowed = math.hypot(self.half, other.half)
        return abs(self.middle - other.middle) <= max(allowed, resolution)


def student_t(confidence: float, freedom: int) -> float:
    """Two-sided quantile of Student's distribution: the t with P(|T| < t) = confidence.

    Args:
        confidence: 0 to 1, both exclusive.
        freedom: degrees of freedom, at least 1.
    """
    low, high = 0.0, 1.0
    while _within(high, freedom) < confidence:
        high *= 2
    for _ in range(100):
        middle = (low + high) / 2
        if _within(middle, freedom) < confidence:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _within(t: float, freedom: int) -> float:
    """P(|T| < t), by the finite series of Abramowitz and Stegun, 26.7.3 and 26.7.4."""
    angle = math.atan(t / math.sqrt(freedom))
    cosine, sine = math.cos(angle), math.sin(angle)
    odd = freedom % 2
    term, total = (cosine, cosine) if odd else (1.0, 1.0)
    for step in range(2 + odd, freedom, 2):
        term *= cosine * cosine * (step - 1) / step
        total += term
    if odd:
        return 2 / math.pi * (angle + (sine * total if freedom > 1 else 0.0))
    return sine * total


def batch_means(values: Sequence[float], batches: int = BATCHES) -> list[float]:
    """Means of consecutive batches of (nearly) equal size; fewer batches than asked for few values.

    Args:
        values: in the order of time.
        batches: how many.
    """
    count = min(batches, len(values))
    edges = [len(values) * at // count for at in range(count + 1)] if count else []
    return [fmean(values[low:high]) for low, high in itertools.pairwise(edges)]


def mean_interval(
    values: Sequence[float], confidence: float = CONFIDENCE, batches: int = BATCHES
) -> Interval | None:
    """Mean of one run's samples and the interval of its confidence; None below two samples.

    Args:
        values: in the order of time.
        confidence: that the true mean is inside.
        batches: that the samples are cut into.
    """
    means = batch_means(values, batches)
    if len(means) < 2:
        return None
    spread = student_t(confidence, len(means) - 1) * stdev(means) / math.sqrt(len(means))
    return Interval(fmean(values), spread, len(values))


def prediction_interval(
    values: Sequence[float], confidence: float = CONFIDENCE
) -> Interval | None:  # fmt: skip
    """Where the value of one more run lies, from those of several; None below two.

    Args:
        values: the same figure of runs that differ in their seed only.
        confidence: that the next one is inside.
    """
    count = len(values)
    if count < 2:
        return None
    spread = student_t(confidence, count - 1) * stdev(values) * math.sqrt(1 + 1 / count)
    return Interval(fmean(values), spread, count)
