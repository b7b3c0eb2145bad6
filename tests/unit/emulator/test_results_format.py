"""Numbers as people read them."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.results import format as fmt


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"), (1, "1"), (1.5, "1.5"), (12.345, "12.3"), (1234.5, "1,230"), (999.6, "1,000"),
        (0.001234, "0.00123"), (-2.5, "-2.5"), (None, "-"), (math.nan, "-"), (math.inf, "-"),
        (0.9999, "1"),
    ],
)  # fmt: skip
def test_significant(value: float | None, text: str) -> None:
    """Three digits, no exponent, no needless zeros; unknown is a dash."""
    assert fmt.significant(value) == text


@given(st.floats(min_value=1e-6, max_value=1e12))
def test_significant_is_close(value: float) -> None:
    """The text is within half a unit of the third digit."""
    shown = float(fmt.significant(value).replace(",", ""))
    assert abs(shown - value) <= 0.00501 * value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0 ns"), (0.4, "0.4 ns"), (999, "999 ns"), (1500, "1.5 us"), (999_700, "1 ms"),
        (2_500_000, "2.5 ms"), (61.5e9, "61.5 s"), (3.6e12, "3,600 s"), (None, "-"),
    ],
)  # fmt: skip
def test_durations(value: float | None, text: str) -> None:
    """The unit fits, and rounding never shows 1,000 of a smaller unit."""
    assert fmt.duration_ns(value) == text


def test_units_of_durations() -> None:
    """Microseconds and milliseconds are converted."""
    assert fmt.duration_us(1500) == "1.5 ms"
    assert fmt.duration_ms(0.25) == "250 us"
    assert fmt.duration_ms(None) == "-"


def test_sizes_and_rates() -> None:
    """Decimal units, as links and buffers are sold."""
    assert fmt.size_bytes(400_000) == "400 KB"
    assert fmt.size_bytes(16_000_000) == "16 MB"
    assert fmt.rate_gbps(89.64) == "89.6 Gbit/s"
    assert fmt.rate_bps(50e6) == "50 Mbit/s"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"), (1234, "1,234"), (9_999_999, "9,999,999"), (12_345_678, "12.3 M"),
        (4.12e14, "412 T"), (None, "-"),
    ],
)  # fmt: skip
def test_counts(value: float | None, text: str) -> None:
    """Exact as long as that fits a table, then shortened."""
    assert fmt.count(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0 %"), (1, "100 %"), (0.5, "50 %"), (0.00781, "0.781 %"), (0.00001, "<0.01 %"),
        (0.99999, ">99.9 %"), (None, "-"), (1.2, "120 %"),
    ],
)  # fmt: skip
def test_percent(value: float | None, text: str) -> None:
    """Little is never shown as nothing, almost all never as all."""
    assert fmt.percent(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.1234, "+12.3 %"), (-0.5, "-50.0 %"), (0.0001, "0 %"), (-0.0001, "0 %"), (11.5, "x 12"),
        (None, "-"), (math.inf, "-"),
    ],
)  # fmt: skip
def test_change(value: float | None, text: str) -> None:
    """Changes carry their sign; many-fold ones are factors."""
    assert fmt.change(value) == text


def test_share_needs_both() -> None:
    """A share of nothing is unknown, not zero."""
    assert fmt.share(1, 4) == 0.25
    assert fmt.share(0, 0) is None
    assert fmt.share(None, 4) is None
    assert fmt.share(1, None) is None
