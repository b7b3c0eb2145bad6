"""The picture of the fabric: a map with the load of every cable."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize

from emulator.report import style
from emulator.report.fabricmap import Cable, FabricMap, natural, port_words
from emulator.report.picture import Picture
from emulator.results import format as fmt

_MAX_HOST_LABELS = 24
_ROOMY_CABLES = 60
_MAP_WIDTH_PT = 590.0
_CHARACTER_EM = 0.62
_SMALLEST_PT, _LARGEST_PT = 6.0, 8.5


def fabric_picture(fabric: FabricMap | None) -> Picture:
    """The fabric with each cable coloured by the load of its busier direction."""
    title = "Fabric and link load"
    aid = (
        "Each line is a cable: the thicker and the warmer its colour, the larger the share of its "
        "rate that the busier direction used on average while the run sent traffic."
    )
    if fabric is None:
        return Picture("fabric", title, aid, None, "The manifest lists no ports, so no map.")
    words = port_words(fabric.ports)
    with style.styled("fabric"):
        levels = {y for _, y in fabric.positions.values()}
        figure = style.new_figure(1.2 + 1.05 * (max(levels) - min(levels) + 0.6))
        axes = figure.subplots()
        _draw_cables(axes, fabric)
        _draw_nodes(axes, fabric)
        axes.set_axis_off()
        axes.set_xlim(-0.01, 1.01)
        axes.set_ylim(min(levels) - 0.45, max(levels) + 0.4)
        scale = ScalarMappable(Normalize(0, 100), style.LOAD_MAP)
        bar = figure.colorbar(scale, ax=axes, shrink=0.8, aspect=18, pad=0.01)
        bar.set_label("mean load of the busier direction (%)")
        svg = style.to_svg(figure, "fabric", title)
    return Picture("fabric", title, aid, svg, _busiest_sentence(fabric, words))


def _busiest_sentence(fabric: FabricMap, words: Mapping[str, str]) -> str:
    known = [cable for cable in fabric.cables if not np.isnan(cable.load)]
    if not known:
        return "No queue samples were recorded in this run, so link load is unknown."
    top = sorted(known, key=lambda cable: -cable.load)[:3]
    listed = "; ".join(
        f"{words[cable.busy_port]} {fmt.percent(cable.load)} (peak {fmt.percent(cable.peak)})"
        for cable in top
    )
    return f"Busiest: {listed}."


def _draw_cables(axes: Axes, fabric: FabricMap) -> None:
    crowded = min(1.0, (_ROOMY_CABLES / max(len(fabric.cables), 1)) ** 0.5)
    for cable in sorted(fabric.cables, key=lambda item: np.nan_to_num(item.load, nan=-1)):
        x, y = _ends(cable, fabric)
        if np.isnan(cable.load):
            axes.plot(x, y, color=style.GREY, linewidth=0.8, linestyle=":")
            continue
        load = min(cable.load, 1.0)
        axes.plot(
            x,
            y,
            color=style.LOAD_MAP(load),
            linewidth=(1.0 + 4.5 * load) * crowded,
            solid_capstyle="round",
            zorder=1 + load,
        )


def _ends(cable: Cable, fabric: FabricMap) -> tuple[list[float], list[float]]:
    lower, upper = fabric.positions[cable.lower], fabric.positions[cable.upper]
    shift = (cable.lane - (cable.lanes - 1) / 2) * 0.012
    return [lower[0] + shift, upper[0] + shift], [lower[1], upper[1]]


def _draw_nodes(axes: Axes, fabric: FabricMap) -> None:
    hosts = [name for name, tier in fabric.tiers.items() if tier == 0]
    heights = sorted({y for name, (_, y) in fabric.positions.items() if fabric.tiers[name]})
    for height in heights:
        row = [
            (name, x)
            for name, (x, y) in fabric.positions.items()
            if y == height and fabric.tiers[name]
        ]
        _draw_switches(axes, row, height)
    for name in hosts:
        axes.plot(*fabric.positions[name], "o", color=style.BLACK, markersize=4.5, zorder=4)
    _draw_host_labels(axes, _host_labels(fabric, hosts), min(heights, default=0.0) >= 0)


def _draw_switches(axes: Axes, row: Sequence[tuple[str, float]], height: float) -> None:
    size, step = label_plan([name for name, _ in row], padding=2.0)
    box = {"boxstyle": "round,pad=0.35", "facecolor": "white", "edgecolor": style.BLACK}
    for at, (name, x) in enumerate(sorted(row, key=lambda item: item[1])):
        if at % step:
            axes.plot(x, height, "s", color=style.BLACK, markersize=4.5, zorder=4)
        else:
            axes.text(x, height, name, ha="center", va="center", fontsize=size, bbox=box, zorder=5)


def _draw_host_labels(axes: Axes, labels: Sequence[tuple[str, float]], one_plane: bool) -> None:
    size, step = label_plan([text for text, _ in labels], padding=1.0)
    for text, x in sorted(labels, key=lambda item: item[1])[::step]:
        beside = not one_plane and "-" not in text
        axes.annotate(
            text,
            (x, 0.0),
            (7, 0) if beside else (0, -7),
            textcoords="offset points",
            fontsize=size,
            zorder=6,
            ha="left" if beside else "center",
            va="center" if beside else "top",
            bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 0.5},
        )


def label_plan(labels: Sequence[str], padding: float) -> tuple[float, int]:
    """Font size (points) and step (every n-th label) with which a row of labels fits the map.

    Args:
        labels: texts that stand beside each other, evenly spaced.
        padding: characters to keep free beside each.
    """
    longest = max((len(text) for text in labels), default=0) + padding
    fitting = _MAP_WIDTH_PT / (max(len(labels), 1) * longest * _CHARACTER_EM)
    if fitting >= _SMALLEST_PT:
        return min(fitting, _LARGEST_PT), 1
    return _SMALLEST_PT, int(np.ceil(_SMALLEST_PT / fitting))


def _host_labels(fabric: FabricMap, hosts: Sequence[str]) -> list[tuple[str, float]]:
    """Every host's name, or one range per leaf where names would run into each other."""
    if len(hosts) <= _MAX_HOST_LABELS:
        return [(name, fabric.positions[name][0]) for name in hosts]
    groups: dict[str, list[str]] = {}
    for cable in fabric.cables:
        if fabric.tiers[cable.lower] == 0 and cable.lower not in groups.get(cable.upper, []):
            groups.setdefault(cable.upper, []).append(cable.lower)
    labels = {}
    for members in groups.values():
        names = sorted(members, key=natural)
        text = names[0] if len(names) == 1 else f"{names[0]}-{names[-1]}"
        labels[text] = float(np.mean([fabric.positions[name][0] for name in names]))
    return list(labels.items())
