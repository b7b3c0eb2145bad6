"""The marking curve: how likely a packet is marked at each depth of its queue."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from emulator.physics import documents as doc
from emulator.physics import measure, theory
from emulator.physics.case import Case, Measured, Run, Runs, Target, closed_form
from emulator.physics.drawing import Look, Panel, Series
from emulator.results.reader import RunReader

KMIN_BYTES, KMAX_BYTES, PMAX = 4_000_000, 12_000_000, 0.2
RECEIVERS = 4
PACKETS = 3600
"""Of each of two senders per receiver: half of all wait at the end, 15 MB, beyond Kmax."""
_BELOW, _ABOVE, _MEAN, _TOP, _WORST = (
    "marked below Kmin",
    "marked above Kmax",
    "marks between Kmin and Kmax, measured over expected",
    "marked in the upper quarter of the ramp",
    "largest distance from the curve, in eight bins",
)
_BINS = 8


def marking_case() -> Case:
    """Queues that grow steadily through both thresholds."""
    statistical = closed_form(live=0.04, virtual=0.02, relative=False)
    counted = closed_form(live=0.01, virtual=0.0, relative=False)
    quarter = PMAX * 7 / 8
    return Case(
        name="marking-curve",
        table="",
        title="ECN marking against queue depth",
        shows="A packet is never marked below Kmin, always above Kmax, and in between with the "
        "probability of the line from 0 to Pmax.",
        source="marking curve of RED with instantaneous queue (facts 2.1; Zhu 2015, DCQCN)",
        runs=(Run("run", _document()),),
        targets=(
            Target(_BELOW, "", 0.0, counted),
            Target(_ABOVE, "", 1.0, counted),
            Target(_MEAN, "", 1.0, closed_form(live=0.10, virtual=0.05)),
            Target(_TOP, "", quarter, statistical),
            Target(_WORST, "", 0.0, statistical),
        ),
        measure=_measure,
        draw=_draw,
        live=True,
        wall_s=8.0,
    )


def _document() -> doc.Document:
    pairs = [
        (f"h{RECEIVERS + 2 * number + side}", f"h{number + 1}")
        for number in range(RECEIVERS)
        for side in (1, 2)
    ]
    fabric = doc.leaf_spine(1, 0, 3 * RECEIVERS, buffer="1 GB")
    return doc.experiment(
        fabric, [doc.flows("ramp", pairs, PACKETS)], transport={"window": "unlimited"},
        ecn={"kmin": KMIN_BYTES, "kmax": KMAX_BYTES, "pmax": PMAX, "classes": [doc.DATA_CLASS]},
        buffers={"alpha": 8},
    )  # fmt: skip


class Steps(NamedTuple):
    """What happened at the receivers' ports from sample to sample.

    Attributes:
        low: depth at the less deep end, bytes.
        high: depth at the deeper end.
        arrived: packets that came.
        marked: packets that were marked.
    """

    low: measure.Floats
    high: measure.Floats
    arrived: measure.Floats
    marked: measure.Floats

    def expected(self) -> measure.Floats:
        """Marks to expect: the curve's mean over the depths of each step, times arrivals."""
        parts = (np.arange(32) + 0.5) / 32
        depths = self.low[:, None] + (self.high - self.low)[:, None] * parts
        curve = theory.marking_probability(depths, KMIN_BYTES, KMAX_BYTES, PMAX)
        marks: measure.Floats = self.arrived * curve.mean(axis=1)
        return marks

    def within(self, low: float, high: float) -> Steps:
        """Those that lie between two depths with both ends."""
        inside = (self.low >= low) & (self.high <= high) & (self.arrived > 0)
        return Steps(*(column[inside] for column in self))


def steps_of(run: RunReader) -> Steps:
    """Of all receivers' ports, while their queues grew."""
    series = measure.samples(run)
    columns: list[Steps] = []
    for number in range(RECEIVERS):
        name = f"leaf1-eth{number + 1}"
        depth, sent, marked = (
            series.of_port(array, name).astype(np.float64)
            for array in ("bytes", "tx_bytes", "marked")
        )
        before, after = depth[:-1], depth[1:]
        came = np.diff(sent) / doc.PACKET_BYTES + np.diff(depth) / doc.FRAME_BYTES
        columns.append(
            Steps(
                np.minimum(before, after), np.maximum(before, after), np.rint(came), np.diff(marked)
            )
        )
    return Steps(*(np.concatenate(parts) for parts in zip(*columns, strict=True)))


@dataclass(frozen=True)
class Bin:
    """The ramp's steps between two depths."""

    middle_bytes: float
    measured: float
    expected: float


def bins_of(steps: Steps) -> list[Bin]:
    """Shares of marked packets over the ramp; without the bins that nothing fell into."""
    ramp = steps.within(KMIN_BYTES, KMAX_BYTES)
    middles, expected = (ramp.low + ramp.high) / 2, ramp.expected()
    edges = np.linspace(KMIN_BYTES, KMAX_BYTES, _BINS + 1)
    found = []
    for low, high in pairwise(edges):
        inside = (middles >= low) & (middles < high)
        arrived = ramp.arrived[inside].sum()
        if arrived > 0:
            middle = float((middles * ramp.arrived)[inside].sum() / arrived)
            measured, wanted = ramp.marked[inside].sum(), expected[inside].sum()
            found.append(Bin(middle, float(measured / arrived), float(wanted / arrived)))
    return found


def _share(steps: Steps) -> float:
    arrived = float(steps.arrived.sum())
    return float(steps.marked.sum()) / arrived if arrived else float("nan")


def _measure(runs: Runs) -> Measured:
    steps = steps_of(runs["run"])
    ramp = steps.within(KMIN_BYTES, KMAX_BYTES)
    top = steps.within(KMAX_BYTES - (KMAX_BYTES - KMIN_BYTES) / 4, KMAX_BYTES)
    apart = [abs(item.measured - item.expected) for item in bins_of(steps)]
    return {
        _BELOW: _share(steps.within(0, KMIN_BYTES)),
        _ABOVE: _share(steps.within(KMAX_BYTES, np.inf)),
        _MEAN: float(ramp.marked.sum() / ramp.expected().sum()),
        _TOP: _share(top),
        _WORST: max(apart, default=float("nan")),
    }


def _draw(runs: Runs) -> Sequence[Panel]:
    found = bins_of(steps_of(runs["run"]))
    depths = np.array([0, KMIN_BYTES, KMAX_BYTES, KMAX_BYTES + 1, 1.25 * KMAX_BYTES])
    curve = theory.marking_probability(depths, KMIN_BYTES, KMAX_BYTES, PMAX)
    return [
        Panel(
            "Share of packets that were marked", "queue (MB)", "marked",
            (
                Series("curve", (depths / 1e6).tolist(), curve.tolist(), Look.REFERENCE),
                Series("measured", [item.middle_bytes / 1e6 for item in found],
                       [item.measured for item in found]),
            ),
        )
    ]  # fmt: skip
