"""Rates, durations, sizes and fractions: from what people write to integers, and back.

Everything inside the project is bit/s, ns and bytes (target units); only this module knows
spellings. Decimal prefixes are SI (1 KB = 1000 B), binary ones IEC 80000-13 (1 KiB = 1024 B).
``b`` and ``bit`` are bits, ``B`` and ``byte`` are bytes: ``100Gbps`` is 100 Gbit/s (tc reads it
as bytes; we never hand a user's unit to tc).
"""

from __future__ import annotations

import math
import re
from decimal import Decimal
from fractions import Fraction

from topologies.errors import SpecError

MAX_VALUE = 2**63 - 1
"""Largest rate, duration or size: results are kept in signed 64-bit columns."""

MIN_BARE_RATE_BPS = 1_000_000
"""A number without a unit is taken as bit/s (as ns-3 files have it) from here on, 1 Mbit/s."""

_QUANTITY = re.compile(r"\s*([+-]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*(\D*)")
_RATIO = re.compile(r"\s*(\d+(?:\.\d+)?)\s*[/:]\s*(\d+(?:\.\d+)?)\s*")

_SI = {"": 1, "k": 10**3, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15}
_IEC = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50}
_LOWER = {"m": 10**6, "g": 10**9, "t": 10**12}
_BIT_NAMES = ("bit/s", "bits/s", "bit/sec", "bits/sec", "bit", "b/s", "bps", "b")
_BYTE_NAMES = ("B/s", "Bps", "byte/s", "bytes/s")


def _rate_units() -> dict[str, Fraction]:
    prefixes = _SI | _IEC | _LOWER
    units = {p + name: Fraction(f) for p, f in prefixes.items() for name in _BIT_NAMES}
    units |= {p + name: Fraction(8 * f) for p, f in prefixes.items() for name in _BYTE_NAMES}
    units |= {p + name: Fraction(f) for p, f in (_SI | _LOWER).items() if p for name in ("", "bE")}
    return units


def _size_units() -> dict[str, Fraction]:
    units = {p + "B": Fraction(f) for p, f in (_SI | _IEC).items()}
    return units | {"byte": Fraction(1), "bytes": Fraction(1)}


_SECOND = 10**9
_DURATION = {
    "ns": 1, "us": 10**3, "\u00b5s": 10**3, "\u03bcs": 10**3, "ms": 10**6, "s": _SECOND,
    "sec": _SECOND, "min": 60 * _SECOND, "h": 3600 * _SECOND,
}  # fmt: skip

_RATE_UNITS = _rate_units()
_SIZE_UNITS = _size_units()
_DURATION_UNITS = {unit: Fraction(factor) for unit, factor in _DURATION.items()}
_EVENT_UNITS = {
    spelling.format(unit): Fraction(_SECOND, factor)
    for unit, factor in _DURATION.items()
    for spelling in ("/{}", "/ {}", "per {}")
} | {"Hz": Fraction(1), "kHz": Fraction(1000)}
_FRACTION_UNITS = {"": Fraction(1), "%": Fraction(1, 100)}

_KNOWN = {
    "rate": "bit/s, kbit/s, Mbit/s, Gbit/s, Tbit/s (also Gbps, Gb/s, G), and B/s, KB/s, MB/s, GB/s",
    "duration": "ns, us, ms, s, min, h",
    "size": "B, KB, MB, GB, TB (powers of 1000), KiB, MiB, GiB, TiB (powers of 1024)",
    "event rate": "/s, /ms, /us, /min, /h, Hz",
    "fraction": "%",
}
_EXAMPLE = {
    "rate": "write e.g. 100 Gbit/s",
    "duration": "write e.g. 500 ns",
    "size": "write e.g. 64 MiB or 400 KB",
    "event rate": "write e.g. 1000 /s",
    "fraction": "write e.g. 1/8, 0.125 or 12.5 %",
}


def _number(text: str, value: object, what: str, path: str) -> Fraction:
    """An exact number out of the digits that the grammar found."""
    digits = Decimal(text.replace("_", ""))
    if abs(digits.adjusted()) > 40:
        raise SpecError(path, value, f"is out of range for a {what}", _EXAMPLE[what])
    return Fraction(digits)


