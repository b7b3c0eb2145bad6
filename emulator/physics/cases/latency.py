"""A lone packet through an idle fabric, store-and-forward and cut-through."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from emulator.physics import documents as doc
from emulator.physics import measure, theory
from emulator.physics.case import Case, Measured, Run, Runs, Target, closed_form
from emulator.physics.drawing import Look, Panel, Series

RATE_BPS = 100e9
HOST_NS, FABRIC_NS, SWITCH_NS = 500, 1000, 500
SIZES = (128, doc.FRAME_BYTES)
"""Frames without their check sequence: a small one and a full one."""
WAYS = ((1, ("h1", "h2")), (3, ("h3", "h5")))
"""(switches on the way, sender and receiver); no port is shared."""
_PROBES_PER_S = 100_000
_FORMS: dict[str, Callable[[float, float, int, float, float], float]] = {
    "store-and-forward": theory.store_and_forward_ns,
    "cut-through": theory.cut_through_ns,
}


def latency_case(mode: str) -> Case:
    """Probes of two sizes over one switch and over three."""
    runs = tuple(Run(f"{size} B", _document(mode, size)) for size in SIZES)
    tolerance = closed_form(live=0.05, virtual=0.001)
    targets = tuple(
        Target(_quantity(size, switches), "us", expected_ns(mode, size, switches) / 1000, tolerance)
        for size in SIZES
        for switches, _ in WAYS
    )
    formula = "(n+1) L/C + n t" if mode == "store-and-forward" else "L/C + n (H/C + t)"
    return Case(
        name=f"latency-{mode}",
        table="",
        title=f"Unloaded latency, {mode}",
        shows="A lone packet takes the time of the formula, whatever its size and the number of "
        "switches on its way.",
        source=f"closed form {formula} + propagation, for n switches",
        runs=runs,
        targets=targets,
        measure=_measure,
        draw=lambda found: _draw(mode, found),
        live=True,
        wall_s=8.0,
    )


def expected_ns(mode: str, size: int, switches: int) -> float:
    """The closed form for a frame of this size over so many switches."""
    line_bytes = size + doc.PACKET_BYTES - doc.FRAME_BYTES
    propagation_ns = 2 * HOST_NS + (switches - 1) * FABRIC_NS
    return _FORMS[mode](line_bytes, RATE_BPS, switches, SWITCH_NS, propagation_ns)


def _document(mode: str, size: int) -> doc.Document:
    fabric = doc.leaf_spine(
        2, 1, [4, 1], host_link=doc.link(100, HOST_NS), fabric_link=doc.link(100, FABRIC_NS)
    )
    probes = {"pairs": [list(pair) for _, pair in WAYS], "rate": f"{_PROBES_PER_S} /s",
              "classes": [doc.DATA_CLASS], "size": f"{size} B"}  # fmt: skip
    return doc.experiment(
        fabric, [], probes=probes, duration="2 ms",
        switch={"mode": mode, "latency": f"{SWITCH_NS} ns"},
    )  # fmt: skip


def _quantity(size: int, switches: int) -> str:
    return f"{size} B over {switches} switch{'es' if switches > 1 else ''}"


def _measure(runs: Runs) -> Measured:
    return {
        _quantity(size, switches): _latency_us(runs, size, pair)
        for size in SIZES
        for switches, pair in WAYS
    }


def _latency_us(runs: Runs, size: int, pair: tuple[str, str]) -> float:
    return measure.mean(measure.probes(runs[f"{size} B"], *pair).latency_ns) / 1000


def _draw(mode: str, runs: Runs) -> Sequence[Panel]:
    hops = [switches for switches, _ in WAYS]
    series = []
    for size in SIZES:
        expected = [expected_ns(mode, size, switches) / 1000 for switches in hops]
        series.append(Series(f"{size} B, formula", hops, expected, Look.REFERENCE))
        found = [_latency_us(runs, size, pair) for _, pair in WAYS]
        series.append(Series(f"{size} B, measured", hops, found))
    return [Panel(f"Latency, {mode}", "switches on the way", "latency (us)", tuple(series))]
