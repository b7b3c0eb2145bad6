"""PURE: a plan as text for people. Target units first, emulated values beside them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from emulator.pairs import PairTimes
from emulator.plan import Plan
from emulator.results.format import duration_ns, rate_bps, size_bytes
from emulator.spec.dump import to_document
from emulator.spec.merge import origin_of
from emulator.spec.model import NO_CONTROL
from emulator.tables import aligned, section
from topologies.model import Role
from traffic import wire


def render(plan: Plan) -> str:
    """The whole plan, without a final newline."""
    lines = [
        *_head(plan),
        *section("Scale", _scale(plan)),
        *section("Links", _links(plan)),
        *section(_times_title(plan), _times(plan)),
        *section("Traffic", _traffic(plan)),
        *section("Steps", _steps(plan)),
        *section("Settings, and where each comes from", _settings(plan)),
        *section("Note", [f"  {note}" for note in plan.notes]),
    ]
    return "\n".join(lines).rstrip()


def _head(plan: Plan) -> list[str]:
    x = plan.experiment
    roles = [node.role for node in x.fabric.nodes]
    parts = [
        f"{roles.count(Role.HOST)} hosts",
        f"{roles.count(Role.LEAF)} leaves",
        f"{roles.count(Role.SPINE)} spines",
    ]
    if Role.AGG in roles:
        parts.insert(2, f"{roles.count(Role.AGG)} aggregation switches")
    planes = len(x.fabric.planes)
    if planes > 1:
        parts.append(f"{planes} planes")
    return [
        f"{x.name}: profile {x.profile}, seed {x.seed}, clock {x.clock}",
        f"{x.fabric.kind} with {', '.join(parts)}; {size_bytes(x.fabric.buffer_bytes)} of buffer "
        f"per switch, MTU {x.fabric.mtu_bytes} B",
        "",
    ]


def _scale(plan: Plan) -> list[str]:
    resolved = plan.scaling
    expected = f"{duration_ns(plan.expected_model_ns)} of model time"
    wall = f"{duration_ns(plan.expected_wall_ns)} of wall time (set-up and report aside)"
    return aligned(
        [
            ("dilation", f"{resolved.dilation.value:g}", resolved.dilation.reason),
            ("shrink", f"{resolved.shrink.value:g}", resolved.shrink.reason),
            ("expected", "", f"{expected}, {wall}"),
        ]
    )


def _links(plan: Plan) -> list[str]:
    rows = [("kind", "plane", "number", "rate", "delay", "emulated rate", "emulated delay")]
    rows += [
        (
            entry.ends,
            str(entry.plane),
            str(entry.count),
            rate_bps(entry.rate_bps),
            duration_ns(entry.delay_ns),
            rate_bps(entry.emulated_bps),
            duration_ns(entry.emulated_delay_ns),
        )
        for entry in plan.links
    ]
    return aligned(rows, right=range(1, 7))


def _times_title(plan: Plan) -> str:
    wire_bytes = wire.wire_bytes(plan.frame_bytes)
    mode = plan.experiment.switch.mode
    return f"Times in the idle fabric ({mode}; data packet of {wire_bytes} B on the wire)"


def _times(plan: Plan) -> list[str]:
    rows: list[tuple[str, ...]] = [
        ("path", "plane", "example", "one way", "round trip", "BDP", "emulated one way, trip")
    ]
    rows += [_time_row(plan, entry, "") for entry in plan.pairs]
    rows += [_time_row(plan, entry, "probe ") for entry in plan.probe_pairs]
    return [*aligned(rows, right=(1, 3, 4, 5, 6)), f"  {_transport(plan)}"]


def _transport(plan: Plan) -> str:
    """Kind, control, window and timeout."""
    spec, settings = plan.experiment.transport, plan.transport
    control = "" if spec.control == NO_CONTROL else f" with {spec.control} ({spec.params})"
    if spec.control == spec.kind:
        control = f" ({spec.params})"
    window = settings.window_packets
    limit = "unlimited" if window is None else f"{window} packets"
    timeout = duration_ns(settings.retransmit_timeout_ns)
    return f"{spec.kind}{control}: window {limit}, retransmission timeout {timeout}"


def _time_row(plan: Plan, entry: PairTimes, prefix: str) -> tuple[str, ...]:
    scale, pair = plan.scaling.scale, entry.pair
    emulated = (scale.wall_ns(entry.one_way_ns), scale.wall_ns(entry.round_trip_ns))
    return (
        prefix + pair.name,
        str(pair.plane),
        f"{pair.src}-{pair.dst}",
        duration_ns(entry.one_way_ns),
        duration_ns(entry.round_trip_ns),
        "" if prefix else size_bytes(entry.bdp_bytes),
        ", ".join(duration_ns(value) for value in emulated),
    )


def _traffic(plan: Plan) -> list[str]:
    bound = plan.scaling.estimate
    rows = [
        ("messages", f"{bound.flows:,}"),
        ("payload", size_bytes(bound.payload_bytes)),
        ("data packets", f"{bound.data_packets:,}"),
        ("at least", f"{duration_ns(bound.least_duration_ns)} of model time"),
        ("packets/s at the peak", f"{plan.scaling.peak_pps / plan.scaling.dilation.value:,.0f}"),
    ]
    return aligned(rows) if bound.flows else []


def _steps(plan: Plan) -> list[str]:
    rows = [
        (f"{number}.", step.what, f"{step.count:,}", step.detail)
        for number, step in enumerate(plan.steps, start=1)
    ]
    return aligned(rows, right=(0, 2))


def _settings(plan: Plan) -> list[str]:
    origins = plan.experiment.origins
    rows = []
    for path, value in _leaves(to_document(plan.experiment), ""):
        rows.append((path, _shown(value), origin_of(path, origins) or "computed"))
    return aligned(rows)


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """(key path, value) of everything that is no mapping; lists of plain values stay whole."""
    if isinstance(value, Mapping) and value:
        for key, item in value.items():
            yield from _leaves(item, f"{path}.{key}" if path else key)
    elif isinstance(value, list) and any(isinstance(item, Mapping) for item in value):
        for index, item in enumerate(value):
            yield from _leaves(item, f"{path}[{index}]")
    else:
        yield path, value


def _shown(value: Any) -> str:
    return str(value).replace("'", "") if isinstance(value, (list, dict)) else str(value)