def _split(value: object, what: str, path: str) -> tuple[Fraction, str]:
    """Number and unit of what the user wrote; the unit is "" for a bare number."""
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal, Fraction, str)):
        raise SpecError(path, value, f"is not a {what}", _EXAMPLE[what])
    if not isinstance(value, str):
        if not math.isfinite(value):
            raise SpecError(path, value, "must be finite", _EXAMPLE[what])
        return Fraction(str(value)) if isinstance(value, float) else Fraction(value), ""
    match = _QUANTITY.fullmatch(value)
    if not match:
        rule = f"is not a {what}: a number and a unit are expected"
        raise SpecError(path, value, rule, _EXAMPLE[what])
    return _number(match[1], value, what, path), " ".join(match[2].split())


def _unit_error(value: object, unit: str, what: str, path: str) -> SpecError:
    if what == "size" and unit and unit in _SI | _IEC | _LOWER:
        letter = unit[0].upper()
        rule = f"is ambiguous: {unit} may be {letter}B (powers of 1000) or {letter}iB (of 1024)"
        return SpecError(path, value, rule, f"write {letter}B or {letter}iB")
    if what == "size" and unit.endswith(("b", "bit")):
        return SpecError(path, value, "is in bits, and a size is in bytes", _EXAMPLE[what])
    rule = f"has the unknown unit {unit!r}" if unit else "has no unit"
    return SpecError(path, value, rule, f"{_EXAMPLE[what]}; known units: {_KNOWN[what]}")


def _scaled(value: object, what: str, units: dict[str, Fraction], path: str) -> Fraction:
    """The quantity in base units; a bare zero needs no unit."""
    number, unit = _split(value, what, path)
    if unit in units:
        number *= units[unit]
    elif unit or number:
        raise _unit_error(value, unit, what, path)
    return number


def _in_range(value: object, number: Fraction, what: str, allow_zero: bool, path: str) -> Fraction:
    if number < 0 or (number == 0 and not allow_zero):
        rule = "must not be negative" if allow_zero else "must be above 0"
        raise SpecError(path, value, rule, _EXAMPLE[what])
    if number > MAX_VALUE:
        raise SpecError(path, value, f"is too large for a {what}", _EXAMPLE[what])
    return number


def _rounded(value: object, number: Fraction, unit: str, path: str) -> int:
    """Nearest whole number; what is not 0 may not become 0."""
    result = math.floor(number + Fraction(1, 2))
    if number and not result:
        raise SpecError(path, value, f"is below the resolution of 1 {unit}", f"write 1 {unit}")
    return result


def parse_rate(value: object, path: str = "rate") -> int:
    """A data rate in bit/s, rounded to the nearest.

    ``100 Gbit/s``, ``100Gbps``, ``100Gb/s``, ``100G`` are bits; ``25GB/s`` is bytes. A number
    without a unit is bit/s from `MIN_BARE_RATE_BPS` on, and an error below (100 what?).
    """
    bare, unit = _split(value, "rate", path)
    if not unit and bare >= MIN_BARE_RATE_BPS:
        scaled = bare
    else:
        scaled = _scaled(value, "rate", _RATE_UNITS, path)
    return _rounded(value, _in_range(value, scaled, "rate", False, path), "bit/s", path)


def parse_duration(value: object, path: str = "duration", *, allow_zero: bool = True) -> int:
    """A duration in ns, rounded to the nearest: ``500 ns``, ``1us``, ``0.0005ms``, ``0``."""
    scaled = _scaled(value, "duration", _DURATION_UNITS, path)
    return _rounded(value, _in_range(value, scaled, "duration", allow_zero, path), "ns", path)


