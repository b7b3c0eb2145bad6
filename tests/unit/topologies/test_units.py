"""Rates, durations, sizes and fractions as people write them."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

from topologies import units
from topologies.errors import SpecError


@pytest.mark.parametrize(
    ("text", "bps"),
    [
        ("100 Gbit/s", 100e9),
        ("100Gbit", 100e9),
        ("100Gbps", 100e9),
        ("100Gb/s", 100e9),
        ("100 gbps", 100e9),
        ("100G", 100e9),
        ("100GbE", 100e9),
        ("400 Gbps", 400e9),
        ("9.41 Gbits/sec", 9.41e9),
        ("25GB/s", 200e9),
        ("25 GBps", 200e9),
        ("1 GiB/s", 8 * 2**30),
        ("25000000000.0", 25e9),
        (25_000_000_000, 25e9),
        (25e9, 25e9),
        ("1.6 Tbit/s", 1.6e12),
        ("50 kbit/s", 50e3),
        ("50 Kbit/s", 50e3),
        ("10 mbit", 10e6),
        ("1_000 Mbit/s", 1e9),
        ("7 bit/s", 7),
    ],
)
def test_spellings_of_a_rate(text: object, bps: float) -> None:
    """Every spelling found in the field means bits unless it says bytes with a capital B."""
    assert units.parse_rate(text) == bps


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("500 ns", 500),
        ("1us", 1000),
        ("0.0005ms", 500),
        ("1\u00b5s", 1000),
        ("1 \u03bcs", 1000),
        ("2 s", 2 * 10**9),
        ("1e3 ns", 1000),
        ("2 min", 120 * 10**9),
        ("1 h", 3600 * 10**9),
        ("0.0000000015 s", 2),
        (0, 0),
        ("0", 0),
        ("0 us", 0),
    ],
)
def test_spellings_of_a_duration(text: object, ns: int) -> None:
    """A duration is rounded to the nearest ns; zero needs no unit."""
    assert units.parse_duration(text) == ns


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("16 MB", 16_000_000),
        ("64 MiB", 64 * 2**20),
        ("400 KB", 400_000),
        ("400 kB", 400_000),
        ("1.5 KB", 1500),
        ("4096 B", 4096),
        ("9000", 9000),
        (9000, 9000),
        ("12 bytes", 12),
        ("2.68 GB", 2_680_000_000),
    ],
)
def test_spellings_of_a_size(text: object, size: int) -> None:
    """Prefixes are decimal without and binary with an i; a plain number is bytes."""
    assert units.parse_size(text) == size


@pytest.mark.parametrize(
    ("text", "per_s"),
    [("1000 /s", 1000), ("5/s", 5), ("2 /ms", 2000), ("30 per min", 0.5), ("1.5 kHz", 1500)],
)
def test_spellings_of_an_event_rate(text: str, per_s: float) -> None:
    """An event rate is a number per unit of time."""
    assert units.parse_event_rate(text) == per_s


@pytest.mark.parametrize(
    ("text", "value"),
    [("1/8", 0.125), (0.2, 0.2), ("20 %", 0.2), ("20%", 0.2), ("0.25", 0.25), (1, 1.0), (0, 0.0)],
)
def test_spellings_of_a_fraction(text: object, value: float) -> None:
    """A fraction is a ratio, a decimal or a percentage."""
    assert units.parse_fraction(text) == value


def test_fractions_above_one_only_where_allowed() -> None:
    """Alpha may be 8; a probability of 20 is met with the advice to write 20 %."""
    assert units.parse_fraction(8, maximum=None) == 8
    assert units.parse_fraction("3:2", maximum=None) == 1.5
    with pytest.raises(SpecError, match="write 20 %"):
        units.parse_fraction(20)


PARSERS = [
    units.parse_rate,
    units.parse_duration,
    units.parse_size,
    units.parse_event_rate,
    units.parse_fraction,
]
NONSENSE: list[object] = [
    None, True, [], {}, "", " ", "fast", "nan", "inf", "-inf", float("nan"), float("inf"), -1, "-1",
    "-5 ns", "1,5", "1 2", "1e999999999", "0x10", "--1", "5 furlongs", "1/0", b"1",
]  # fmt: skip


@pytest.mark.parametrize("parse", PARSERS, ids=lambda parse: parse.__name__)
@pytest.mark.parametrize("value", NONSENSE, ids=repr)
def test_nonsense_is_an_error_that_names_place_and_value(parse: object, value: object) -> None:
    """Whatever is not a quantity raises SpecError with the key path, the value and a way out."""
    with pytest.raises(SpecError) as caught:
        parse(value, "fabric.thing")  # type: ignore[operator]
    assert caught.value.path == "fabric.thing"
    assert caught.value.value is value
    assert "write" in str(caught.value)


@pytest.mark.parametrize("value", [100, "100", 0.5, "999999"])
def test_a_small_bare_rate_is_ambiguous(value: object) -> None:
    """100 may mean Mbit/s or Gbit/s, so the error says how to write it."""
    with pytest.raises(SpecError, match=r"has no unit; write e\.g\. 100 Gbit/s"):
        units.parse_rate(value)


@pytest.mark.parametrize(
    ("parse", "value"),
    [(units.parse_rate, "3 Gfoo"), (units.parse_rate, "3 GB"), (units.parse_duration, "3 m"),
     (units.parse_duration, 3), (units.parse_event_rate, 3), (units.parse_event_rate, "3/x"),
     (units.parse_size, "3 foo")],
)  # fmt: skip
def test_missing_and_unknown_units_list_the_known_ones(parse: object, value: object) -> None:
    """The error lists the known units of that quantity."""
    with pytest.raises(SpecError, match="known units: "):
        parse(value)  # type: ignore[operator]


@pytest.mark.parametrize(
    ("value", "words"),
    [("64M", "MiB"), ("64k", "KiB"), ("16 Gi", "GiB"), ("16 Mb", "bits"), ("16 Mbit", "bits")],
)
def test_ambiguous_sizes_are_refused(value: str, words: str) -> None:
    """64M may be decimal or binary, and Mb is bits: the error says what to write."""
    with pytest.raises(SpecError, match=words):
        units.parse_size(value)


@pytest.mark.parametrize("value", ["1.5 B", 0.5, "0.0001 KB", "1.3333333333 GB"])
def test_a_size_is_whole_bytes(value: object) -> None:
    """A fraction of a byte is an error that offers the nearest whole number."""
    with pytest.raises(SpecError, match="whole number of bytes; write"):
        units.parse_size(value)


def test_zero_only_where_it_makes_sense() -> None:
    """A delay of 0 is fine; a rate, a size or an event rate of 0 is not, unless asked for."""
    assert units.parse_duration("0 ns") == 0
    assert units.parse_size(0, allow_zero=True) == 0
    assert units.parse_event_rate("0 /s", allow_zero=True) == 0
    for parse, value in ((units.parse_rate, "0 Gbit/s"), (units.parse_rate, 0),
                         (units.parse_size, "0 B"), (units.parse_event_rate, "0 /s")):  # fmt: skip
        with pytest.raises(SpecError, match="must be above 0"):
            parse(value)
    with pytest.raises(SpecError, match="must be above 0"):
        units.parse_duration(0, allow_zero=False)


@pytest.mark.parametrize(
    ("parse", "value"), [(units.parse_rate, "0.4 bit/s"), (units.parse_duration, "0.4 ns")]
)
def test_nothing_is_rounded_to_zero(parse: object, value: str) -> None:
    """What is below the resolution is an error rather than 0."""
    with pytest.raises(SpecError, match="resolution"):
        parse(value)  # type: ignore[operator]


@pytest.mark.parametrize(
    ("parse", "value"),
    [(units.parse_rate, "9300000 Tbit/s"), (units.parse_duration, "3000000 h"),
     (units.parse_size, "10000 PB"), (units.parse_size, 2**63)],
)  # fmt: skip
def test_values_fit_64_bits(parse: object, value: object) -> None:
    """Results are stored in signed 64-bit columns, so more is refused."""
    with pytest.raises(SpecError, match="too large"):
        parse(value)  # type: ignore[operator]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (units.format_rate(100_000_000_000), "100 Gbit/s"),
        (units.format_rate(1_500_000_000_000), "1.5 Tbit/s"),
        (units.format_rate(66_666_666_667, digits=3), "66.7 Gbit/s"),
        (units.format_rate(7), "7 bit/s"),
        (units.format_duration(0), "0 ns"),
        (units.format_duration(1_500), "1.5 us"),
        (units.format_duration(90 * 10**9), "90 s"),
        (units.format_size(16_000_000), "16 MB"),
        (units.format_size(64 * 2**20), "64 MiB"),
        (units.format_size(4_200), "4200 B"),
        (units.format_size(123_456_789, digits=3), "123 MB"),
        (units.format_event_rate(1000.0), "1000 /s"),
    ],
)
def test_texts_for_people(text: str, expected: str) -> None:
    """The largest unit that leaves at least 1 is chosen, and no zeros trail."""
    assert text == expected


def test_formatting_and_parsing_are_inverse() -> None:
    """Parsing a formatted value gives the same number, over all magnitudes of 63 bits."""
    rng = random.Random(1)
    values = [rng.getrandbits(rng.randrange(1, 64)) for _ in range(3000)]
    for value in [0, 1, 999, 10_000, units.MAX_VALUE, *(10**k for k in range(19)), *values]:
        assert units.parse_duration(units.format_duration(value)) == value
        assert units.parse_size(units.format_size(value), allow_zero=True) == value
        if value:
            assert units.parse_rate(units.format_rate(value)) == value
            assert units.parse_event_rate(units.format_event_rate(1 / value)) == 1 / value


def test_decimals_are_exact() -> None:
    """No binary floating point creeps in: a tenth of a second is 100,000,000 ns, not one less."""
    rng = random.Random(2)
    for _ in range(500):
        ns = rng.randrange(1, 10**15)
        digits = f"{ns // 10**9}.{ns % 10**9:09d}"
        assert units.parse_duration(f"{digits} s") == ns
        assert units.parse_rate(f"{digits} Gbit/s") == Fraction(digits) * 10**9
