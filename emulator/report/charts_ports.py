"""Pictures of ports over time: queue depths, rates of the host NICs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from emulator.report import style
from emulator.report.extract import MarkRule
from emulator.report.fabricmap import (
    MapPort,
    hosts_of,
    manifest_ports,
    natural,
    port_words,
)
from emulator.report.picture import Picture
from emulator.report.series import binned_rate_bps, size_unit, thin, time_unit
from emulator.results import format as fmt
from emulator.results.queues import QueueSeries

TOP_QUEUES = 6
ROWS_OF_CURVES = 16
_RATE_BINS = 300
_ROW = 0.8
_QUEUE_BUCKETS = 200
_NEAR = 2.5
_LABEL_GAP = 0.22
_NO_SAMPLES = "No queue samples were recorded in this run."


def queue_picture(
    samples: QueueSeries | None, ports: Sequence[MapPort], rules: Sequence[MarkRule]
) -> Picture:
    """Depth over time of the busiest switch ports, with the marking thresholds."""
    title = "Queue depth"
    aid = (
        "Each row is one of the switch ports with the longest queues, and its height the bytes "
        "that wait there"
    )
    marking = "dashed lines are ECN thresholds: no mark below Kmin, every packet above Kmax"
    aid += f"; {marking}." if rules else "."
    if samples is None or not len(samples.time_ns):
        return Picture("queues", title, aid, None, _NO_SAMPLES)
    names = _deepest(samples, ports)
    if not names:
        return Picture("queues", title, aid, None, "No queue built up at any switch port.")
    peak = max(int(samples.of_port("bytes", name).max()) for name in names)
    chosen, hosts = {port.name: port for port in ports}, hosts_of(ports)
    queues = [_queue(samples, rules, chosen.get(name), name, peak, hosts) for name in names]
    far = sorted({label for queue in queues for label in queue.far})
    note = f"No queue came near {' and '.join(far)}." if far else ""
    return Picture("queues", title, aid, _draw_queues(samples, queues, peak), note)


@dataclass(frozen=True)
class _Queue:
    """One row: its title, its depth over time, thresholds in reach by label, labels of others."""

    title: str
    depth: NDArray[np.int64]
    near: Mapping[str, float]
    far: Sequence[str]


def _queue(
    samples: QueueSeries, rules: Sequence[MarkRule], port: MapPort | None, name: str, peak: float,
    hosts: Collection[str],
) -> _Queue:  # fmt: skip
    node, last = (port.node, port.peer_node in hosts) if port else (name, False)
    near, far = _thresholds([rule for rule in rules if rule.fits(name, node, last)], peak)
    depth = samples.of_port("bytes", name)
    words = port_words([port])[name] if port else name
    return _Queue(f"{words}, peak {fmt.size_bytes(float(depth.max()))}", depth, near, far)


def _draw_queues(samples: QueueSeries, queues: Sequence[_Queue], peak: float) -> str:
    top = 1.12 * max([peak, *(value for queue in queues for value in queue.near.values())])
    unit, clock = size_unit(top), time_unit(float(samples.time_ns[-1]))
    with style.styled("queues"):
        figure = style.new_figure(0.7 + 0.8 * len(queues))
        rows = figure.subplots(len(queues), sharex=True, squeeze=False)[:, 0]
        for axes, queue in zip(rows, queues, strict=True):
            x, y = thin(samples.time_ns, queue.depth, _QUEUE_BUCKETS)
            axes.fill_between(x / clock.factor, y / unit.factor, color=style.SKY, linewidth=0)
            axes.plot(x / clock.factor, y / unit.factor, color=style.BLUE, linewidth=0.6)
            axes.set_ylim(0, top / unit.factor)
            axes.locator_params(axis="y", nbins=3)
            axes.margins(x=0)
            axes.set_title(queue.title, fontweight="normal", fontsize=8.5, pad=2)
            _draw_thresholds(axes, queue.near, unit.factor)
        rows[-1].set_xlabel(f"time in the run ({clock.name})")
        figure.supylabel(f"queue ({unit.name})", fontsize=9)
        return style.to_svg(figure, "queues", "Queue depth")


def _deepest(samples: QueueSeries, ports: Sequence[MapPort]) -> list[str]:
    hosts = hosts_of(ports)
    of_hosts = {port.name for port in ports if port.node in hosts}
    peaks = samples.arrays["bytes"].max(axis=0)
    order = sorted(range(len(samples.ports)), key=lambda at: -int(peaks[at]))
    deep = [samples.ports[at] for at in order if peaks[at] > 0]
    return [name for name in deep if name not in of_hosts][:TOP_QUEUES]


def _thresholds(rules: Sequence[MarkRule], peak_bytes: float) -> tuple[dict[str, float], list[str]]:
    """Thresholds within reach of the queues by label, and labels of those far above."""
    values = {("Kmin", rule.kmin_bytes) for rule in rules}
    values |= {("Kmax", rule.kmax_bytes) for rule in rules}
    near, far = {}, []
    for word, value in sorted(values, key=lambda item: item[1]):
        label = f"{word} {fmt.size_bytes(value)}"
        if value <= _NEAR * peak_bytes:
            near[label] = value
        else:
            far.append(label)
    return near, far


def _draw_thresholds(axes: Axes, levels: Mapping[str, float], factor: float) -> None:
    top = axes.get_ylim()[1] * factor
    for value in levels.values():
        axes.axhline(value / factor, color=style.BLACK, linestyle=(0, (5, 3)), linewidth=0.9)
    for text, value in _spread_labels(levels, _LABEL_GAP * top):
        axes.annotate(
            text,
            (1.0, value / factor),
            (4, 0),
            xycoords=("axes fraction", "data"),
            textcoords="offset points",
            va="center",
            fontsize=8,
        )


def _spread_labels(levels: Mapping[str, float], gap: float) -> list[tuple[str, float]]:
    """Labels with their heights; those that would overlap become one."""
    groups: list[list[str]] = []
    for label, value in sorted(levels.items(), key=lambda item: item[1]):
        if groups and value - levels[groups[-1][0]] < gap:
            groups[-1].append(label)
        else:
            groups.append([label])
    return [(", ".join(group), levels[group[0]]) for group in groups]


def rates_picture(samples: QueueSeries | None, manifest: Mapping[str, Any]) -> Picture:
    """What each host NIC sent over time."""
    title = "What each host sends"
    ports = manifest_ports(manifest)
    hosts = hosts_of(ports)
    nics = sorted((port for port in ports if port.node in hosts), key=lambda p: natural(p.name))
    curves = [curve for curve in (_nic_curve(samples, port) for port in nics) if curve]
    if not curves:
        return Picture("rates", title, "", None, _NO_SAMPLES)
    if len(curves) <= ROWS_OF_CURVES:
        aid = "Each row is one host NIC; a filled row means that it sends at its full line rate."
        return Picture("rates", title, aid, _draw_rows(curves, title))
    aid = "Each row is one host NIC; the warmer the colour, the closer it sends to its line rate."
    return Picture("rates", title, aid, _draw_heat(curves, title))


_Curve = tuple[MapPort, Any, Any]


def _nic_curve(samples: QueueSeries | None, port: MapPort) -> _Curve | None:
    if samples is None or port.name not in samples.ports:
        return None
    sent = samples.of_port("tx_bytes", port.name)
    edges, rates = binned_rate_bps(samples.time_ns, sent, _RATE_BINS)
    return (port, edges, rates) if len(rates) else None


def _draw_rows(curves: Sequence[_Curve], title: str) -> str:
    """One row per NIC in a single pair of axes: the row's height is the line rate."""
    clock = time_unit(float(curves[0][1][-1]))
    with style.styled("rates"):
        figure = style.new_figure(0.9 + 0.34 * len(curves))
        axes = figure.subplots()
        for at, (port, edges, rates) in enumerate(curves):
            floor = len(curves) - 1 - at
            axes.axhspan(floor, floor + _ROW, color="#f1f3f6", linewidth=0)
            heights = floor + _ROW * np.minimum(rates / port.rate_bps, 1.0)
            axes.stairs(heights, edges / clock.factor, baseline=floor, fill=True, color=style.SKY)
        middles = [len(curves) - 1 - at + _ROW / 2 for at in range(len(curves))]
        axes.set_yticks(middles, [port.name for port, _, _ in curves])
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
        axes.grid(visible=False)
        axes.margins(x=0)
        axes.set_ylim(-0.1, len(curves))
        axes.set_xlabel(f"time in the run ({clock.name})")
        axes.set_title(_row_height(curves), fontweight="normal", fontsize=8.5)
        return style.to_svg(figure, "rates", title)


