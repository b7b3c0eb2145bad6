"""PURE: what a measurement found, with the requirement beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from emulator.tables import aligned

_LARGE = 100
_MARKS = {None: "", True: "ok", False: "MISSED"}


@dataclass(frozen=True)
class Row:
    """One figure.

    Attributes:
        what: what was measured.
        value: the figure; a median where there are repetitions.
        unit: of the value.
        requirement: what it has to be, for people; empty when it only informs.
        met: whether it is; None without a requirement.
        remark: what a reader must know beside it.
    """

    what: str
    value: float
    unit: str
    requirement: str = ""
    met: bool | None = None
    remark: str = ""


def at_most(what: str, value: float, unit: str, limit: float, remark: str = "") -> Row:
    """A figure that must not be above a limit."""
    return Row(what, value, unit, f"at most {number(limit)} {unit}", value <= limit, remark)


def at_least(what: str, value: float, unit: str, limit: float, remark: str = "") -> Row:
    """A figure that must not be below a limit."""
    return Row(what, value, unit, f"at least {number(limit)} {unit}", value >= limit, remark)


def number(value: float) -> str:
    """A figure with as many digits as it deserves."""
    if abs(value) >= _LARGE:
        return f"{value:,.0f}"
    return f"{value:.3g}"


@dataclass(frozen=True)
class Measured:
    """All rows of one measurement.

    Attributes:
        name: of the measurement.
        summary: what it measures.
        rows: what it found.
    """

    name: str
    summary: str
    rows: Sequence[Row]

    @property
    def missed(self) -> list[str]:
        """What does not meet its requirement."""
        return [row.what for row in self.rows if row.met is False]


def to_text(measured: Measured) -> str:
    """A table for a terminal."""
    table = [
        (row.what, number(row.value), row.unit, row.requirement, _MARKS[row.met], row.remark)
        for row in measured.rows
    ]
    return "\n".join([f"{measured.name}: {measured.summary}", *aligned(table, right=(1,))])


def to_data(measured: Measured) -> dict[str, Any]:
    """The same for programs."""
    rows = [asdict(row) for row in measured.rows]
    return {"name": measured.name, "summary": measured.summary, "rows": rows}
