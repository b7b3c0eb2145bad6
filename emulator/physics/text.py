"""PURE: results as a table for a terminal, and as data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from emulator.physics.case import Case, Sense, Target
from emulator.physics.judging import Result, Row
from emulator.results.format import NONE, percent, significant
from emulator.results.table import align

HEADER = ("case", "quantity", "expected", "measured", "tolerance", "result")
PASS, FAIL = "PASS", "FAIL"
_DIGITS = 5
_BOUNDS = {Sense.AT_LEAST: "at least ", Sense.AT_MOST: "at most "}


def number(value: float, unit: str = "") -> str:
    """A number with its unit; ``-`` for none."""
    if not math.isfinite(value):
        return NONE
    return f"{significant(value, _DIGITS)} {unit}".rstrip()


def expected(target: Target) -> str:
    """What should be measured."""
    return _BOUNDS.get(target.sense, "") + number(target.expected, target.unit)


def tolerance(target: Target, clock: str) -> str:
    """How far a measurement may be off under a clock."""
    allowed = target.tolerance.of(clock)
    if not allowed:
        return NONE
    if target.tolerance.relative:
        return percent(allowed)
    return number(allowed, target.unit)


def word(passed: bool) -> str:
    """PASS or FAIL."""
    return PASS if passed else FAIL


def cells(row: Row) -> list[str]:
    """A row of the table, without the case."""
    target = row.target
    return [
        target.quantity,
        expected(target),
        number(row.measured, target.unit),
        tolerance(target, row.clock),
        word(row.passed),
    ]


def table_rows(results: Sequence[Result]) -> list[list[str]]:
    """The rows of all cases; a case's name stands in its first row only."""
    rows = []
    for result in results:
        for at, row in enumerate(result.rows):
            rows.append(["" if at else result.case.name, *cells(row)])
    return rows


def to_text(results: Sequence[Result]) -> str:
    """The table, a line for each reason, and how many passed."""
    lines = [align([list(HEADER), *table_rows(results)])] if results else []
    lines += [f"! {result.case.name}: {text}" for result in results for text in result.reasons]
    return "\n\n".join([*lines, conclusion(results)])


def conclusion(results: Sequence[Result]) -> str:
    """How many passed, and which did not."""
    failed = [result.case.name for result in results if not result.passed]
    done = f"{len(results) - len(failed)} of {len(results)} cases passed"
    return f"{done}; {FAIL}: {', '.join(failed)}" if failed else f"{done}."


def listing(cases: Sequence[Case]) -> str:
    """Cases with what they show, for ``--list``."""
    rows = [["case", "table", "clocks", "wall", "title"]]
    for case in cases:
        clocks = "virtual, live" if case.live else "virtual"
        rows.append([case.name, case.table or NONE, clocks, f"{case.wall_s:g} s", case.title])
    return align(rows)


def to_data(results: Sequence[Result]) -> list[dict[str, Any]]:
    """Results for a JSON file."""
    return [
        {
            "name": result.case.name,
            "table": result.case.table,
            "title": result.case.title,
            "shows": result.case.shows,
            "source": result.case.source,
            "passed": result.passed,
            "reasons": list(result.reasons),
            "wall_s": round(result.wall_s, 1),
            "runs": {label: folder.name for label, folder in result.folders.items()},
            "rows": [_row_data(row) for row in result.rows],
        }
        for result in results
    ]


def _row_data(row: Row) -> dict[str, Any]:
    target = row.target
    return {
        "quantity": target.quantity,
        "unit": target.unit,
        "expected": target.expected,
        "measured": row.measured if math.isfinite(row.measured) else None,
        "tolerance": target.tolerance.of(row.clock),
        "relative": target.tolerance.relative,
        "sense": target.sense.value,
        "source": target.source,
        "passed": row.passed,
    }