def _row_height(curves: Sequence[_Curve]) -> str:
    rates = sorted({port.rate_bps for port, _, _ in curves})
    span = " to ".join(fmt.rate_bps(rate) for rate in dict.fromkeys((rates[0], rates[-1])))
    return f"row height = line rate, {span}"


def _draw_heat(curves: Sequence[_Curve], title: str) -> str:
    edges = curves[0][1]
    clock = time_unit(float(edges[-1]))
    load = np.array([rates / port.rate_bps * 100 for port, _, rates in curves])
    with style.styled("rates"):
        figure = style.new_figure(min(1.6 + 0.06 * len(curves), 6.5))
        axes = figure.subplots()
        extent = (edges[0] / clock.factor, edges[-1] / clock.factor, len(curves), 0)
        image = axes.imshow(
            load, aspect="auto", extent=extent, cmap=style.LOAD_MAP, vmin=0, vmax=100,
            interpolation="nearest",
        )  # fmt: skip
        step = max(1, len(curves) // 16)
        shown = range(0, len(curves), step)
        axes.set_yticks([at + 0.5 for at in shown], [curves[at][0].name for at in shown])
        axes.grid(visible=False)
        axes.set_xlabel(f"time in the run ({clock.name})")
        figure.colorbar(image, ax=axes, pad=0.01).set_label("share of the line rate (%)")
        return style.to_svg(figure, "rates", title)
