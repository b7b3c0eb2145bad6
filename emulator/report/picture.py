"""A picture of the report: drawn, or a sentence that says why there is none."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Picture:
    """One section with a picture.

    Attributes:
        key: short identifier, used as anchor.
        title: heading.
        aid: one sentence on how to read it.
        svg: the drawing, an ``<svg>`` element; None when there is nothing to draw.
        sentence: said instead of, or below, the drawing; may be empty when there is a drawing.
    """

    key: str
    title: str
    aid: str
    svg: str | None
    sentence: str = ""
