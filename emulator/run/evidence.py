"""Collects what a verdict rests on, and what summary.json says, from a finished run."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from emulator import conservation, fidelity
from emulator.clock.traits import traits_of
from emulator.dataplane.tables import Tables
from emulator.plan import Plan
from emulator.results import columns
from emulator.results.reader import RunReader
from emulator.run.pauses import PauseTotals, headroom_drops
from emulator.run.traffic import Traffic
from emulator.spec.model import Experiment
from topologies.settings import SWITCH, resolve
from traffic.metrics import percentile, request_rows, workload_metrics
from traffic.tasks import Task
from traffic.wire import ETHERNET_BYTES
from traffic.workloads.base import Workload

Times = dict[int, tuple[int, int]]


def times_of(run: RunReader) -> Times:
    """(start_ns, done_ns) of every task that is done, from the tables."""
    times: Times = {}
    flows, computes = run.table("flows"), run.table("computes")
    for number, ready, done in zip(
        flows.text("id"), flows.text("ready_ns"), flows.text("done_ns"), strict=True
    ):
        if done:
            times[int(number)] = int(ready), int(done)
    for number, start, done in zip(
        computes.text("id"), computes.text("start_ns"), computes.text("done_ns"), strict=True
    ):
        times[int(number)] = int(start), int(done)
    return times


def missing_marks(plane: Tables, experiment: Experiment) -> list[str]:
    """Ports and classes that should have marked by their longest queue, and did not."""
    fabric, found = experiment.fabric, []
    for port, classes in resolve(experiment.ecn, fabric).items():
        for tc, rule in classes.items():
            state = plane.states["classes"][port, tc]
            above = int(state["peak_bytes"]) > rule.kmax_bytes + fabric.mtu_bytes + ETHERNET_BYTES
            if above and not int(state["mark_packets"]):
                found.append(f"{fabric.port(port).name} class {tc}")
    return found


def lost_to_lateness(plane: Tables, experiment: Experiment) -> bool:
    """Whether all losses of lossless classes are those of automatic headroom on a busy machine.

    Automatic headroom has room for what is in flight and for the lateness that a verdict tolerates.
    """
    if not traits_of(experiment.clock).real_time:
        return False
    rules = resolve(experiment.pfc, experiment.fabric)
    drops = plane.held["classes"]["drop_packets"]
    automatic = sum(
        int(drops[port, tc])
        for port, classes in rules.items()
        for tc, rule in classes.items()
        if rule.headroom_bytes is None and rule.control == SWITCH
    )
    lost = plane.states["classes"]["drop_packets"][:, list(plane.lossless)].sum()
    return 0 < automatic == int(lost)


def switching_excess(
    plane: Tables, inside_ns: float, idle_hop_ns: float, round_trip_ns: float, hops: int
) -> float:
    """Extra time inside switches per round trip, as a share of the unloaded round trip.

    Args:
        plane: whose counters tell how many packets the switches have handled.
        inside_ns: time that all packets together spent inside switches, model ns.
        idle_hop_ns: what a packet spends there when nothing else is sent, model ns.
        round_trip_ns: unloaded round trip of the longest path, model ns.
        hops: switches on that path.
    """
    handled = sum(
        int(plane.states["classes"]["in_packets"][port.index].sum())
        for port in plane.fabric.ports
        if plane.fabric.by_name[port.node].is_switch
    )
    if not handled:
        return 0.0
    excess_ns = max(0.0, inside_ns / handled - idle_hop_ns)
    return 2 * hops * excess_ns / round_trip_ns


def gather(
    plane: Tables,
    experiment: Experiment,
    emulated_bps: Sequence[int],
    outcome: Mapping[str, Any],
    idle_least: float | None,
    prepared: Traffic,
    plan: Plan,
    troubles: Sequence[str],
    pauses: PauseTotals,
) -> fidelity.Evidence:
    """The evidence of a run that has ended; `outcome` is empty when the engine died."""
    longest = max(plan.pairs, key=lambda pair: pair.round_trip_ns)
    idle_hop_ns = prepared.software_hop_us * 1000 / plan.scaling.dilation.value
    counters = outcome.get("counters", {})
    return fidelity.Evidence(
        packets=conservation.balance(experiment.fabric, plane.states),
        rates=fidelity.port_rates(experiment.fabric, plane.states, emulated_bps),
        refused=counters.get("refused", 0),
        strangers=counters.get("strangers", 0),
        starved_share=outcome.get("starved_share", 0.0),
        lateness_us=outcome.get("lateness_us", {}),
        switching_excess=switching_excess(
            plane,
            counters.get("inside_switches_ns", 0.0),
            idle_hop_ns,
            longest.round_trip_ns,
            longest.pair.switches,
        ),
        idle_least=idle_least,
        round_trip_error=prepared.round_trip_error,
        drained=outcome.get("drained", False),
        missing_marks=missing_marks(plane, experiment),
        lossless=plane.lossless,
        headroom_drops=headroom_drops(plane),
        lost_to_lateness=lost_to_lateness(plane, experiment),
        pause_lateness_ns=pauses.lateness_ns,
        lost_crossings=int(plane.held["classes"]["lost_events"].sum()),
        troubles=troubles,
    )


def port_records(plane: Tables) -> dict[str, dict[str, Any]]:
    """What every port counted, by interface name: the evidence behind the verdict."""
    records = {}
    for port in plane.fabric.ports:
        state = plane.states[port.index]
        classes = state["classes"]
        records[port.name] = {
            "in_packets": int(classes["in_packets"].sum()),
            "out_packets": int(classes["out_packets"].sum()),
            "dropped": int(classes["drop_packets"].sum()),
            "trimmed": int(classes["trim_packets"].sum()),
            "trimmed_bytes": int(classes["trim_bytes"].sum()),
            "marked": int(classes["mark_packets"].sum()),
            "peak_bytes": int(classes["peak_bytes"].max()),
            "busy_ns": int(state["busy_ns"]),
            "busy_wire_bytes": int(state["busy_wire_bytes"]),
            "busy_gaps": int(state["busy_gaps"]),
            "late_gaps_by_log2_us": state["late_gaps"].tolist(),
        }
    return records


def packet_totals(evidence: fidelity.Evidence, outcome: Mapping[str, Any]) -> dict[str, Any]:
    """``packets`` of summary.json."""
    packets = evidence.packets
    return {
        "sent": packets.sent,
        "delivered": packets.delivered - packets.overrun,
        "dropped": packets.dropped,
        "trimmed": packets.trimmed,
        "marked": packets.marked,
        "retransmitted": outcome.get("retransmitted"),
    }


def fidelity_section(evidence: fidelity.Evidence) -> dict[str, Any]:
    """``fidelity`` of summary.json."""
    return {
        "rate_error_max": fidelity.rate_error_max(evidence.rates),
        "unaccounted_packets": evidence.packets.unaccounted,
        "cpu_idle_min": evidence.idle_least,
        "send_lateness_us": dict(evidence.lateness_us),
        "rtt_error_max": evidence.round_trip_error,
    }


def probe_section(run: RunReader) -> list[dict[str, Any]]:
    """``probes`` of summary.json: one entry per class."""
    table = run.table("probes")
    classes = np.array([int(tc) for tc in table.text("class")])
    pairs = list(zip(table.text("src"), table.text("dst"), strict=True))
    latencies = table.numbers("latency_ns")
    rows = []
    for tc in sorted(set(classes.tolist())):
        mine = classes == tc
        heard = latencies[mine]
        arrived = heard[~np.isnan(heard)] / 1000
        rows.append(
            {
                "class": tc,
                "pairs": len({pair for pair, chosen in zip(pairs, mine, strict=True) if chosen}),
                "sent": int(mine.sum()),
                "lost": int(np.isnan(heard).sum()),
                "latency_us": _percentiles(arrived),
            }
        )
    return rows


def _percentiles(values: Any) -> dict[str, float | None]:
    names = {"p50": 50, "p90": 90, "p99": 99, "p999": 99.9, "max": 100}
    ordered = sorted(values.tolist())
    return {name: percentile(ordered, share) if ordered else None for name, share in names.items()}


def workload_sections(
    workloads: Sequence[Workload], times: Times
) -> dict[str, list[dict[str, Any]]]:
    """``training``, ``inference`` and ``background`` of summary.json."""
    sections: dict[str, list[dict[str, Any]]] = {
        "training": [], "inference": [], "background": [],
    }  # fmt: skip
    for workload in workloads:
        entry = workload_metrics(workload.meta, times)
        if entry is not None:
            sections[workload.kind].append(entry)
    return sections


def requests(workloads: Sequence[Workload], times: Times) -> list[list[Any]]:
    """Rows of requests.csv."""
    names = list(columns.REQUESTS)
    return [
        [getattr(row, name) for name in names]
        for workload in workloads
        if workload.kind == "inference"
        for row in request_rows(workload.meta, times)
    ]


def schedule_hash(tasks: Sequence[Task]) -> str:
    """Hash of everything that was to happen."""
    digest = hashlib.sha256()
    for task in tasks:
        digest.update(repr(task).encode())
    return digest.hexdigest()[:32]


def results_hash(run: RunReader) -> str:
    """Hash of what happened: the tables as they stand."""
    digest = hashlib.sha256()
    for table in sorted(columns.CSV_TABLES):
        path = run.path / columns.csv_name(table)
        digest.update(path.read_bytes() if path.exists() else b"")
    return digest.hexdigest()[:32]