def parse_size(value: object, path: str = "size", *, allow_zero: bool = False) -> int:
    """A size in bytes: ``16 MB`` (decimal), ``64 MiB`` (binary), ``9000`` (plain bytes)."""
    number, unit = _split(value, "size", path)
    scaled = _scaled(value, "size", _SIZE_UNITS, path) if unit else number
    _in_range(value, scaled, "size", allow_zero, path)
    if scaled.denominator != 1:
        raise SpecError(path, value, "is not a whole number of bytes", f"write {round(scaled)} B")
    return int(scaled)


def parse_event_rate(value: object, path: str = "rate", *, allow_zero: bool = False) -> float:
    """Events per second: ``1000 /s``, ``5/s``, ``2 /ms``, ``30 per min``."""
    scaled = _scaled(value, "event rate", _EVENT_UNITS, path)
    return float(_in_range(value, scaled, "event rate", allow_zero, path))


def parse_fraction(
    value: object, path: str = "fraction", *, maximum: float | None = 1.0, allow_zero: bool = True
) -> float:
    """A fraction: ``1/8``, ``0.2``, ``20 %``.

    Args:
        value: what the user wrote.
        path: where it stands.
        maximum: largest allowed value; None for factors that may exceed 1, such as alpha.
        allow_zero: whether 0 is a sensible value here.
    """
    number = _ratio(value, path)
    _in_range(value, number, "fraction", allow_zero, path)
    if maximum is not None and number > maximum:
        way_out = f"write {value} %" if isinstance(value, (int, float)) and value <= 100 else ""
        raise SpecError(
            path, value, f"must be at most {maximum:g}", way_out or _EXAMPLE["fraction"]
        )
    return float(number)


def _ratio(value: object, path: str) -> Fraction:
    match = _RATIO.fullmatch(value) if isinstance(value, str) else None
    if not match:
        return _scaled(value, "fraction", _FRACTION_UNITS, path)
    if not Fraction(match[2]):
        raise SpecError(path, value, "divides by 0", _EXAMPLE["fraction"])
    return Fraction(match[1]) / Fraction(match[2])


def _decimal(number: Fraction, digits: int | None) -> str:
    """Decimal text without trailing zeros; exact when digits is None."""
    if digits is not None and number:
        number = Fraction(f"{float(number):.{digits}g}")
    text = format(Decimal(number.numerator) / Decimal(number.denominator), "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def _with_unit(value: int, steps: list[tuple[str, int]], digits: int | None) -> str:
    """Text in the largest unit that leaves at least 1."""
    unit, factor = next((s for s in steps if value >= s[1]), steps[-1])
    return f"{_decimal(Fraction(value, factor), digits)} {unit}"


_RATE_STEPS = [("Tbit/s", 10**12), ("Gbit/s", 10**9), ("Mbit/s", 10**6), ("kbit/s", 10**3)]
_TIME_STEPS = [("s", _SECOND), ("ms", 10**6), ("us", 10**3), ("ns", 1)]
_BYTE_STEPS = [("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("KB", 10**3), ("B", 1)]
_IEC_STEPS = [("TiB", 2**40), ("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10), ("B", 1)]


def format_rate(rate_bps: int, digits: int | None = None) -> str:
    """``100 Gbit/s``. Exact (`parse_rate` gives the same number), or rounded to digits."""
    return _with_unit(rate_bps, [*_RATE_STEPS, ("bit/s", 1)], digits)


def format_duration(duration_ns: int, digits: int | None = None) -> str:
    """``1.5 us``. Exact (`parse_duration` gives the same number), or rounded to digits."""
    return _with_unit(duration_ns, _TIME_STEPS, digits)


def format_size(size_bytes: int, digits: int | None = None) -> str:
    """``16 MB`` or ``64 MiB``, whichever is shorter; plain bytes below 10,000. Exact likewise."""
    if size_bytes < 10_000:
        return f"{size_bytes} B"
    decimal, binary = (_with_unit(size_bytes, steps, digits) for steps in (_BYTE_STEPS, _IEC_STEPS))
    return binary if len(binary) < len(decimal) else decimal


def format_event_rate(rate_per_s: float) -> str:
    """``1000 /s``; `parse_event_rate` gives the same number."""
    return f"{_decimal(Fraction(str(rate_per_s)), None)} /s"
