"""PURE: plain text tables for terminals."""

from __future__ import annotations

from collections.abc import Sequence

INDENT = "  "
GAP = "  "


def aligned(rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> list[str]:
    """Rows with their columns lined up, indented; no trailing blanks.

    Args:
        rows: cells; rows may be shorter than others.
        right: columns that are lined up at their right end (numbers).
    """
    widths: dict[int, int] = {}
    for row in rows:
        for column, cell in enumerate(row[:-1] if len(row) > 1 else row):
            widths[column] = max(widths.get(column, 0), len(cell))
    for row in rows:
        last = len(row) - 1
        if last in right:
            widths[last] = max(widths.get(last, 0), len(row[last]))
    return [_line(row, widths, right) for row in rows]


def _line(row: Sequence[str], widths: dict[int, int], right: Sequence[int]) -> str:
    cells = [
        cell.rjust(widths.get(column, 0)) if column in right else cell.ljust(widths.get(column, 0))
        for column, cell in enumerate(row)
    ]
    return (INDENT + GAP.join(cells)).rstrip()


def section(title: str, lines: Sequence[str]) -> list[str]:
    """A title and its lines; nothing when there are none."""
    return [title, *lines, ""] if lines else []
