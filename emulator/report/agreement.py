"""Whether two runs of one experiment say the same: the live clock against the virtual one. PURE.

The virtual clock is the yardstick: nothing in it depends on how busy the machine is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from emulator.clock.traits import LIVE_CLOCK, VIRTUAL_CLOCK
from emulator.report.comparison import Compared, Figure, Show
from emulator.report.who_pays import likeness
from emulator.results import format as fmt

THROUGHPUT_TOLERANCE = 0.05
"""What the clocks may differ by in what training and background traffic get through."""
LATENCY_TOLERANCE = 0.10
"""What they may differ by in median latencies."""
TOLERANCES: Mapping[str, float | None] = {
    "bus bandwidth": THROUGHPUT_TOLERANCE,
    "goodput": THROUGHPUT_TOLERANCE,
    "probe latency p50": LATENCY_TOLERANCE,
    "TTFT p50": LATENCY_TOLERANCE,
    "KV transfer p50": None,
    "flow completion p50": None,
}
"""Figures that are put side by side; None = for information."""
AGREES, DIFFERS, INFORMATION = "agrees", "differs", "for information"
HEADER = ("", "", "live", "virtual", "difference", "tolerance", "verdict")


@dataclass(frozen=True)
class Row:
    """One figure of two runs.

    Attributes:
        group: the workload or class that it is about.
        name: what it is.
        value: of the run that is judged; None where it has none.
        yardstick: of the other.
        tolerance: largest relative difference; None = for information.
        show: number -> text with a unit.
    """

    group: str
    name: str
    value: float | None
    yardstick: float | None
    tolerance: float | None
    show: Show

    @property
    def difference(self) -> float | None:
        """Relative difference from the yardstick; None where that has no meaning."""
        if self.value is None or self.yardstick is None:
            return None
        if self.value == self.yardstick:
            return 0.0
        return self.value / self.yardstick - 1 if self.yardstick else None

    @property
    def verdict(self) -> str:
        """``agrees``, ``differs`` (also when only one of them has the figure), or neither."""
        if self.tolerance is None:
            return INFORMATION
        difference = self.difference
        fits = difference is not None and abs(difference) <= self.tolerance
        return AGREES if fits else DIFFERS

    @property
    def cells(self) -> list[str]:
        """The row of a table, below `HEADER`."""
        tolerance = fmt.NONE if self.tolerance is None else fmt.percent(self.tolerance)
        values = (self.show(self.value), self.show(self.yardstick), fmt.change(self.difference))
        return [self.group, self.name, *values, tolerance, self.verdict]


@dataclass(frozen=True)
class Agreement:
    """Two runs that differ only by the clock.

    Attributes:
        live: the run under the live clock.
        virtual: the run under the virtual clock.
        rows: figures side by side.
    """

    live: Compared
    virtual: Compared
    rows: Sequence[Row]

    @property
    def title(self) -> str:
        """Heading of the section."""
        return f"Live against virtual: {self.live.shown}, {self.virtual.shown}"

    @property
    def sentence(self) -> str:
        """Whether they agree, in a sentence."""
        return sentence(self.rows, [self.live, self.virtual], "The clocks")


def sentence(rows: Sequence[Row], runs: Sequence[Compared], who: str) -> str:
    """Whether two runs agree.

    Args:
        rows: their figures.
        runs: the two; where one is INVALID, agreement means nothing.
        who: subject of the sentence, plural.
    """
    judged = [row for row in rows if row.tolerance is not None]
    wrong = [row for row in judged if row.verdict == DIFFERS]
    doubt = ", ".join(run.label for run in runs if not run.valid)
    rest = f" But {doubt} is INVALID, so this says nothing." if doubt else ""
    if not judged:
        return f"{who} have no figures in common that could be judged."
    if not wrong:
        return f"{who} agree: {_figures(len(judged))} of {len(judged)} within tolerance.{rest}"
    named = "; ".join(f"{row.group} {row.name} ({fmt.change(row.difference)})" for row in wrong)
    share = f"{_figures(len(wrong))} of {len(judged)}"
    return f"{who} differ in {share}: {named}.{rest}"


def _figures(count: int) -> str:
    return "1 figure" if count == 1 else f"{count} figures"


def agrees(rows: Sequence[Row], runs: Sequence[Compared]) -> bool:
    """True when figures were judged, all of them agree and all runs are VALID."""
    judged = [row for row in rows if row.tolerance is not None]
    fitting = all(row.verdict == AGREES for row in judged)
    return bool(judged) and fitting and all(run.valid for run in runs)


def rows_of(figures: Sequence[Figure], at: int, yardstick: int) -> list[Row]:
    """The figures of two runs that are to be alike.

    Args:
        figures: of a comparison.
        at: index of the run that is judged.
        yardstick: index of the other.
    """
    found = []
    for figure in figures:
        value, other = figure.values[at], figure.values[yardstick]
        if figure.name in TOLERANCES and (value is not None or other is not None):
            tolerance = TOLERANCES[figure.name]
            found.append(Row(figure.group, figure.name, value, other, tolerance, figure.show))
    return found


def agreements(runs: Sequence[Compared], figures: Sequence[Figure]) -> list[Agreement]:
    """One entry for every two runs of a comparison that differ only by the clock."""
    return [
        Agreement(runs[live], runs[virtual], rows_of(figures, live, virtual))
        for live, virtual in _pairs(runs)
    ]


def _pairs(runs: Sequence[Compared]) -> Iterator[tuple[int, int]]:
    """Indices (live, virtual); the first of each clock where several fit."""
    first: dict[tuple[str, str], int] = {}
    for at, run in enumerate(runs):
        first.setdefault((likeness(run), str(run.summary["clock"])), at)
    for (alike, clock), at in first.items():
        other = first.get((alike, VIRTUAL_CLOCK))
        if clock == LIVE_CLOCK and other is not None:
            yield at, other


def table(found: Agreement) -> list[list[str]]:
    """Cells of the section's table, header first."""
    return [list(HEADER), *(row.cells for row in found.rows)]


def csv_columns(found: Agreement) -> list[str]:
    """Heads of the columns that a pair adds to compare.csv."""
    pair = f"{found.live.label} against {found.virtual.label}"
    return [f"{pair} %", f"{pair} tolerance %", f"{pair} verdict"]


def csv_cells(found: Agreement, group: str, name: str) -> list[object]:
    """A figure's cells in those columns; empty where the pair does not judge it."""
    row = next((row for row in found.rows if (row.group, row.name) == (group, name)), None)
    if row is None:
        return ["", "", ""]
    numbers = (row.difference, row.tolerance)
    return [*(None if n is None else round(n * 100, 3) for n in numbers), row.verdict]
