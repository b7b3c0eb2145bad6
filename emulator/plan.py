"""PURE: what a run of an experiment will be, before anything is started.

`make_plan` computes it, `emulator.plan_text` shows it. Everything is in target units; emulated
values (what the kernel will be told) stand beside them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from emulator import scale as scaling
from emulator.clock.traits import LIVE_CLOCK
from emulator.pairs import PairClass, PairTimes, pair_classes, pair_times
from emulator.resources import Resources, Step, resources, steps
from emulator.scale import ResolvedScale
from emulator.spec.dump import to_document
from emulator.spec.model import NO_CONTROL, Experiment
from emulator.transport import TransportSettings, transport_settings
from topologies.model import Fabric, Link
from traffic import wire


@dataclass(frozen=True)
class LinkClass:
    """Links that are alike.

    Attributes:
        ends: roles of the two ends, such as ``host-leaf``.
        plane: the fabric plane.
        count: number of links.
        rate_bps: target rate.
        delay_ns: target delay.
        emulated_bps: what the kernel shapes to.
        emulated_delay_ns: wall time of the delay.
    """

    ends: str
    plane: int
    count: int
    rate_bps: int
    delay_ns: int
    emulated_bps: int
    emulated_delay_ns: int


@dataclass(frozen=True)
class Plan:
    """All of it.

    Attributes:
        experiment: what is to run.
        measured: whether the capacity was measured on this machine.
        scaling: dilation and shrink with their reasons.
        links: links by kind.
        pairs: unloaded times by class of path, for a full data packet.
        probe_pairs: the same for a probe; empty without probes.
        transport: window and timeout.
        frame_bytes: a full data packet, without FCS.
        expected_model_ns: model time that the run is expected to take.
        resources: what is made.
        steps: in which order.
        notes: what a user should know before starting.
    """

    experiment: Experiment
    measured: bool
    scaling: ResolvedScale
    links: tuple[LinkClass, ...]
    pairs: tuple[PairTimes, ...]
    probe_pairs: tuple[PairTimes, ...]
    transport: TransportSettings
    frame_bytes: int
    expected_model_ns: float
    resources: Resources
    steps: tuple[Step, ...]
    notes: tuple[str, ...]

    @property
    def expected_wall_ns(self) -> float:
        """Wall time that the traffic is expected to take."""
        bound, dilation = self.scaling.estimate, self.scaling.dilation.value
        return scaling.expected_wall_ns(self.experiment, bound, dilation)


def make_plan(experiment: Experiment, capacity_pps: float | None = None) -> Plan:
    """The plan of an experiment.

    Args:
        experiment: what is to run.
        capacity_pps: measured data packets/s of this machine; None = not measured yet.
    """
    reference = scaling.REFERENCE_CAPACITY_PPS
    resolved = scaling.resolve(experiment, reference if capacity_pps is None else capacity_pps)
    frame_bytes = wire.data_frame_bytes(experiment.transport.payload_bytes)
    classes = pair_classes(experiment.fabric)
    pairs = tuple(pair_times(pair, experiment.switch, frame_bytes) for pair in classes)
    counts = resources(experiment)
    plan = Plan(
        experiment=experiment,
        measured=capacity_pps is not None,
        scaling=resolved,
        links=tuple(_link_classes(experiment.fabric, resolved.scale)),
        pairs=pairs,
        probe_pairs=_probe_pairs(experiment, classes),
        transport=transport_settings(experiment, _used(experiment, pairs)),
        frame_bytes=frame_bytes,
        expected_model_ns=scaling.expected_model_ns(experiment, resolved.estimate),
        resources=counts,
        steps=steps(experiment, counts),
        notes=(),
    )
    return dataclasses.replace(plan, notes=tuple(_notes(plan)))


def _probe_pairs(experiment: Experiment, classes: tuple[PairClass, ...]) -> tuple[PairTimes, ...]:
    """Times of a probe, and of two as a round trip; empty without probes."""
    probes = experiment.probes
    if probes is None:
        return ()
    size = wire.data_frame_bytes(max(1, probes.size_bytes - wire.data_frame_bytes(0)))
    return tuple(pair_times(pair, experiment.switch, size, size) for pair in classes)


def _used(experiment: Experiment, pairs: tuple[PairTimes, ...]) -> list[PairTimes]:
    """Paths in the planes that workloads use; all when there are none."""
    planes = {spec.plane for spec in experiment.workloads}
    return [entry for entry in pairs if not planes or entry.pair.plane in planes]


def _link_classes(fabric: Fabric, scale: scaling.Scale) -> Iterator[LinkClass]:
    groups: dict[tuple[int, str, int, int], list[Link]] = {}
    for link in fabric.links:
        ends = f"{fabric.by_name[link.a].role}-{fabric.by_name[link.b].role}"
        groups.setdefault((link.plane, ends, link.rate_bps, link.delay_ns), []).append(link)
    for (plane, ends, rate_bps, delay_ns), members in groups.items():
        yield LinkClass(
            ends,
            plane,
            len(members),
            rate_bps,
            delay_ns,
            scale.emulated_bps(rate_bps),
            scale.wall_ns(delay_ns),
        )


def _notes(plan: Plan) -> Iterator[str]:
    """What may surprise."""
    resolved, x = plan.scaling, plan.experiment
    if x.clock == LIVE_CLOCK:
        yield from _machine_notes(plan)
    elif not resolved.dilation.fits:
        yield f"{resolved.dilation.reason}; without dilation: it would be exact"
    if not resolved.shrink.fits:
        yield f"the run exceeds its budget ({resolved.shrink.reason})"
    yield from _message_notes(plan)
    if x.transport.overrides and x.transport.control == NO_CONTROL:
        yield "transport.overrides has no effect while transport.control is none"
    if x.ecn and x.transport.control == NO_CONTROL:
        yield "switches mark, but senders do not react (transport.control is none)"


def _machine_notes(plan: Plan) -> Iterator[str]:
    """Whether the machine will keep up."""
    resolved = plan.scaling
    if not plan.measured:
        assumed = f"{resolved.capacity_pps:,.0f} packets/s are assumed"
        yield f"this machine has not been measured; {assumed}"
    if not resolved.dilation.fits:
        better = scaling.nice_at_least(
            resolved.peak_pps / (scaling.CAPACITY_SHARE * resolved.capacity_pps)
        )
        yield f"dilation {resolved.dilation.value:g} asks for too many packets/s; {better} would do"
    bound = resolved.estimate
    wall_s = plan.expected_wall_ns / 1e9
    allowed = scaling.CAPACITY_SHARE * plan.scaling.capacity_pps
    if wall_s and bound.data_packets / wall_s > allowed:
        yield (
            f"{bound.data_packets / wall_s:,.0f} packets/s on average exceed the {allowed:,.0f} "
            "that this machine carries; raise dilation"
        )


def _message_notes(plan: Plan) -> Iterator[str]:
    """Messages too short to fill the pipe."""
    bdp_bytes = max((entry.bdp_bytes for entry in plan.pairs), default=0)
    for name, size_bytes in plan.scaling.typical_bytes.items():
        if plan.scaling.shrink.value > 1 and size_bytes < bdp_bytes:
            yield (
                f"{name}: shrunk messages of {size_bytes:,.0f} B are below one bandwidth-delay "
                f"product ({bdp_bytes:,.0f} B), so latency rather than bandwidth decides"
            )


def to_dict(plan: Plan) -> dict[str, Any]:
    """The plan as JSON can hold it; times ns, rates bit/s, sizes bytes."""
    resolved = plan.scaling
    estimate = {k: v for k, v in dataclasses.asdict(resolved.estimate).items() if k != "pair_bytes"}
    return {
        "experiment": to_document(plan.experiment),
        "capacity_pps": resolved.capacity_pps,
        "capacity_measured": plan.measured,
        "peak_pps": resolved.peak_pps,
        "dilation": dataclasses.asdict(resolved.dilation),
        "shrink": dataclasses.asdict(resolved.shrink),
        "links": [dataclasses.asdict(entry) for entry in plan.links],
        "frame_bytes": plan.frame_bytes,
        "unloaded": [_times(entry) for entry in plan.pairs],
        "unloaded_probe": [_times(entry) for entry in plan.probe_pairs],
        "transport": dataclasses.asdict(plan.transport),
        "traffic": {**estimate, "typical_bytes": dict(resolved.typical_bytes)},
        "expected_model_ns": plan.expected_model_ns,
        "expected_wall_ns": plan.expected_wall_ns,
        "steps": [dataclasses.asdict(step) for step in plan.steps],
        "resources": dataclasses.asdict(plan.resources),
        "notes": list(plan.notes),
    }


def _times(entry: PairTimes) -> dict[str, Any]:
    return {
        "plane": entry.pair.plane,
        "class": entry.pair.name,
        "example": [entry.pair.src, entry.pair.dst],
        "switches": entry.pair.switches,
        "paths": entry.pair.paths,
        "one_way_ns": entry.one_way_ns,
        "round_trip_ns": entry.round_trip_ns,
        "bdp_bytes": entry.bdp_bytes,
    }
