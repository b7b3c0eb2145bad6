"""Arithmetic on series for pictures."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.report.series import (
    binned_rate_bps,
    ccdf,
    cdf,
    merge_intervals,
    size_unit,
    thin,
    thin_tail,
    time_unit,
)


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=300), st.integers(1, 20))
def test_thinning_keeps_the_outline(values: list[int], buckets: int) -> None:
    """First, last, least and largest value stay; points are few, in order, and original."""
    y = np.array(values)
    x = np.arange(len(y))
    few_x, few_y = thin(x, y, buckets)
    assert len(few_x) <= max(4 * buckets, 1)
    assert (few_x[0], few_x[-1]) == (x[0], x[-1])
    assert (few_y.min(), few_y.max()) == (y.min(), y.max())
    assert (np.diff(few_x) > 0).all()
    np.testing.assert_array_equal(few_y, y[few_x.astype(int)])


def test_thinning_keeps_a_single_spike() -> None:
    """One sample among a hundred thousand is not lost."""
    y = np.zeros(100_000)
    y[54_321] = 7
    x, few = thin(np.arange(len(y)), y, 100)
    assert x[np.argmax(few)] == 54_321


def test_rates_come_from_counters() -> None:
    """1250 bytes in a microsecond are 10 Gbit/s; idle time is 0."""
    time_ns = np.array([0, 1000, 2000, 3000])
    edges, rates = binned_rate_bps(time_ns, np.array([0, 1250, 1250, 3750]), 10)
    assert edges.tolist() == [0, 1000, 2000, 3000]
    assert rates.tolist() == pytest.approx([1e10, 0, 2e10])


def test_binning_keeps_the_bytes() -> None:
    """However coarse the bins, the sum over time is what was sent."""
    rng = np.random.default_rng(1)
    time_ns = np.sort(rng.choice(10**6, 500, replace=False))
    counter = np.cumsum(rng.integers(0, 5000, 500))
    edges, rates = binned_rate_bps(time_ns, counter, 37)
    assert len(rates) == 37
    total = float((rates * np.diff(edges)).sum()) / 8e9
    assert total == pytest.approx(counter[-1] - counter[0])


@pytest.mark.parametrize("times", [[], [5], [5, 5]])
def test_too_few_samples_give_no_rate(times: list[int]) -> None:
    """Without two instants there is no rate, and no error."""
    edges, rates = binned_rate_bps(np.array(times), np.array(times), 10)
    assert len(edges) == len(rates) == 0


def test_repeated_instants_are_harmless() -> None:
    """Two samples of one instant do not divide by zero."""
    _, rates = binned_rate_bps(np.array([0, 1000, 1000, 2000]), np.array([0, 1, 1, 2]), 5)
    assert np.isfinite(rates).all()


def test_cdf_ends_below_one_when_some_are_missing() -> None:
    """Values that are not there count in the whole."""
    x, y = cdf(np.array([3.0, np.nan, 1.0]), 4)
    assert x.tolist() == [1, 3]
    assert y.tolist() == [0.25, 0.5]
    _, above = ccdf(np.array([3.0, 1.0]), 4)
    assert above.tolist() == [0.75, 0.5]


def test_cdf_of_nothing() -> None:
    """No samples, no points."""
    x, y = cdf(np.zeros(0))
    assert len(x) == len(y) == 0


def test_thin_tail_keeps_the_last_points() -> None:
    """The far tail of a million samples is kept sample by sample."""
    x, y = ccdf(np.arange(1_000_000.0))
    few_x, few_y = thin_tail(x, y)
    assert len(few_x) <= 400
    assert few_x[-3:].tolist() == [999_997.0, 999_998.0, 999_999.0]
    assert few_x[0] == 0
    assert (np.diff(few_y) <= 0).all()


def test_intervals_are_united() -> None:
    """Overlaps and touching intervals become one; gaps above the limit stay."""
    assert merge_intervals([(5, 6), (0, 2), (1, 3), (3, 4)]) == [(0, 4), (5, 6)]
    assert merge_intervals([(0, 1), (1.5, 2)], gap=0.5) == [(0, 2)]
    assert merge_intervals([(0, 10), (2, 3)]) == [(0, 10)]
    assert merge_intervals([]) == []


@pytest.mark.parametrize(
    ("unit", "largest", "name"),
    [
        (time_unit, 0, "ns"), (time_unit, 1500, "µs"), (time_unit, 3e9, "s"),
        (size_unit, 999, "B"), (size_unit, 1e6, "MB"),
    ],
)  # fmt: skip
def test_units_suit_the_axis(unit: object, largest: float, name: str) -> None:
    """The largest value is at least one unit."""
    assert callable(unit)
    assert unit(largest).name == name
