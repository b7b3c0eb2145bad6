"""Readers of the sections ``routing``, ``switch`` and ``probes``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from controller.policies.registry import build_policy
from emulator.spec.keys import with_defaults
from emulator.spec.model import (
    ALL_HOSTS,
    ALL_LEAVES,
    CUT_THROUGH,
    PERIODIC,
    POISSON,
    STORE_AND_FORWARD,
    ProbeSpec,
    RoutingSpec,
    SwitchSpec,
)
from emulator.spec.ports import NONE, read_classes
from topologies.errors import SpecError, UnknownNameError
from topologies.model import Fabric
from topologies.reading import Reader, as_list, as_mapping, as_text
from traffic import wire

MIN_PROBE_BYTES = wire.data_frame_bytes(1)
"""The shortest probe: one byte, padded to four."""


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
