"""Ring all-reduce in lock step: the slowest hop sets the time of all."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from emulator.physics import documents as doc
from emulator.physics import theory
from emulator.physics.case import Case, Measured, Run, Runs, Target, Tolerance, of_table
from emulator.physics.drawing import Look, Panel, Series
from emulator.physics.loading import experiment_of
from emulator.physics.paths import Ways, ways

LEAVES, SPINES, HOSTS = 4, 2, 4
RANKS = LEAVES * HOSTS
CHUNK_PACKETS = {"contiguous": 120, "strided": 60}
STRIDED_RINGS = 4
MEAN_SHARE, SPREAD = 0.60, 0.09
"""Table V10, strided, one connection per hop: mean and standard deviation over seeds."""
_STEPS = 2 * (RANKS - 1)
_HOST_NS, _FABRIC_NS, _SWITCH_NS = 50, 100, 100
_RATE_BPS = 100e9
_BUS = "busbw"


def contiguous_case() -> Case:
    """Neighbours in the ring are neighbours in the fabric."""
    return Case(
        name="ring-contiguous",
        table="V10",
        title="Ring all-reduce, ranks side by side",
        shows="One flow per leaf crosses to the next leaf and finds an uplink to itself: the ring "
        "goes at the host's rate.",
        source="table V10: 1.00 on 4 leaves, 2 spines, 4 hosts each, 1:1",
        runs=(Run("run", _document("contiguous", 1)),),
        targets=(Target(_BUS, "of the line", 1.0, of_table(0.05)),),
        measure=lambda runs: {_BUS: _shares("contiguous", runs)[0]},
        live=True,
        wall_s=7.0,
    )


def strided_case() -> Case:
    """Every hop of the ring crosses a spine."""
    run = Run("run", _document("strided", STRIDED_RINGS))
    rings = ways(experiment_of("ring-strided", run))
    each = [
        Target(f"{_BUS}, {name}", "of the line", share_of(way), of_table(0.05),
               source="slowest link of the ring's paths")
        for name, way in rings.items()
    ]  # fmt: skip
    random = Tolerance(2 * SPREAD, SPREAD, relative=False)
    return Case(
        name="ring-strided",
        table="V10",
        title="Ring all-reduce, every hop across a spine",
        shows="Sixteen flows are hashed to two uplinks per leaf; the fullest one sets the time of "
        "the whole ring.",
        source="table V10: 0.60 +- 0.09 on 4 leaves, 2 spines, 4 hosts each, 1:1",
        runs=(run,),
        targets=(*each, Target(f"{_BUS}, mean", "of the line", MEAN_SHARE, random)),
        measure=lambda runs: _by_ring(rings, runs),
        draw=lambda runs: _draw(rings, runs),
        wall_s=12.0,
    )


def _document(placement: str, rings: int) -> doc.Document:
    fabric = doc.leaf_spine(
        LEAVES, SPINES, HOSTS, oversubscription=1, host_link=doc.link(100, _HOST_NS),
        fabric_link={"delay": f"{_FABRIC_NS} ns"},
    )  # fmt: skip
    chunk = CHUNK_PACKETS[placement]
    apart_ns = 6 * _STEPS * doc.packets_ns(chunk)
    workloads = [
        {
            "kind": "training", "name": f"ring-{number}", "ranks": RANKS, "placement": placement,
            "collective": "all-reduce", "algorithm": "ring", "class": doc.DATA_CLASS,
            "bytes": f"{RANKS * chunk * doc.PAYLOAD_BYTES} B",
            "start": f"{round(number * apart_ns)} ns",
        }
        for number in range(rings)
    ]  # fmt: skip
    return doc.experiment(
        fabric, workloads, switch={"mode": "cut-through", "latency": f"{_SWITCH_NS} ns"},
        transport={"window": "auto"},
    )  # fmt: skip


def share_of(way: Ways) -> float:
    """Bus bandwidth of a ring over the line rate, when its slowest link sets the pace."""
    return theory.ring_share([(n, way.rates_bps[port] / _RATE_BPS) for port, n in way.loads()])


def _shares(placement: str, runs: Runs) -> list[float]:
    """Bus bandwidth of each ring over the line rate."""
    summary = runs["run"].summary or {"training": []}
    sending_ns = _STEPS * doc.packets_ns(CHUNK_PACKETS[placement])
    return [sending_ns / (job["iteration_ms"]["mean"] * 1e6) for job in summary["training"]]


def _by_ring(rings: Iterable[str], runs: Runs) -> Measured:
    shares = _shares("strided", runs)
    found = {f"{_BUS}, {name}": share for name, share in zip(rings, shares, strict=True)}
    return {**found, f"{_BUS}, mean": float(np.mean(shares))}


def _draw(rings: dict[str, Ways], runs: Runs) -> Sequence[Panel]:
    numbers = [float(number) for number in range(1, len(rings) + 1)]
    expected = [share_of(way) for way in rings.values()]
    return [
        Panel(
            "Bus bandwidth of each ring", "ring", "share of the line",
            (
                Series("slowest link", numbers, expected, Look.REFERENCE),
                Series("measured", numbers, _shares("strided", runs)),
            ),
            x_ticks=tuple((number, name) for number, name in zip(numbers, rings, strict=True)),
        )
    ]  # fmt: skip
