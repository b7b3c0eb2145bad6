"""The engine's side of a run: rhythm, warm-up, plan, and what its process does."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from controller.core.routing import Routing
from controller.policies.registry import build_policy
from emulator.assembly import Assembler, Pace, Route
from emulator.clock.live import LiveClock
from emulator.clock.traits import LIVE, ClockTraits
from emulator.dataplane.medium import KernelMedium
from emulator.fabric import LiveFabric
from emulator.kernel.forking import Stop
from emulator.kernel.priority import raise_priority
from emulator.plan import Plan
from emulator.results.columns import STATUS_UNFINISHED
from emulator.results.store import RunFolder
from emulator.run import warmup
from emulator.run.recording import FolderRecorder
from emulator.scale import host_rates_bps
from emulator.spec.model import DCTCP, UET, Experiment
from topologies.errors import SpecError
from topologies.model import Link
from traffic.nic import engine as nic
from traffic.nic import transports
from traffic.nic.engine import NicEngine
from traffic.nic.pacing import NicQueue
from traffic.tasks import Flow, Task
from traffic.wire import ACK_FRAME_BYTES, wire_bytes

CLOCKED = (DCTCP, UET)
"""Transports whose acknowledgements say when to send: what a tick lets go at once is a burst."""
_CLOCKED_TICKS = 8
_LOOKAHEAD_TICKS = 1.5
_LOOKAHEAD_PACKETS = 1.5
_QUIET_ROUND_TRIPS = 2
_FLUSHES = 50
_MAX_CHECKED_PAIRS = 8


def pace_of(
    plan: Plan, dilation: float, software_wall_ns: float = 0.0, traits: ClockTraits = LIVE
) -> Pace:
    """The engine's rhythm: a tick well below the round trip, but few enough to be cheap.

    NIC queues are filled ahead for a tick and a half, and for the packet that may be on the wire
    already: how much of it has gone is not known, so it counts as whole.
    """
    shortest_ns = min((pair.round_trip_ns for pair in plan.pairs), default=0.0)
    per_round_trip = traits.ticks_per_round_trip
    if plan.experiment.transport.kind in CLOCKED:
        per_round_trip = max(per_round_trip, _CLOCKED_TICKS)
    wanted_ns = min(traits.most_tick_ns, shortest_ns * dilation / per_round_trip)
    tick_ns = max(1, round(max(traits.least_tick_ns, wanted_ns) / dilation))
    slowest_bps = min(host_rates_bps(plan.experiment.fabric))
    packet_ns = wire_bytes(plan.frame_bytes) * 8e9 / slowest_bps
    ahead_ns = round(tick_ns * _LOOKAHEAD_TICKS + packet_ns * _LOOKAHEAD_PACKETS)
    return Pace(tick_ns, max(1, ahead_ns), software_wall_ns / dilation)


def route_of(experiment: Experiment) -> Route:
    """The links of a flow, from the same pure code that makes the controller's rules."""
    fabric = experiment.fabric
    policy = build_policy(experiment.routing.section, fabric)
    routing = Routing(fabric, policy, experiment.seed)

    def route(src: str, dst: str, plane: int, sport: int) -> Sequence[Link]:
        ports = routing.path_of(src, dst, sport, plane=plane)
        if not ports:
            raise SpecError("routing", f"{src} to {dst}", "has no path in the fabric")
        return [fabric.link_of(port) for port in ports]

    return route


@dataclass
class Traffic:
    """A prepared run: what the engine's process needs.

    Attributes:
        plan: of the engine.
        medium: the kernel.
        clock: model time.
        round_trip_error: largest deviation of an unloaded round trip; None without flows.
        software_hop_us: wall time of an idle switch hop of the emulation.
        ways: how many directions were taught.
        quiet_ns: the network is drained when nothing arrives for so long, model time.
        drain_ns: how long to wait for that, model time.
        flush_every_ns: between two writes to the run folder, model time.
    """

    plan: nic.Plan
    medium: KernelMedium
    clock: LiveClock
    round_trip_error: float | None
    software_hop_us: float
    ways: int
    quiet_ns: int
    drain_ns: int
    flush_every_ns: int


