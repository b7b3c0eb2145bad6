"""The picture of probe latency per traffic class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes

from emulator.report import style
from emulator.report.extract import ProbeClass
from emulator.report.picture import Picture
from emulator.report.series import ccdf, thin_tail, time_unit
from emulator.results import format as fmt

_FLOOR_DECADES = 6


def probes_picture(
    classes: Sequence[ProbeClass], unloaded: Mapping[int, tuple[float, float]]
) -> Picture:
    """Share of probes that took longer than a latency, per class, on logarithmic axes.

    Args:
        classes: what the probes saw.
        unloaded: class -> least and largest prediction for an idle fabric, ns.
    """
    title = "Probe latency per traffic class"
    aid = (
        "Each curve gives the share of probes that took longer than the value below it, lost ones "
        "included: where it crosses 1 % is the 99th percentile"
    )
    aid += "; grey is the idle fabric." if unloaded else "."
    if not any(item.sent for item in classes):
        return Picture("probes", title, aid, None, "No probes were sent in this run.")
    arrived = [item for item in classes if len(item.latency_ns)]
    if not arrived:
        return Picture("probes", title, aid, None, "None of the probes arrived.")
    with style.styled("probes"):
        figure = style.new_figure(3.6)
        axes = figure.subplots()
        unit = time_unit(max(float(item.latency_ns.max()) for item in arrived))
        _draw_prediction(axes, unloaded, unit.factor)
        for at, item in enumerate(arrived):
            draw_tail(axes, item, f"TC{item.tc}", at, unit.factor)
        finish_axes(axes, unit.name, max(item.sent for item in arrived))
        style.legend_above(axes, min(len(arrived) + 1, 4))
        svg = style.to_svg(figure, "probes", title)
    return Picture("probes", title, aid, svg, _loss_sentence(classes))


def draw_tail(axes: Axes, item: ProbeClass, label: str, at: int, factor: float) -> None:
    """One class's curve; lost probes keep it above zero at the right end."""
    x, y = thin_tail(*ccdf(item.latency_ns, item.sent))
    x, y = np.concatenate([x[:1], x]), np.concatenate([[1.0], y])
    text = style.plain(f"{label}, {fmt.count(item.sent)} probes")
    axes.step(x / factor, y, style.dash_of(at), where="post", color=style.colour_of(at), label=text)


def finish_axes(axes: Axes, unit: str, sent: int) -> None:
    """Scales, labels and the lower end that this many probes can resolve."""
    axes.set_xscale("log")
    axes.set_yscale("log")
    decades = min(int(np.ceil(np.log10(max(sent, 10)))), _FLOOR_DECADES)
    axes.set_ylim(10.0**-decades, 1.3)
    style.plain_log_axis(axes.xaxis, fmt.significant)
    style.plain_log_axis(axes.yaxis, lambda share: f"{fmt.significant(share * 100)} %")
    axes.set_xlabel(f"latency ({unit})")
    axes.set_ylabel("share that took longer")


def _draw_prediction(
    axes: Axes, unloaded: Mapping[int, tuple[float, float]], factor: float
) -> None:
    if not unloaded:
        return
    least = min(low for low, _ in unloaded.values()) / factor
    largest = max(high for _, high in unloaded.values()) / factor
    if largest > least:
        axes.axvspan(least, largest, color=style.GREY, alpha=0.18, linewidth=0)
    axes.axvline(least, color=style.GREY, linestyle=(0, (4, 3)), linewidth=1)
    label = "idle fabric, predicted (shortest to longest path)"
    axes.axvline(largest, color=style.GREY, linestyle=(0, (4, 3)), linewidth=1, label=label)


def _loss_sentence(classes: Sequence[ProbeClass]) -> str:
    losses = [
        f"TC{item.tc} lost {fmt.count(item.lost)} of {fmt.count(item.sent)} probes"
        for item in classes
        if item.lost
    ]
    return f"{'; '.join(losses)}." if losses else "No probe was lost."
