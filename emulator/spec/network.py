"""Readers of the sections ``routing``, ``transport``, ``switch`` and ``probes``."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from controller.policies.registry import build_policy
from emulator.spec.keys import with_defaults
from emulator.spec.model import (
    ALL_HOSTS,
    ALL_LEAVES,
    AUTO,
    CUT_THROUGH,
    DCQCN,
    NO_CONTROL,
    PERIODIC,
    POISSON,
    STORE_AND_FORWARD,
    UNLIMITED,
    ProbeSpec,
    RoutingSpec,
    SwitchSpec,
    TransportSpec,
)
from emulator.spec.ports import NONE, read_classes
from topologies.errors import SpecError, UnknownNameError
from topologies.model import Fabric
from topologies.reading import Reader, as_flag, as_integer, as_list, as_mapping, as_text
from topologies.units import parse_duration, parse_fraction, parse_rate, parse_size
from traffic import wire
from traffic.dcqcn_params import PARAMETER_SETS, DcqcnParams

KINDS = ("roce",)
MAX_PAYLOAD_BYTES = 4096
"""Largest path MTU of RDMA (IBTA volume 1, 11.2.5)."""
MIN_PAYLOAD_BYTES = 64
AETH_RESERVE_BYTES = wire.AETH_BYTES
"""Room that an automatic payload leaves, so that every packet type fits the MTU."""
MIN_PROBE_BYTES = wire.data_frame_bytes(1)
"""The shortest probe: one byte, padded to four."""
MAX_WINDOW = 2**23
"""Half of the 24-bit sequence numbers (IBTA volume 1, 9.7.2)."""


def read_routing(raw: object, fabric: Fabric) -> RoutingSpec:
    """The ``routing`` section; the policy itself checks its options."""
    section = as_mapping(raw, "routing")
    policy = build_policy(section, fabric, "routing")
    return RoutingSpec(policy.name, {k: v for k, v in section.items() if k != "policy"})


def read_switch(raw: object) -> SwitchSpec:
    """The ``switch`` section."""
    with Reader(raw, "switch") as reader:
        modes = (STORE_AND_FORWARD, CUT_THROUGH)
        return SwitchSpec(
            reader.choice("mode", modes, what="forwarding mode"), reader.duration("latency")
        )


def read_transport(raw: object, fabric: Fabric) -> TransportSpec:
    """The ``transport`` section."""
    with Reader(raw, "transport") as reader:
        return TransportSpec(
            kind=reader.choice("kind", KINDS, what="transport"),
            control=reader.choice("control", (NO_CONTROL, DCQCN), what="congestion control"),
            params=reader.choice("params", PARAMETER_SETS, what="DCQCN parameter set"),
            overrides=_read_overrides(reader),
            payload_bytes=_read_payload(reader, fabric.mtu_bytes),
            window=reader.get("window", _window, AUTO),
            retransmit_timeout_ns=reader.get("retransmit_timeout", _timeout, None),
        )


def _window(value: object, path: str) -> int | str:
    if value in (AUTO, UNLIMITED):
        return str(value)
    if isinstance(value, str):
        raise UnknownNameError(path, "window", value, (AUTO, UNLIMITED, "a number of packets"))
    return as_integer(value, path, minimum=1, maximum=MAX_WINDOW)


def _timeout(value: object, path: str) -> int | None:
    return None if value == AUTO else parse_duration(value, path, allow_zero=False)


def _read_payload(reader: Reader, mtu_bytes: int) -> int:
    """Payload of a full packet: as written, or the largest multiple of 4 that fits."""
    largest = wire.max_payload_bytes(mtu_bytes)
    if reader.raw("payload") == AUTO:
        payload_bytes = min(
            MAX_PAYLOAD_BYTES, wire.max_payload_bytes(mtu_bytes - AETH_RESERVE_BYTES)
        )
        if payload_bytes < MIN_PAYLOAD_BYTES:
            rule = f"leaves no room for a payload of {MIN_PAYLOAD_BYTES} bytes"
            way_out = f"write at least {MIN_PAYLOAD_BYTES + _overhead()} B"
            raise SpecError("fabric.mtu", mtu_bytes, rule, way_out)
        return payload_bytes
    payload_bytes = reader.size("payload")
    value, path = reader.raw("payload"), reader.at("payload")
    if payload_bytes > largest:
        rule = f"does not fit: the MTU is {mtu_bytes} B and headers take {wire.IP_OVERHEAD_BYTES} B"
        raise SpecError(path, value, rule, f"write at most {largest} B, or raise fabric.mtu")
    if payload_bytes < MIN_PAYLOAD_BYTES or payload_bytes > MAX_PAYLOAD_BYTES or payload_bytes % 4:
        rule = f"must be a multiple of 4 from {MIN_PAYLOAD_BYTES} to {MAX_PAYLOAD_BYTES}"
        raise SpecError(path, value, rule, "write e.g. 4096 B, or auto")
    return payload_bytes


def _overhead() -> int:
    return wire.IP_OVERHEAD_BYTES + AETH_RESERVE_BYTES


def _read_overrides(reader: Reader) -> tuple[tuple[str, Any], ...]:
    """Single DCQCN parameters, by the fields of `DcqcnParams` without their unit."""
    with reader.mapping("overrides", {}) as inner:
        found = []
        for field in override_fields():
            key = override_key(field.name)
            if inner.has(key):
                found.append((field.name, _parameter(inner.raw(key), inner.at(key), field)))
    return tuple(found)


def override_fields() -> list[dataclasses.Field[Any]]:
    """The fields of `DcqcnParams` that a file may change."""
    return [f for f in dataclasses.fields(DcqcnParams) if f.name not in ("name", "source")]


def override_key(field: str) -> str:
    """``cnp_interval_ns`` -> ``cnp_interval``, ``min_rate_bps`` -> ``min_rate``."""
    return field.removesuffix("_ns").removesuffix("_bps")


def _parameter(value: object, path: str, field: dataclasses.Field[Any]) -> Any:
    """One parameter, read by the unit in its field's name or by its type."""
    kind = str(field.type)
    if "None" in kind and value in NONE:
        return None
    unit = field.name.rsplit("_", 1)[-1]
    return _PARSERS.get(unit, _PARSERS[kind.split(" ", maxsplit=1)[0]])(value, path)