def prepare(
    live: LiveFabric,
    experiment: Experiment,
    plan: Plan,
    tasks: Sequence[Task],
    note: Callable[[str], None],
    traits: ClockTraits = LIVE,
) -> Traffic:
    """Teaches the switches, measures the idle fabric, and makes the engine's plan.

    Where links do not delay packets themselves, what a packet spends in the idle emulation is
    measured, and the receiving NICs hold packets so much less.
    """
    dilation = plan.scaling.dilation.value
    senders = live.senders()
    wall = LiveClock(1.0)
    raw = KernelMedium(live.plane, senders, wall)
    route = route_of(experiment)
    draft = Assembler(experiment, route, pace_of(plan, dilation, 0, traits), plan.transport)
    streams = draft.streams(experiment.probes) if experiment.probes else []
    drafted = draft.plan(tasks, streams)
    note("teaching the switches every flow")
    ways = _ways(drafted, route)
    warmup.teach(raw, wall, ways)
    in_path = traits.delays_in_path
    measured_on = () if in_path else _spread(ways, _MAX_CHECKED_PAIRS)
    hop_ns = warmup.hop_latency_ns(raw, wall, measured_on)
    pace = pace_of(plan, dilation, hop_ns, traits)
    final = Assembler(experiment, route, pace, plan.transport, delays_in_path=in_path)
    streams = final.streams(experiment.probes) if experiment.probes else []
    ready = final.plan(tasks, streams)
    payload_bytes = experiment.transport.payload_bytes if in_path else warmup.SMALL_BYTES
    error = _round_trip_error(raw, wall, drafted, ready, ways, dilation, payload_bytes)
    clock = LiveClock(dilation)
    medium = KernelMedium(live.plane, senders, clock)
    longest_ns = max((pair.round_trip_ns for pair in plan.pairs), default=0.0)
    return Traffic(
        ready, medium, clock, error, hop_ns / 1000, len(ways),
        quiet_ns=round(max(traits.quiet_ns / dilation, _QUIET_ROUND_TRIPS * longest_ns)),
        drain_ns=round(traits.drain_ns / dilation),
        flush_every_ns=_flush_every_ns(plan, traits),
    )  # fmt: skip


def _flush_every_ns(plan: Plan, traits: ClockTraits) -> int:
    if traits.flush_ns is not None:
        return round(traits.flush_ns / plan.scaling.dilation.value)
    return max(1, round(plan.expected_model_ns / _FLUSHES))


def _ways(plan: nic.Plan, route: Route) -> list[warmup.Way]:
    """All directions in which something will be sent."""
    hops = []
    for key, connection in plan.connection_of.items():
        _, plane, src, dst, _ = key
        hops.append(len(route(src, dst, plane, connection.ends.address.sport)) - 1)
    ways = warmup.ways_of(plan.connections, hops, plan.parameters.control_dscp)
    ways += _sprayed(plan, hops)
    for stream in plan.probes:
        plane = int(stream.address.src_ip.split(".")[1])
        links = route(stream.src, stream.dst, plane, stream.address.sport)
        ways.append(warmup.Way(stream.src_port, stream.address, len(links) - 1))
    return ways


def _sprayed(plan: nic.Plan, hops: Sequence[int]) -> Iterator[warmup.Way]:
    """Packets of every entropy of every connection that crosses the fabric, if they are sprayed.

    Switches keep what they have learnt by destination and the bits of the port that choose a path,
    so one connection between two hosts stands for all of them.
    """
    if not transports.sprays(plan.parameters.transport):
        return
    between = {}
    for connection, count in zip(plan.connections, hops, strict=True):
        if count > 1:
            address = connection.ends.address
            between[address.src_ip, address.dst_ip, address.dscp] = connection.ends, count
    for ends, count in between.values():
        for offset in nic.pool_of(plan.parameters):
            address = replace(ends.address, entropy=ends.address.entropy ^ offset)
            yield warmup.Way(ends.src_port, address, count)


