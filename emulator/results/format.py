"""Numbers as people read them: three significant digits, a unit that fits, ``-`` for none. PURE."""

from __future__ import annotations

import math

NONE = "-"
_TIME_UNITS = ((1e9, "s"), (1e6, "ms"), (1e3, "us"), (1.0, "ns"))
_COUNT_UNITS = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"))
_BYTE_UNITS = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "KB"), (1.0, "B"))
_RATE_UNITS = ((1e12, "Tbit/s"), (1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s"))
_PLAIN_LIMIT = 10_000_000


def known(value: float | None) -> bool:
    """True for a number that can be shown."""
    return value is not None and math.isfinite(value)


def significant(value: float | None, digits: int = 3) -> str:
    """A number with that many significant digits and no exponent: 1234.5 -> ``1230``."""
    if value is None or not math.isfinite(value):
        return NONE
    if value == 0:
        return "0"
    magnitude = math.floor(math.log10(abs(value)))
    rounded = round(value, digits - 1 - magnitude)
    decimals = max(digits - 1 - math.floor(math.log10(abs(rounded))), 0)
    text = f"{rounded:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _scaled(value: float | None, units: tuple[tuple[float, str], ...]) -> str:
    if value is None or not math.isfinite(value):
        return NONE
    for size, unit in units:
        if abs(value) >= size * 0.9995:
            return f"{significant(value / size)} {unit}"
    size, unit = units[-1]
    return f"{significant(value / size)} {unit}"


def duration_ns(value: float | None) -> str:
    """Nanoseconds with a fitting unit: 1500 -> ``1.5 us``."""
    return _scaled(value, _TIME_UNITS)


def duration_us(value: float | None) -> str:
    """Microseconds with a fitting unit."""
    return duration_ns(None if value is None else value * 1e3)


def duration_ms(value: float | None) -> str:
    """Milliseconds with a fitting unit."""
    return duration_ns(None if value is None else value * 1e6)


def size_bytes(value: float | None) -> str:
    """Bytes with a fitting decimal unit: 400000 -> ``400 KB``."""
    return _scaled(value, _BYTE_UNITS)


def rate_bps(value: float | None) -> str:
    """Bits per second with a fitting unit."""
    return _scaled(value, _RATE_UNITS)


def rate_gbps(value: float | None) -> str:
    """Gigabits per second with a fitting unit."""
    return rate_bps(None if value is None else value * 1e9)


def count(value: float | None) -> str:
    """A count: exact with separators below ten millions, else three digits and M, G, T."""
    if value is None or not math.isfinite(value):
        return NONE
    if abs(value) < _PLAIN_LIMIT:
        return f"{value:,.0f}"
    return _scaled(value, _COUNT_UNITS)


def percent(fraction: float | None) -> str:
    """A fraction of one in per cent: 0.0123 -> ``1.23 %``; tiny but not nothing stays visible."""
    if fraction is None or not math.isfinite(fraction):
        return NONE
    if 0 < fraction < 0.00005:
        return "<0.01 %"
    if 0.9995 <= fraction < 1:
        return ">99.9 %"
    return f"{significant(fraction * 100)} %"


def share(part: float | None, whole: float | None) -> float | None:
    """part / whole, or None when either is unknown or the whole is 0."""
    if part is None or not whole:
        return None
    return part / whole


def change(fraction: float | None) -> str:
    """A relative change with its sign: 0.1234 -> ``+12.3 %``; from eleven-fold on ``x 11``."""
    if fraction is None or not math.isfinite(fraction):
        return NONE
    if fraction >= 10:
        return f"x {significant(1 + fraction, 2)}"
    text = f"{fraction * 100:+.1f} %"
    return "0 %" if text in ("+0.0 %", "-0.0 %") else text
