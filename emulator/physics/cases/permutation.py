"""Permutations over equal-cost paths: flows that collide share, others have the line alone."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from emulator.physics import documents as doc
from emulator.physics import measure, sharing, theory
from emulator.physics.case import Case, Measured, Run, Runs, Target, Tolerance, closed_form
from emulator.physics.drawing import Look, Panel, Series
from emulator.physics.loading import experiment_of
from emulator.physics.paths import Ways, ways

LEAVES, SPINES, HOSTS = 4, 2, 4
DRAWS = 12
PACKETS = 700
WINDOW_PACKETS = 48
"""Two bandwidth-delay products."""
SPREAD = 0.07
"""Standard deviation of the mean goodput from draw to draw (table V6)."""
_NAME = "permutation"
_RATE_BPS = 100e9
_APART_NS = 7 * doc.packets_ns(PACKETS)
"""From one permutation's start to the next; the slowest flow has at least a fifth of the line."""
_SETTLED = 0.4
_MEAN, _LEAST, _RATIO, _MODEL = (
    "mean goodput, mean of the draws",
    "slowest pair, mean of the draws",
    "mean over that of max-min on the same paths",
    "mean distance of a flow from fixed windows on the same paths",
)


def permutation_case() -> Case:
    """Cross-leaf permutations, one connection per pair, on 4 leaves, 2 spines, 16 hosts, 1:1."""
    spread = Tolerance(2 * SPREAD, SPREAD, relative=False)
    return Case(
        name="ecmp-permutation",
        table="V6",
        title="Permutations under ECMP",
        shows="Flows that are hashed to one uplink or downlink share it; on average a pair gets "
        "three quarters of the line and the slowest one about half.",
        source="table V6, 4 leaves, 2 spines, 4 hosts each, 1:1, one connection per pair "
        "(max-min model)",
        runs=(Run("run", _document()),),
        targets=(
            Target(_MEAN, "of the line", 0.741, spread),
            Target(_LEAST, "of the line", 0.572, spread),
            Target(_RATIO, "", 1.0, closed_form(0.05, 0.025), source="max-min fairness"),
            Target(_MODEL, "of the line", 0.0, closed_form(0.06, 0.03, relative=False),
                   source="Massoulie and Roberts 2002"),
        ),
        measure=_measure,
        draw=_draw,
        wall_s=15.0,
        note="Two standard deviations of a draw are the table's tolerance, one under the virtual "
        "clock. Fixed windows are proportionally fair: a flow with two full links on its way gets "
        "less than its max-min share, its neighbours more.",
    )  # fmt: skip


def _document() -> doc.Document:
    fabric = doc.leaf_spine(LEAVES, SPINES, HOSTS, oversubscription=1)
    workloads = [
        doc.flows(f"{_NAME}-{number}", cross_leaf_pairs(number), PACKETS, number * _APART_NS)
        for number in range(DRAWS)
    ]
    return doc.experiment(fabric, workloads, transport={"window": WINDOW_PACKETS})


def cross_leaf_pairs(number: int) -> list[tuple[str, str]]:
    """A permutation in which nobody sends to its own leaf, all of them equally likely.

    The pattern of this name that workloads have is made of shifts, in which a leaf's flows tend to
    go to one other leaf: then uplinks and downlinks collide together and means are higher.
    """
    rng = random.Random(f"permutation {number}")
    hosts = list(range(LEAVES * HOSTS))
    while True:
        receivers = rng.sample(hosts, len(hosts))
        if all(src // HOSTS != dst // HOSTS for src, dst in enumerate(receivers)):
            return [(f"h{src + 1}", f"h{dst + 1}") for src, dst in enumerate(receivers)]


@dataclass(frozen=True)
class Draw:
    """One permutation: rates of its flows, as shares of the line."""

    measured: measure.Floats
    max_min: measure.Floats
    windows: measure.Floats


def draws_of(runs: Runs) -> list[Draw]:
    """All permutations of the run, with what the models say for the very same paths."""
    run = runs["run"]
    series, flows = measure.samples(run), measure.flows(run)
    found = []
    for name, way in ways(experiment_of(_NAME, Run("run", _document()))).items():
        mine = flows.of_job(name)
        begin_ns, first_done_ns = float(mine.ready_ns.min()), float(mine.done_ns.min())
        settled_ns = begin_ns + _SETTLED * (first_done_ns - begin_ns)
        ports = [ports[0] for ports in way.ports]
        rates = measure.rates_bps(series, ports, settled_ns, first_done_ns)
        found.append(Draw(rates / _RATE_BPS, *models(way)))
    return found


def models(way: Ways) -> tuple[measure.Floats, measure.Floats]:
    """Shares of the line by max-min fairness, and by fixed windows."""
    net = way.network()
    count = len(way.flows)
    window_bits = np.full(count, WINDOW_PACKETS * doc.PACKET_BITS, dtype=np.float64)
    rtt_s = np.full(count, rtt_ns() / 1e9)
    return (
        sharing.max_min(net) / _RATE_BPS,
        sharing.fixed_windows(net, window_bits, rtt_s) / _RATE_BPS,
    )


def rtt_ns() -> float:
    """Unloaded round trip across a spine: host links at 100, uplinks at 200 Gbit/s."""
    propagation_ns, switches_ns = 2 * 500 + 2 * 1000, 3 * 500
    line_ns = [
        2 * theory.line_ns(size, _RATE_BPS) + 2 * theory.line_ns(size, 2 * _RATE_BPS)
        for size in (doc.PACKET_BYTES, 86)
    ]
    return sum(line_ns) + 2 * (propagation_ns + switches_ns)


def _measure(runs: Runs) -> Measured:
    draws = draws_of(runs)
    means = np.array([draw.measured.mean() for draw in draws])
    return {
        _MEAN: float(means.mean()),
        _LEAST: float(np.mean([draw.measured.min() for draw in draws])),
        _RATIO: float(means.mean() / np.mean([draw.max_min.mean() for draw in draws])),
        _MODEL: float(np.mean([np.abs(draw.measured - draw.windows).mean() for draw in draws])),
    }


def _draw(runs: Runs) -> Sequence[Panel]:
    draws = draws_of(runs)
    measured = np.concatenate([draw.measured for draw in draws]).tolist()
    panels = []
    for title, of_model in (
        ("Flows against max-min fairness", [draw.max_min for draw in draws]),
        ("Flows against fixed windows", [draw.windows for draw in draws]),
    ):
        expected = np.concatenate(of_model).tolist()
        panels.append(
            Panel(
                title, "share of the line, model", "share of the line, measured",
                (
                    Series("equal", [0.0, 1.0], [0.0, 1.0], Look.REFERENCE),
                    Series("a flow", expected, measured),
                ),
            )
        )  # fmt: skip
    return panels