def _spread(items: list[warmup.Way], count: int) -> list[warmup.Way]:
    """At most `count` of them, evenly spread."""
    step = max(1, len(items) // count)
    return items[::step][:count]


def _round_trip_error(
    medium: KernelMedium,
    clock: LiveClock,
    drafted: nic.Plan,
    ready: nic.Plan,
    ways: Sequence[warmup.Way],
    dilation: float,
    payload_bytes: int,
) -> float | None:
    """Largest relative deviation of (measured + hold) from the prediction, there and back.

    Where links delay packets, the time depends on their size: then both are as long as data
    packets. Else what is measured is the emulation's own time, which hardly does.
    """
    chosen = range(0, len(ready.connections), max(1, len(ready.connections) // _MAX_CHECKED_PAIRS))
    numbers = list(chosen)[:_MAX_CHECKED_PAIRS]
    pairs = [(ways[2 * n], ways[2 * n + 1]) for n in numbers]
    if not pairs:
        return None
    worst = 0.0
    measured = warmup.idle_round_trips_ns(medium, clock, pairs, payload_bytes)
    whole = payload_bytes > warmup.SMALL_BYTES
    for number, raw_ns in zip(numbers, measured, strict=True):
        frame = ready.connections[number].frame_bytes
        back = frame if whole else ACK_FRAME_BYTES
        exact, held = drafted.connections[number].ends, ready.connections[number].ends
        predicted = exact.path.hold_ns(frame) + exact.back.hold_ns(back)
        reached = held.path.hold_ns(frame) + held.back.hold_ns(back) + raw_ns / dilation
        worst = max(worst, abs(reached / predicted - 1))
    return worst


def engine_work(
    traffic: Traffic,
    folder: RunFolder,
    report: Path,
    limit_ns: int | None,
    on_progress: Callable[[int, int], None],
) -> Callable[[Stop], None]:
    """What the engine's process does: run, drain, write down how it went."""

    def work(should_stop: Stop) -> None:
        LiveClock.sharpen()
        # Also in a guest, where a NIC would else wait for whoever looks at the clock just then.
        raise_priority()
        recorder = FolderRecorder(folder, on_progress, traffic.flush_every_ns)
        engine = NicEngine(traffic.plan, traffic.medium, traffic.clock, recorder)
        finished = engine.run(should_stop, limit_ns)
        ended_ns = traffic.clock.now_ns()
        drained = engine.drain(traffic.quiet_ns, traffic.drain_ns)
        _note_unfinished(traffic.plan, folder, recorder)
        recorder.flush()
        outcome = _outcome(engine, finished, drained, ended_ns)
        report.write_text(json.dumps({**outcome, "degraded": folder.degraded}))

    return work


def _note_unfinished(plan: nic.Plan, folder: RunFolder, recorder: FolderRecorder) -> None:
    """Rows for flows that did not end, and for probes that did not arrive."""
    schedule = plan.schedule
    rows: list[list[Any]] = []
    for task_id in schedule.under_way():
        flow = schedule.tasks[task_id]
        if isinstance(flow, Flow):
            rows.append(
                [flow.id, flow.job, flow.tag, "flow", flow.src, flow.dst, flow.plane,
                 flow.size_bytes, flow.dscp, schedule.ready_ns(task_id), None, None, None, None,
                 None, STATUS_UNFINISHED]
            )  # fmt: skip
    folder.extend("flows", rows)
    for stream in plan.probes:
        for psn, sent_ns in stream.lost():
            recorder.probe(stream, psn, sent_ns, None)


def _outcome(engine: NicEngine, finished: bool, drained: bool, ended_ns: int) -> dict[str, Any]:
    samples = np.array(nic.lateness_ns(engine.plan.nics.values()), float) / 1000
    p50, p99 = np.percentile(samples, (50, 99)) if len(samples) else (0.0, 0.0)
    return {
        "finished": finished,
        "drained": drained,
        "ended_ns": ended_ns,
        "counters": asdict(engine.counters),
        "retransmitted": engine.counters.retransmitted,
        "overtaken": sum(connection.order.overtaken for connection in engine.plan.connections),
        "lateness_us": {"p50": float(p50), "p99": float(p99)},
        "starved_share": max((_starved(n) for n in engine.plan.nics.values()), default=0.0),
        "unfinished": len(engine.plan.schedule.unfinished()),
    }


def _starved(queue: NicQueue) -> float:
    """Share of a NIC's busy time in which its queue was dry although it had packets to send."""
    return sum(queue.lateness_ns) / queue.busy_ns if queue.busy_ns else 0.0
