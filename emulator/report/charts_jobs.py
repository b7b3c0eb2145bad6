"""Pictures of the workloads: training timeline, iteration times, request latencies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from emulator.report import style
from emulator.report.extract import Requests
from emulator.report.picture import Picture
from emulator.report.series import Floats, Interval, cdf, merge_intervals, thin, time_unit
from emulator.report.timeline import Timeline
from emulator.results import format as fmt

MAX_RANKS = 32
MAX_ITERATIONS = 10
MAX_JOBS = 4
_PIXELS = 1500
_CDF_BUCKETS = 200
_FAR = 4


def timeline_picture(jobs: Sequence[Timeline], shrink: float) -> Picture:
    """Computation and communication of every rank over time."""
    title = "Training timeline"
    aid = (
        "Each row is one rank: dark bars compute, light bars have data on the way; the vertical "
        "lines are the starts of iterations. White gaps are waiting."
    )
    shown = [job for job in jobs if job.rows][:MAX_JOBS]
    if not shown:
        return Picture("timeline", title, aid, None, "This run had no training job.")
    heights = [0.9 + 0.24 * min(len(job.rows), MAX_RANKS) for job in shown]
    notes: list[str] = []
    with style.styled("timeline"):
        figure = style.new_figure(sum(heights) + 0.3)
        rows = figure.subplots(len(shown), squeeze=False, height_ratios=heights)[:, 0]
        for axes, job in zip(rows, shown, strict=True):
            notes += _draw_job(axes, job)
        svg = style.to_svg(figure, "timeline", title)
    notes += _hidden_jobs(len(jobs) - len(shown)) + _shrink_note(shrink)
    return Picture("timeline", title, aid, svg, " ".join(notes))


def _hidden_jobs(hidden: int) -> list[str]:
    return [f"{hidden} more jobs are in flows.csv."] if hidden > 0 else []


def _shrink_note(shrink: float) -> list[str]:
    if shrink == 1:
        return []
    factor = fmt.significant(shrink)
    return [f"Times are as emulated; the full-size job takes {factor} times as long."]


def _draw_job(axes: Axes, job: Timeline) -> list[str]:
    window, notes = _window(job)
    rows = job.rows[:MAX_RANKS]
    clock = time_unit(window[1])
    for at, row in enumerate(rows):
        comm = _visible(row.comm, window, clock.factor)
        compute = _visible(row.compute, window, clock.factor)
        axes.broken_barh(comm, (at - 0.4, 0.8), facecolors=style.ORANGE, linewidth=0)
        axes.broken_barh(compute, (at - 0.4, 0.8), facecolors=style.BLUE, linewidth=0)
    _draw_iterations(axes, job, window, clock.factor)
    axes.set_yticks(range(len(rows)), [row.label for row in rows])
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_xlim(window[0] / clock.factor, window[1] / clock.factor)
    axes.set_xlabel(f"time in the run ({clock.name})")
    axes.grid(visible=False)
    axes.set_title(job.job, pad=22)
    patches = [
        Patch(color=style.BLUE, label="compute"),
        Patch(color=style.ORANGE, label="communication"),
    ]
    axes.legend(handles=patches, loc="lower right", bbox_to_anchor=(1, 1.04), ncols=2)
    return notes + _cut_notes(job)


def _cut_notes(job: Timeline) -> list[str]:
    notes = []
    if len(job.rows) > MAX_RANKS:
        notes.append(f"{job.job}: the first {MAX_RANKS} of {len(job.rows)} ranks are shown.")
    if job.unfinished:
        notes.append(f"{job.job}: {fmt.count(job.unfinished)} tasks had not ended with the run.")
    return notes


def _window(job: Timeline) -> tuple[Interval, list[str]]:
    """The part of the run to draw: all of it, or the iterations around the slowest."""
    spans = [span for row in job.rows for span in (*row.compute, *row.comm)]
    whole = (min(start for start, _ in spans), max(end for _, end in spans))
    numbers = list(job.iterations)
    if len(numbers) <= MAX_ITERATIONS:
        return whole, []
    slowest = max(numbers, key=lambda n: job.iterations[n][1] - job.iterations[n][0])
    first = max(0, min(numbers.index(slowest) - MAX_ITERATIONS // 2, len(numbers) - MAX_ITERATIONS))
    chosen = numbers[first : first + MAX_ITERATIONS]
    note = (
        f"{job.job}: iterations {chosen[0]} to {chosen[-1]} of {len(numbers)} are shown, around "
        f"the slowest ({slowest})."
    )
    return (job.iterations[chosen[0]][0], job.iterations[chosen[-1]][1]), [note]


def _visible(
    intervals: Sequence[Interval], window: Interval, factor: float
) -> list[tuple[float, float]]:
    """(start, width) pairs on the axis; what is closer than a pixel is drawn as one."""
    pixel = (window[1] - window[0]) / _PIXELS
    inside = [
        (max(start, window[0]), min(end, window[1]))
        for start, end in intervals
        if end >= window[0] and start <= window[1]
    ]
    merged = merge_intervals(inside, gap=pixel)
    return [(start / factor, max(end - start, pixel) / factor) for start, end in merged]


def _draw_iterations(axes: Axes, job: Timeline, window: Interval, factor: float) -> None:
    for number, (start, _) in job.iterations.items():
        if window[0] <= start < window[1]:
            axes.axvline(start / factor, color=style.BLACK, linewidth=1.0)
            axes.annotate(
                f"i{number}",
                (start / factor, 1.0),
                (2, 2),
                xycoords=("data", "axes fraction"),
                textcoords="offset points",
                fontsize=8,
            )


def iterations_picture(jobs: Sequence[Timeline], shrink: float) -> Picture:
    """Duration of each iteration."""
    title = "Iteration time"
    aid = (
        "Each point is one iteration of the full-size job, from the end of the one before to the "
        "last rank's last data; a flat row of points means that all of them were treated alike."
    )
    shown = [job for job in jobs if job.iterations]
    if not shown:
        return Picture("iterations", title, aid, None, "No training iteration was completed.")
    with style.styled("iterations"):
        figure = style.new_figure(2.7)
        axes = figure.subplots()
        for at, job in enumerate(shown):
            _draw_durations(axes, job, shrink, at)
        numbers = [number for job in shown for number in job.iterations]
        axes.set_xlim(min(numbers) - 0.5, max(numbers) + 0.5)
        axes.set_ylim(0, 1.15 * axes.get_ylim()[1])
        axes.set_xlabel("iteration")
        axes.set_ylabel("duration (ms)")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
        style.legend_above(axes, min(len(shown), 4))
        svg = style.to_svg(figure, "iterations", title)
    return Picture("iterations", title, aid, svg)


def _draw_durations(axes: Axes, job: Timeline, shrink: float, at: int) -> None:
    durations = job.durations_ms(shrink)
    numbers = np.array(list(durations), dtype=np.float64)
    x, y = thin(numbers, np.array(list(durations.values())), 100)
    marker = "o" if len(x) <= 60 else ""
    axes.plot(
        x,
        y,
        style.dash_of(at),
        marker=marker,
        color=style.colour_of(at),
        label=style.plain(job.job),
    )


_LATENCIES = (
    ("ttft", "time to first token"),
    ("tpot", "time per output token"),
    ("kv", "KV-cache transfer"),
)


def requests_picture(
    services: Sequence[Requests], slos: Mapping[str, Mapping[str, float]]
) -> Picture:
    """Distributions of TTFT, TPOT and KV transfer, with the objectives."""
    title = "Request latency"
    aid = (
        "Each curve gives the share of all requests that were at least as fast as the value below "
        "it; further left is better, and the dashed line is the service's objective (SLO)."
    )
    if not any(len(service.ttft_ms) for service in services):
        return Picture("requests", title, aid, None, "This run had no inference requests.")
    with style.styled("requests"):
        figure = style.new_figure(3.4)
        panels = figure.subplots(1, len(_LATENCIES), sharey=True)
        for axes, (key, words) in zip(panels, _LATENCIES, strict=True):
            limits = [slos.get(service.job, {}).get(key) for service in services]
            draw_cdfs(axes, [curve(service, service.job, key) for service in services], limits)
            axes.set_title(words, fontweight="normal", fontsize=9)
        panels[0].set_ylabel("share of requests")
        if len(services) > 1:
            figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper left", ncols=4)
        svg = style.to_svg(figure, "requests", title)
    return Picture("requests", title, aid, svg, _unfinished_sentence(services))


def _unfinished_sentence(services: Sequence[Requests]) -> str:
    parts = [
        f"{service.job}: {fmt.count(service.unfinished)} of {fmt.count(len(service.ttft_ms))} "
        "requests did not finish, so its curves end below 1."
        for service in services
        if service.unfinished
    ]
    return " ".join(parts)


@dataclass(frozen=True)
class Curve:
    """One distribution: its label, latencies (NaN = none), how many there should have been."""

    label: str
    values_ms: Floats
    expected: int


def curve(service: Requests, label: str, key: str) -> Curve:
    """A service's distribution of ``ttft``, ``tpot`` or ``kv``."""
    return Curve(label, getattr(service, f"{key}_ms"), service.expected[key])


