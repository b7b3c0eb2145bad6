"""Random arrivals at a constant server, and at a second one behind it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from emulator.physics import documents as doc
from emulator.physics import measure, theory
from emulator.physics.case import Case, Measured, Run, Runs, Target, closed_form, of_table
from emulator.physics.drawing import Look, Panel, Series
from emulator.results.reader import RunReader

LOADS = (0.5, 0.7, 0.8, 0.9)
STREAMS = 2
"""Queues of each load."""
ARRIVALS_PER_S = 1000
SECONDS = 3
_SENDERS = len(LOADS) * STREAMS
_DELAY_NS, _SWITCH_NS = 500, 500


def waiting_case() -> Case:
    """Probes of full size, sent at random times over links of constant rate."""
    wait = [
        Target(_wait(load), "service times", theory.md1_wait(load), of_table(0.10), source="V14")
        for load in LOADS
    ]
    exact = closed_form(live=0.02, virtual=0.01, relative=False)
    each = Target(_RECURSION, "service times", 0.0, exact, source="Lindley 1952")
    return Case(
        name="waiting-time",
        table="V14",
        title="Waiting times of random arrivals (M/D/1)",
        shows="Poisson arrivals at a port wait rho / (2 (1 - rho)) service times on average, and "
        "the next port of the same rate adds nothing.",
        source="Pollaczek-Khinchine formula; table V14",
        runs=(Run("run", _document()),),
        targets=(*wait, each),
        measure=_measure,
        draw=_draw,
        wall_s=15.0,
        note="A sample of so few arrivals has a mean of its own. Lindley's recursion gives it from "
        "the times of sending alone, so what is printed is the formula plus the mean of measured "
        "less recursion (a control variate whose expectation is the formula).",
    )


_RECURSION = "measured less Lindley's recursion, worst mean of a queue, two hops"


def _wait(load: float) -> str:
    return f"mean wait at load {load:g}"


def rate_bps(load: float) -> int:
    """Rate of links at which the arrivals make this load."""
    return round(ARRIVALS_PER_S * doc.PACKET_BITS / load)


def streams() -> Iterator[tuple[float, str, str]]:
    """(load, sender, receiver) of all queues."""
    for number in range(_SENDERS):
        yield LOADS[number % len(LOADS)], f"h{number + 1}", f"h{number + 1 + _SENDERS}"


def _document() -> doc.Document:
    queues = list(streams())
    links = [
        {"between": [host, "leaf1"], "rate": f"{rate_bps(load)} bit/s"}
        for load, *ends in queues
        for host in ends
    ]
    fabric = doc.leaf_spine(1, 0, 2 * _SENDERS, host_link=doc.link(0.1, _DELAY_NS), links=links)
    probes = {
        "pairs": [[src, dst] for _, src, dst in queues], "rate": f"{ARRIVALS_PER_S} /s",
        "classes": [doc.DATA_CLASS], "size": f"{doc.FRAME_BYTES} B", "arrivals": "poisson",
    }  # fmt: skip
    return doc.experiment(
        fabric, [], probes=probes, duration=f"{SECONDS} s",
        switch={"latency": f"{_SWITCH_NS} ns"},
    )  # fmt: skip


def residuals(run: RunReader, load: float, src: str, dst: str) -> tuple[float, float]:
    """(measured less recursion, recursion): mean waits of a queue, in service times."""
    line_bps = rate_bps(load)
    service_ns = theory.line_ns(doc.PACKET_BYTES, line_bps)
    idle_ns = theory.store_and_forward_ns(doc.PACKET_BYTES, line_bps, 1, _SWITCH_NS, 2 * _DELAY_NS)
    probes = measure.probes(run, src, dst)
    waits = theory.lindley_waits_ns(probes.sent_ns, service_ns)
    apart = measure.mean(probes.latency_ns - idle_ns - waits)
    return apart / service_ns, float(waits.mean()) / service_ns


def _measure(runs: Runs) -> Measured:
    found: dict[float, list[float]] = {load: [] for load in LOADS}
    for load, src, dst in streams():
        found[load].append(residuals(runs["run"], load, src, dst)[0])
    means = {_wait(load): theory.md1_wait(load) + float(np.mean(found[load])) for load in LOADS}
    apart = [value for values in found.values() for value in values]
    return {**means, _RECURSION: max(apart, key=abs)}


def _draw(runs: Runs) -> Sequence[Panel]:
    loads = np.linspace(0.3, 0.92, 60)
    formula = [theory.md1_wait(load) for load in loads]
    measured, recursion = [], []
    for load, src, dst in streams():
        apart, waits = residuals(runs["run"], load, src, dst)
        recursion.append(waits)
        measured.append(waits + apart)
    at = [load for load, _, _ in streams()]
    return [
        Panel(
            "Mean wait of each queue", "load", "mean wait (service times)",
            (
                Series("M/D/1", loads.tolist(), formula, Look.REFERENCE),
                Series("recursion on the arrivals of the run", at, recursion),
                Series("measured", at, measured),
            ),
        )
    ]  # fmt: skip
