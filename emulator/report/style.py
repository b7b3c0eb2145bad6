"""The look of all pictures, and the way from a figure to inline SVG.

Colours are those of Okabe and Ito (distinct for colour-blind people); lines also differ in dash.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import LogFormatter

BLUE, ORANGE, GREEN, RED = "#0072B2", "#E69F00", "#009E73", "#D55E00"
PURPLE, SKY, BLACK, GREY = "#CC79A7", "#56B4E9", "#222222", "#8a8f98"
CYCLE = (BLUE, RED, GREEN, PURPLE, ORANGE, SKY, BLACK)
DASHES = ("-", "--", "-.", ":")
LOAD_MAP = LinearSegmentedColormap.from_list(
    "load", ["#d4dae1", "#8fc1e0", "#0072B2", "#5b2a86", "#D55E00"]
)
WIDTH_IN = 9.6
DPI = 110
_FONTS = ["DejaVu Sans", "Verdana", "Segoe UI", "Helvetica", "Arial", "sans-serif"]

_RC: dict[str, Any] = {
    "svg.fonttype": "none",
    "text.parse_math": False,  # names of jobs may hold a dollar sign
    "font.family": "sans-serif",
    "font.sans-serif": _FONTS,
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": 9,
    "axes.edgecolor": GREY,
    "axes.labelcolor": BLACK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e4e7eb",
    "grid.linewidth": 0.8,
    "xtick.color": "#444444",
    "ytick.color": "#444444",
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "legend.fontsize": 8.5,
    "legend.frameon": False,
    "lines.linewidth": 1.5,
    "figure.dpi": DPI,
    "savefig.dpi": DPI,
}


@contextmanager
def styled(name: str) -> Iterator[None]:
    """Draw with the project's look; `name` makes the picture's ids repeat from run to run."""
    settings: dict[Any, Any] = {**_RC, "svg.hashsalt": name}
    with mpl.rc_context(settings), warnings.catch_warnings():
        # Text stays text in the SVG, so the reader's fonts draw what ours lack.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        yield


def plain(label: str) -> str:
    """A label as Matplotlib shows it in a legend; it leaves out those that begin with ``_``."""
    return f" {label}" if label.startswith("_") else label


class PlainLogFormatter(LogFormatter):
    """Numbers instead of powers of ten, at the ticks that the logarithmic formatter labels.

    Args:
        show: number -> text.
        **options: as for `LogFormatter`.
    """

    def __init__(self, show: Callable[[float], str], **options: Any) -> None:
        super().__init__(**options)
        self._show = show

    def __call__(self, x: float, pos: int | None = None) -> str:
        """The text of a tick; empty where there should be none."""
        return self._show(x) if super().__call__(x, pos) else ""


def plain_log_axis(axis: Axis, show: Callable[[float], str]) -> None:
    """Label a logarithmic axis with plain numbers, between powers of ten only when it is short."""
    axis.set_major_formatter(PlainLogFormatter(show, labelOnlyBase=True))
    axis.set_minor_formatter(PlainLogFormatter(show, minor_thresholds=(1.2, 0.4)))


def new_figure(height_in: float, width_in: float = WIDTH_IN) -> Figure:
    """An empty figure that no window system knows of."""
    figure = Figure(figsize=(width_in, height_in), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def colour_of(at: int) -> str:
    """Colour of the series with this number."""
    return CYCLE[at % len(CYCLE)]


def dash_of(at: int) -> str:
    """Dash of the series with this number."""
    return DASHES[at % len(DASHES)]


def legend_above(axes: Axes, columns: int) -> None:
    """A legend in one strip above the axes, where it cannot cover data."""
    handles, labels = axes.get_legend_handles_labels()
    if handles:
        axes.legend(
            handles,
            labels,
            loc="lower left",
            bbox_to_anchor=(0, 1.0),
            ncols=columns,
            borderaxespad=0.2,
            handlelength=2.4,
            columnspacing=1.6,
        )


_PROLOGUE = re.compile(r"^.*?(?=<svg)", re.DOTALL)
_METADATA = re.compile(r"\s*<metadata>.*?</metadata>", re.DOTALL)
_SIZE = re.compile(r'(<svg [^>]*?) width="[^"]*"', re.DOTALL)
_HEIGHT = re.compile(r'(<svg [^>]*?) height="[^"]*"', re.DOTALL)
_ID = re.compile(r'(\bid="|xlink:href="#|url\(#)')


def to_svg(figure: Figure, name: str, label: str) -> str:
    """The figure as an ``<svg>`` element for a page.

    Args:
        figure: what to render.
        name: prefix of all ids in it, so that several pictures share a page.
        label: what a screen reader says.
    """
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None})
    svg = _METADATA.sub("", _PROLOGUE.sub("", out.getvalue(), count=1))
    svg = _HEIGHT.sub(r"\1", _SIZE.sub(r"\1", svg, count=1), count=1)
    svg = _ID.sub(lambda match: f"{match.group(1)}{name}-", svg)
    quoted = label.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
    return svg.replace("<svg ", f'<svg role="img" aria-label="{quoted}" ', 1).strip()
