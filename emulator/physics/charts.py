"""Draws the figures of cases: measurements beside what was expected."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes

from emulator.physics.drawing import Look, Panel, Series
from emulator.physics.judging import Result, Row
from emulator.report import style

_COLUMNS = 2
_ROW = 0.24
_SHOWN_LIMIT = 2.5
"""Further off than so many tolerances, a mark stands at the border."""


def panels_svg(key: str, title: str, panels: Sequence[Panel]) -> str:
    """The diagrams of a case, side by side; `key` makes their ids unique on a page."""
    columns = min(_COLUMNS, len(panels))
    lines = -(-len(panels) // columns)
    with style.styled(key):
        figure = style.new_figure(3.2 * lines)
        grid = figure.subplots(lines, columns, squeeze=False)
        for axes, panel in zip(grid.flat, panels, strict=False):
            _draw(axes, panel)
        for axes in list(grid.flat)[len(panels) :]:
            axes.set_visible(False)
        return style.to_svg(figure, key, title)


def _draw(axes: Axes, panel: Panel) -> None:
    references = measured = 0
    for series in panel.series:
        if series.look is Look.REFERENCE:
            dash = style.dash_of(1 + references)
            _plot(axes, series, color=style.BLACK, linestyle=dash, linewidth=1.2)
            references += 1
        else:
            colour = style.colour_of(measured)
            points = series.look is Look.POINTS
            how: dict[str, Any] = (
                {"linestyle": "none", "marker": "o", "markersize": 4.5} if points else {}
            )
            _plot(axes, series, color=colour, **how)
            measured += 1
    axes.set_title(panel.title, fontweight="normal", fontsize=9)
    axes.set_xlabel(panel.x_label)
    axes.set_ylabel(panel.y_label)
    if panel.x_ticks:
        axes.set_xticks([at for at, _ in panel.x_ticks], [text for _, text in panel.x_ticks])
    if panel.from_zero:
        axes.set_ylim(bottom=0)
    axes.legend(loc="best")


def _plot(axes: Axes, series: Series, **how: Any) -> None:
    axes.plot(series.x, series.y, label=style.plain(series.label), **how)


def overview_svg(results: Sequence[Result]) -> str:
    """Where every measurement lies within its tolerance."""
    rows = [(result.case.name, row) for result in results for row in result.rows]
    title = "Distance from what was expected, in tolerances"
    with style.styled("overview"):
        figure = style.new_figure(0.8 + _ROW * len(rows))
        axes = figure.subplots()
        axes.axvspan(-1, 1, color=style.GREEN, alpha=0.12, linewidth=0)
        axes.axvline(0, color=style.BLACK, linewidth=0.8)
        for at, (_, row) in enumerate(rows):
            colour = style.GREEN if row.passed else style.RED
            marker = "o" if row.passed else "X"
            axes.plot([offset(row)], [at], marker=marker, color=colour, linestyle="none")
        labels = [f"{name}: {row.target.quantity}" for name, row in rows]
        axes.set_yticks(range(len(rows)), labels)
        axes.set_ylim(len(rows) - 0.4, -0.6)
        axes.set_xlim(-_SHOWN_LIMIT, _SHOWN_LIMIT)
        axes.set_xlabel("tolerances below or above")
        return style.to_svg(figure, "overview", title)


def offset(row: Row) -> float:
    """How many tolerances a measurement is off, cut to what is shown; 0 when it has to be met."""
    apart = row.measured - row.target.expected
    slack = row.target.slack(row.clock)
    if math.isnan(apart):
        return _SHOWN_LIMIT
    if not slack:
        return 0.0 if row.passed else (_SHOWN_LIMIT if apart > 0 else -_SHOWN_LIMIT)
    return max(-_SHOWN_LIMIT, min(_SHOWN_LIMIT, apart / slack))
