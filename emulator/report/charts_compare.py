"""Pictures of several runs side by side: bars of key figures, overlaid distributions."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.artist import Artist
from matplotlib.axes import Axes

from emulator.report import style
from emulator.report.charts_jobs import curve, draw_cdfs
from emulator.report.charts_probes import draw_tail, finish_axes
from emulator.report.comparison import Compared, Figure
from emulator.report.extract import ProbeClass, Requests
from emulator.report.picture import Picture
from emulator.report.series import time_unit

_MAX_PANELS = 4
_INVALID_HATCH = "///"


def bars_picture(
    key: str, title: str, aid: str, runs: Sequence[Compared], rows: Sequence[Figure], empty: str
) -> Picture:
    """One panel of horizontal bars per figure, one bar per run; invalid runs are hatched.

    Args:
        key: anchor of the section.
        title: heading.
        aid: how to read it.
        runs: the runs, from top to bottom.
        rows: the figures; those without any value above 0 are left out.
        empty: sentence for the case that none is left.
    """
    shown = [row for row in rows if any(value for value in row.values)][: 2 * _MAX_PANELS]
    if not shown:
        return Picture(key, title, aid, None, empty)
    columns = min(len(shown), 2)
    lines = -(-len(shown) // columns)
    with style.styled(key):
        figure = style.new_figure(lines * (0.75 + 0.34 * len(runs)))
        grid = figure.subplots(lines, columns, squeeze=False, sharey=True)
        for axes, row in zip(grid.flat, shown, strict=False):
            _draw_bars(axes, runs, row)
        for axes in list(grid.flat)[len(shown) :]:
            axes.set_visible(False)
        return Picture(key, title, aid, style.to_svg(figure, key, title))


def _draw_bars(axes: Axes, runs: Sequence[Compared], row: Figure) -> None:
    largest = max(value or 0.0 for value in row.values)
    for at, (run, value) in enumerate(zip(runs, row.values, strict=True)):
        colour = style.colour_of(at)
        axes.barh(
            at,
            value or 0.0,
            height=0.66,
            color=colour if run.valid else "white",
            edgecolor=colour,
            hatch=None if run.valid else _INVALID_HATCH,
        )
        text = "none" if value is None else row.show(value)
        axes.annotate(
            text, (value or 0.0, at), (5, 0), textcoords="offset points", va="center", fontsize=8.5
        )
    axes.set_yticks(range(len(runs)), [run.shown for run in runs])
    axes.set_ylim(len(runs) - 0.45, -0.55)
    axes.set_xlim(0, largest * 1.25)
    axes.set_xticks([])
    axes.grid(visible=False)
    axes.spines["bottom"].set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.set_title(f"{row.group}: {row.name}", fontweight="normal", fontsize=9)


def first_token_picture(
    runs: Sequence[Compared], services: Sequence[Sequence[Requests]]
) -> Picture:
    """TTFT distributions of every service, all runs in one panel per service."""
    title = "Time to first token, all runs"
    aid = "Each curve is one run: the share of requests whose first token came at least so soon."
    names = list(dict.fromkeys(item.job for of_run in services for item in of_run))[:_MAX_PANELS]
    if not names:
        return Picture("ttft", title, aid, None, "None of the runs had inference requests.")
    with style.styled("ttft"):
        figure = style.new_figure(3.4)
        panels = figure.subplots(1, len(names), squeeze=False, sharey=True)[0]
        for axes, name in zip(panels, names, strict=True):
            found = [_of_job(of_run, name) for of_run in services]
            draw_cdfs(
                axes,
                [
                    curve(item, run.shown, "ttft") if item else None
                    for run, item in zip(runs, found, strict=True)
                ],
            )
            axes.set_title(name, fontweight="normal", fontsize=9)
        panels[0].set_ylabel("share of requests")
        figure.legend(*_longest_legend(panels), loc="outside upper left", ncols=4)
        return Picture("ttft", title, aid, style.to_svg(figure, "ttft", title))


def _of_job(services: Sequence[Requests], name: str) -> Requests | None:
    return next((item for item in services if item.job == name), None)


def probes_picture(runs: Sequence[Compared], probes: Sequence[Sequence[ProbeClass]]) -> Picture:
    """Probe latency tails, one panel per class, all runs in each."""
    title = "Probe latency, all runs"
    aid = (
        "Each curve is one run: the share of probes that took longer than the value below it, lost "
        "ones included; where it crosses 1 % is the 99th percentile."
    )
    arrived = [[item for item in of_run if len(item.latency_ns)] for of_run in probes]
    tcs = sorted({item.tc for of_run in arrived for item in of_run})[:_MAX_PANELS]
    if not tcs:
        return Picture("probes", title, aid, None, "None of the runs has probes that arrived.")
    every = [item for of_run in arrived for item in of_run]
    unit = time_unit(max(float(item.latency_ns.max()) for item in every))
    with style.styled("probes"):
        figure = style.new_figure(3.5)
        panels = figure.subplots(1, len(tcs), squeeze=False, sharey=True)[0]
        for axes, tc in zip(panels, tcs, strict=True):
            for at, (run, of_run) in enumerate(zip(runs, arrived, strict=True)):
                for item in (item for item in of_run if item.tc == tc):
                    draw_tail(axes, item, run.shown, at, unit.factor)
            finish_axes(axes, unit.name, max(item.sent for item in every))
            axes.set_title(f"TC{tc}", fontweight="normal", fontsize=9)
        for axes in panels[1:]:
            axes.set_ylabel("")
        figure.legend(*_longest_legend(panels), loc="outside upper left", ncols=3)
        return Picture("probes", title, aid, style.to_svg(figure, "probes", title))


def _longest_legend(panels: Sequence[Axes]) -> tuple[list[Artist], list[str]]:
    found: list[tuple[list[Artist], list[str]]]
    found = [axes.get_legend_handles_labels() for axes in panels]
    return max(found, key=lambda pair: len(pair[1]))
