"""Intervals of means: Student's t, batch means, prediction."""

from __future__ import annotations

import math
import random
from statistics import fmean

import pytest

from traffic.intervals import (
    BATCHES,
    Interval,
    batch_means,
    mean_interval,
    prediction_interval,
    student_t,
)


@pytest.mark.parametrize(
    ("confidence", "freedom", "expected"),
    [
        (0.95, 1, 12.706), (0.95, 2, 4.303), (0.95, 3, 3.182), (0.99, 4, 4.604),
        (0.99, 19, 2.861), (0.999, 19, 3.883), (0.90, 30, 1.697), (0.95, 1000, 1.962),
        (0.5, 1, 1.0),
    ],
)  # fmt: skip
def test_quantiles_are_those_of_the_tables(
    confidence: float, freedom: int, expected: float
) -> None:
    """Two-sided, three decimals, as every table of Student's t has them."""
    assert student_t(confidence, freedom) == pytest.approx(expected, abs=0.0006)


@pytest.mark.parametrize(("count", "sizes"), [(6, [2, 2, 2]), (7, [2, 2, 3]), (2, [1, 1]), (0, [])])
def test_batches_are_consecutive_and_leave_nothing_out(count: int, sizes: list[int]) -> None:
    """Sizes differ by one at most; with fewer values than batches each is its own."""
    values = [float(at) for at in range(count)]
    means = batch_means(values, 3)
    starts = [sum(sizes[:at]) for at in range(len(sizes))]
    assert means == [fmean(values[s : s + n]) for s, n in zip(starts, sizes, strict=True)]


def test_the_interval_holds_the_true_mean_as_often_as_it_says() -> None:
    """99 % of 2,000 intervals of independent samples; the binomial error is 0.7 points."""
    rng = random.Random(1)
    held = 0
    for _ in range(2000):
        found = mean_interval([rng.expovariate(1.0) for _ in range(400)])
        assert found is not None
        held += found.holds(1.0)
    assert 0.98 <= held / 2000 <= 0.997


def test_batches_see_that_samples_depend_on_each_other() -> None:
    """A slow random walk around its mean gets a much wider interval than its shuffled samples."""
    rng, walk, level = random.Random(2), [], 0.0
    for _ in range(20_000):
        level = 0.999 * level + rng.gauss(0, 1)
        walk.append(level)
    mixed = list(walk)
    rng.shuffle(mixed)
    kept, shuffled = mean_interval(walk), mean_interval(mixed)
    assert kept is not None
    assert shuffled is not None
    assert kept.half > 5 * shuffled.half
    assert kept.middle == pytest.approx(shuffled.middle)


def test_means_of_one_quantity_fit_and_of_two_do_not() -> None:
    """Two runs of one process fit; a tenth more does not, at 10,000 samples."""
    rng = random.Random(3)
    first, second = ([rng.expovariate(1.0) for _ in range(10_000)] for _ in range(2))
    more = [value * 1.1 for value in second]
    a, b, c = (mean_interval(values) for values in (first, second, more))
    assert a is not None
    assert b is not None
    assert c is not None
    assert a.fits(b)
    assert b.fits(a)
    assert not a.fits(c)


def test_constant_values_fit_within_their_resolution() -> None:
    """Without any spread, means must be equal but for the unit that they were written in."""
    a, b = Interval(100.0, 0.0, 5), Interval(100.4, 0.0, 5)
    assert not a.fits(b)
    assert a.fits(b, resolution=1.0)
    assert a.fits(a)


def test_one_more_run_lies_in_the_prediction() -> None:
    """Wider than the mean's own interval, by the spread of single runs."""
    values = [9.0, 10.0, 11.0, 10.0]
    found = prediction_interval(values, 0.95)
    assert found is not None
    assert found.middle == 10.0
    assert found.half == pytest.approx(3.1824 * math.sqrt(2 / 3) * math.sqrt(1.25), rel=1e-4)


@pytest.mark.parametrize("values", [[], [1.0]])
def test_too_few_values_have_no_interval(values: list[float]) -> None:
    """One value says nothing about its spread."""
    assert mean_interval(values) is None
    assert prediction_interval(values) is None
    assert BATCHES >= 2