def draw_cdfs(
    axes: Axes, curves: Sequence[Curve | None], limits: Sequence[float | None] = ()
) -> None:
    """Curves with their objectives (ms); None keeps the colour of a run that has no curve."""
    known = [c.values_ms for c in curves if c and not np.isnan(c.values_ms).all()]
    largest = max((float(np.nanmax(values)) for values in known), default=1.0)
    reached = [limit for limit in limits if limit and limit <= _FAR * largest]
    unit = time_unit(max([largest, *reached]) * 1e6)
    for at, item in enumerate(curves):
        if item is None:
            continue
        x, y = thin(*cdf(item.values_ms, item.expected), _CDF_BUCKETS)
        axes.step(
            np.concatenate([[0], x]) * 1e6 / unit.factor,
            np.concatenate([[0], y]),
            style.dash_of(at),
            where="post",
            color=style.colour_of(at),
            label=style.plain(item.label),
        )
    for at, limit in enumerate(limits):
        _draw_limit(axes, limit, largest, unit.factor, style.colour_of(at))
    if not known:
        axes.annotate("none", (0.5, 0.5), xycoords="axes fraction", ha="center", color=style.GREY)
    axes.set_ylim(0, 1.02)
    axes.set_xlim(left=0)
    axes.set_xlabel(unit.name)


def _draw_limit(
    axes: Axes, limit_ms: float | None, largest_ms: float, factor: float, colour: str
) -> None:
    if limit_ms is None:
        return
    text = f"SLO {fmt.duration_ms(limit_ms)}"
    if limit_ms > _FAR * largest_ms:
        axes.annotate(
            f"{text} is far right", (0.97, 0.05), xycoords="axes fraction", ha="right", fontsize=8
        )
        return
    at = limit_ms * 1e6 / factor
    axes.axvline(at, color=colour, linestyle=(0, (4, 3)), linewidth=1.1)
    axes.annotate(
        text, (at, 0.04), (-3, 0), textcoords="offset points", rotation=90, ha="right", fontsize=8
    )
