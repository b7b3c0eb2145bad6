"""PURE: figures as data, so that cases need no drawing library."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class Look(StrEnum):
    """How a series is drawn."""

    REFERENCE = "reference"
    LINE = "line"
    POINTS = "points"


@dataclass(frozen=True)
class Series:
    """Points of one thing.

    Attributes:
        label: for the legend.
        x: along the axis.
        y: as many.
        look: a reference is what was expected; the others were measured.
    """

    label: str
    x: Sequence[float]
    y: Sequence[float]
    look: Look = Look.POINTS


@dataclass(frozen=True)
class Panel:
    """One diagram.

    Attributes:
        title: above it.
        x_label: with the unit.
        y_label: with the unit.
        series: references first, so that measurements lie on top.
        x_ticks: (value, text) where the numbers would say nothing.
        from_zero: the vertical axis begins at 0.
    """

    title: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    x_ticks: tuple[tuple[float, str], ...] = ()
    from_zero: bool = True