_PARSERS: dict[str, Callable[[Any, str], Any]] = {
    "ns": parse_duration,
    "bps": parse_rate,
    "bytes": parse_size,
    "bool": as_flag,
    "int": lambda value, path: as_integer(value, path, minimum=1),
    "float": parse_fraction,
}
"""By the last word of a field's name, else by its type."""


def read_probes(raw: object, fabric: Fabric, classes: Sequence[int]) -> ProbeSpec | None:
    """The ``probes`` section; `classes` are probed where it names none."""
    if raw in NONE:
        return None
    section: Mapping[str, Any] = with_defaults("probes", as_mapping(raw, "probes"))
    with Reader(section, "probes") as reader:
        pairs = reader.get("pairs", lambda v, p: _pairs(v, p, fabric), ALL_LEAVES)
        rate_per_s = reader.event_rate("rate")
        tcs = read_classes(reader, classes)
        size_bytes = reader.size("size")
        arrivals = reader.choice("arrivals", (PERIODIC, POISSON), what="kind of arrivals")
    largest = wire.data_frame_bytes(wire.max_payload_bytes(fabric.mtu_bytes))
    if not MIN_PROBE_BYTES <= size_bytes <= largest:
        rule = f"must be from {MIN_PROBE_BYTES} to {largest} B, a RoCEv2 frame within the MTU"
        raise SpecError("probes.size", section["size"], rule, "write e.g. 128 B")
    return ProbeSpec(pairs, rate_per_s, tcs, size_bytes, arrivals)


def _pairs(value: object, path: str, fabric: Fabric) -> str | tuple[tuple[str, str], ...]:
    if isinstance(value, str):
        if value not in (ALL_LEAVES, ALL_HOSTS):
            raise UnknownNameError(path, "set of pairs", value, (ALL_LEAVES, ALL_HOSTS))
        return value
    return tuple(_pair(v, p, fabric) for p, v in as_list(value, path, minimum=1))


def _pair(value: object, path: str, fabric: Fabric) -> tuple[str, str]:
    (p, a), (q, b) = as_list(value, path, minimum=2, maximum=2)
    for place, name in ((p, as_text(a, p)), (q, as_text(b, q))):
        node = fabric.by_name.get(name)
        if node is None:
            hosts = [host.name for host in fabric.hosts]
            raise UnknownNameError(place, "host", name, hosts)
        if node.is_switch:
            rule = "is a switch, and probes run between hosts (a switch has no NIC to measure with)"
            raise SpecError(place, name, rule, "name a host below it")
    if a == b:
        raise SpecError(path, [a, b], "probes a host from itself", "name two hosts")
    return str(a), str(b)
