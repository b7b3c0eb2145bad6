"""Multipath: flows that differ in their UDP source port only spread over the spines, repeatably."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from controller.core.routing import Routing
from controller.policies.registry import build_policy
from emulator import naming
from emulator.assembly import entropy
from emulator.clock.live import LiveClock
from emulator.dataplane.building import port_mac
from emulator.dataplane.medium import KernelMedium
from emulator.fabric import FabricSettings, LiveFabric
from emulator.ownership import Ledger
from emulator.run import warmup
from topologies.addressing import host_ip
from topologies.registry import build_fabric
from traffic.wire import FlowAddress

pytestmark = pytest.mark.root

SEED = 7
FLOWS = 64
SPINES = 4


def test_64_source_ports_spread_over_4_spines_as_the_routing_says() -> None:
    """Each spine gets 16 +- 8 flows, exactly those that the pure routing sends there."""
    fabric = build_fabric(
        {"kind": "leaf-spine", "leaves": 2, "spines": SPINES, "hosts_per_leaf": 1}
    )
    routing = Routing(fabric, build_policy({"policy": "ecmp"}, fabric), SEED)
    source, target = fabric.ports_of["h1"][0], fabric.ports_of["h2"][0]
    base = FlowAddress(
        port_mac(fabric, source), port_mac(fabric, target), host_ip(fabric, "h1"),
        host_ip(fabric, "h2"), 0, 0, 24,
    )  # fmt: skip
    flows = [replace(base, entropy=entropy(SEED, "flow", number)) for number in range(FLOWS)]
    planned = Counter(routing.path_of("h1", "h2", flow.sport)[2].node for flow in flows)
    assert all(8 <= planned[f"spine{n + 1}"] <= 24 for n in range(SPINES))

    rates = [50_000_000] * len(fabric.links)
    with LiveFabric(FabricSettings(fabric, rates, SEED), Ledger(naming.new_run_id())) as live:
        clock = LiveClock(1.0)
        live.plane.reset()
        ways = [warmup.Way(source.index, flow, 3) for flow in flows]
        warmup.teach(KernelMedium(live.plane, live.senders(), clock), clock, ways)
        sent = live.plane.states["classes"]["in_packets"].sum(axis=1)
        seen = {
            port.node: int(sent[port.index])
            for port in fabric.ports
            if port.node.startswith("spine") and fabric.port(port.peer).node == "leaf2"
        }
    assert seen == dict(planned)
