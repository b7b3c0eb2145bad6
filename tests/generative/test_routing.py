"""Forwarding over many fabrics: everyone reaches everyone, evenly, without loops, through failures.

Every fabric is drawn (deterministically), controlled by the real core, and walked by packets in
fake switches that apply its messages one by one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import permutations

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from controller.core.events import PortChanged, PortState, SwitchConnected
from controller.core.network import Network
from controller.policies import registry
from tests.fakes.fabrics import leaf_spine
from tests.fakes.network import BlackHole, FakeNetwork, Packet
from topologies.addressing import dpid
from topologies.model import Fabric, Role

POLICIES = registry.names()
RATES = ["25 Gbit/s", "40 Gbit/s", "100 Gbit/s", "400 Gbit/s"]


def drawn(examples: int) -> settings:
    """Settings that repeat exactly and do not measure time."""
    return settings(
        derandomize=True, deadline=None, max_examples=examples,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    )  # fmt: skip


@st.composite
def fabrics(draw: st.DrawFn, most_leaves: int = 5, most_spines: int = 5) -> Fabric:
    """Any leaf-spine fabric of at most these sizes, some links slower than others."""
    leaves = draw(st.integers(1, most_leaves))
    spines = draw(st.integers(0 if leaves == 1 else 1, most_spines))
    parallel = draw(st.integers(1, 3))
    hosts = draw(st.lists(st.integers(1, 3), min_size=leaves, max_size=leaves))
    uneven = [
        {"between": [f"leaf{leaf}", f"spine{spine}"], "rate": draw(st.sampled_from(RATES))}
        for leaf in range(1, leaves + 1)
        for spine in range(1, spines + 1)
        if draw(st.booleans())
    ]
    more: dict[str, object] = {"links": uneven} if uneven else {}
    return leaf_spine(leaves, spines, hosts, parallel, **more)


def network_of(fabric: Fabric, policy: str, seed: int = 7, generation: int = 1) -> Network:
    """The core of a controller."""
    made = registry.build_policy({"policy": policy}, fabric)
    return Network(fabric, made, seed, generation=generation)


def started(fabric: Fabric, policy: str, seed: int = 7) -> tuple[Network, FakeNetwork]:
    """A controller with all its switches connected and ready."""
    network, fake = network_of(fabric, policy, seed), FakeNetwork(fabric)
    fake.connect_all(network)
    assert network.status().ready
    return network, fake


def packets(fabric: Fabric, ports: tuple[int, ...] = (0xC000, 0xFFFF)) -> Iterator[Packet]:
    """Packets between all pairs of hosts, of three protocols."""
    for src, dst in permutations([host.name for host in fabric.hosts], 2):
        for port in ports:
            yield Packet(src, dst, "udp", port)
            yield Packet(src, dst, "tcp", port)
        yield Packet(src, dst, "icmp")


def fabric_links(fabric: Fabric) -> list[int]:
    """Ids of the links between switches."""
    return [link.id for link in fabric.links if fabric.by_name[link.a].is_switch]


def connected(fabric: Fabric, down: set[int], src: str, dst: str) -> bool:
    """Whether some spine has working links to both hosts' leaves; worked out from the links."""
    leaf = {link.a: link.b for link in fabric.links if not fabric.by_name[link.a].is_switch}
    if leaf[src] == leaf[dst]:
        return True
    up = {(link.a, link.b) for link in fabric.links if link.id not in down}
    spines = [node.name for node in fabric.switches if node.role is Role.SPINE]
    return any({(leaf[src], spine), (leaf[dst], spine)} <= up for spine in spines)


@pytest.mark.parametrize("policy", POLICIES)
@drawn(25)
@given(fabric=fabrics(), seed=st.integers(0, 2**63 - 1))
def test_all_pairs_reach_by_the_reported_path(policy: str, fabric: Fabric, seed: int) -> None:
    """Every packet arrives, without a loop, on the path that `path_of` tells, of 2 or 4 links."""
    network, fake = started(fabric, policy, seed)
    for packet in packets(fabric):
        path = fake.walk(packet)
        assert len(path) in (2, 4)
        assert path == network.path_of(
            packet.src, packet.dst, packet.source_port, protocol=packet.protocol
        )


@drawn(25)
@given(fabric=fabrics(), seed=st.integers(0, 2**63 - 1))
def test_equal_cost_spreads_evenly(fabric: Fabric, seed: int) -> None:
    """64 consecutive source ports use the uplinks of a leaf equally, give or take one flow."""
    _, fake = started(fabric, "ecmp", seed)
    leaf_of = {link.a: link.b for link in fabric.links if not fabric.by_name[link.a].is_switch}
    for src, dst in permutations([host.name for host in fabric.hosts], 2):
        if leaf_of[src] == leaf_of[dst]:
            continue
        used = Counter(
            fake.walk(Packet(src, dst, source_port=port))[1].name for port in range(0xC000, 0xC040)
        )
        uplinks = sum(link.a == leaf_of[src] for link in fabric.links)
        assert len(used) == uplinks
        assert max(used.values()) - min(used.values()) <= 1


@drawn(15)
@given(fabric=fabrics(most_leaves=3), seed=st.integers(0, 2**63 - 1))
def test_tiers_do_not_polarise(fabric: Fabric, seed: int) -> None:
    """The flows that reach a spine use all its lanes to a leaf, whatever brought them there."""
    lanes = max(link.lane for link in fabric.links)
    assume(lanes > 1 and len(fabric.hosts) > 1)
    network, _ = started(fabric, "ecmp", seed)
    source_ports = [0xC000 | high << 6 | low for high in range(64) for low in range(0, 64, 5)]
    for src, dst in permutations([host.name for host in fabric.hosts], 2):
        paths = [network.path_of(src, dst, port) for port in source_ports]
        if len(paths[0]) == 2:
            continue
        by_spine: dict[str, Counter[str]] = {}
        for path in paths:
            by_spine.setdefault(path[2].node, Counter())[path[2].name] += 1
        for used in by_spine.values():
            assert len(used) == lanes
            assert max(used.values()) <= 1.1 * min(used.values())


@pytest.mark.parametrize("policy", POLICIES)
@drawn(12)
@given(fabric=fabrics(most_leaves=4, most_spines=4), data=st.data())
def test_failures_and_repairs(policy: str, fabric: Fabric, data: st.DataObject) -> None:
    """Links fail one by one and come back in another order, and at every step all is well.

    Whoever still has a way reaches; whoever has none is dropped, not looped; and when everything
    works again, every path and every rule is the one of the beginning.
    """
    links = fabric_links(fabric)
    assume(links)
    failing = data.draw(st.lists(st.sampled_from(links), min_size=1, max_size=5, unique=True))
    network, fake = started(fabric, policy)
    normal = {packet: fake.walk(packet) for packet in packets(fabric)}
    rules = network.status().rules_hash
    steps = [(link, False) for link in failing]
    steps += [(link, True) for link in data.draw(st.permutations(failing))]
    for link, up in steps:
        fake.set_link(network, link, up)
        assert network.status().ready
        for packet in normal:
            if connected(fabric, fake.down, packet.src, packet.dst):
                fake.walk(packet)
            else:
                with pytest.raises(BlackHole):
                    fake.walk(packet)
    assert {packet: fake.walk(packet) for packet in normal} == normal
    assert network.status().rules_hash == rules


@drawn(25)
@given(fabric=fabrics(), data=st.data())
def test_healthy_paths_stay(fabric: Fabric, data: st.DataObject) -> None:
    """Under ecmp a failure moves only the flows that used the link."""
    links = fabric_links(fabric)
    assume(links)
    failed = fabric.links[data.draw(st.sampled_from(links))]
    network, fake = started(fabric, "ecmp")
    ports = tuple(range(0xC000, 0xC040, 3))
    before = {packet: fake.walk(packet) for packet in packets(fabric, ports)}
    fake.set_link(network, failed.id, up=False)
    for packet, path in before.items():
        if failed.id not in {port.link for port in path}:
            assert fake.walk(packet) == path


@pytest.mark.parametrize("policy", POLICIES)
@drawn(10)
@given(fabric=fabrics(), seed=st.integers(0, 2**63 - 1))
def test_same_seed_same_paths(policy: str, fabric: Fabric, seed: int) -> None:
    """Two controllers with one seed install the same rules, whatever the order of connection."""
    first, one = started(fabric, policy, seed)
    second, other = network_of(fabric, policy, seed, generation=77), FakeNetwork(fabric)
    for node in reversed(fabric.switches):
        other.connect(second, node.name)
    assert first.status().rules_hash == second.status().rules_hash
    for packet in packets(fabric):
        assert one.walk(packet) == other.walk(packet)


@drawn(10)
@given(fabric=fabrics(most_leaves=3), seed=st.integers(0, 1000))
def test_other_seed_other_paths(fabric: Fabric, seed: int) -> None:
    """Another seed spreads the same flows in another way, where there is a choice."""
    assume({"leaf2", "spine2"} <= set(fabric.by_name))
    one, other = (network_of(fabric, "ecmp", s) for s in (seed, seed + 1))
    assert one.status().rules_hash != other.status().rules_hash


@pytest.mark.parametrize(("before", "after"), [("ecmp", "ecmp"), ("static", "wcmp")])
@drawn(6)
@given(fabric=fabrics(most_leaves=3, most_spines=3), seed=st.integers(1, 1000))
def test_restart_never_leaves_a_packet_without_a_rule(
    before: str, after: str, fabric: Fabric, seed: int
) -> None:
    """A new controller replaces all rules; no packet gets lost or goes round in between.

    It may have another policy and another seed than the one before.
    """
    _, fake = started(fabric, before, seed=7)
    second = network_of(fabric, after, seed, generation=20)
    watched = list(packets(fabric, ports=(0xC000 + seed % 64,)))
    for node in fabric.switches:
        event = SwitchConnected(dpid(node), fake.ports_as_reported(node.name))
        sent = second.handle(event, 0)
        through = [p for p in watched if any(port.node == node.name for port in fake.walk(p))]
        for message in sent:
            fake.settle(second, fake.apply([message]))
            for packet in through:
                fake.walk(packet)
    assert second.status().ready
    fresh = FakeNetwork(fabric)
    fresh.connect_all(network_of(fabric, after, seed))
    for packet in packets(fabric):
        assert fake.walk(packet) == fresh.walk(packet)
    held = {number: len(table) for number, table in fake.tables.items()}
    assert held == {number: len(table) for number, table in fresh.tables.items()}


@drawn(8)
@given(fabric=fabrics(most_leaves=4, most_spines=4), data=st.data())
def test_rerouting_disturbs_nobody_else(fabric: Fabric, data: st.DataObject) -> None:
    """While the messages of a failure arrive one by one, flows beside the failed link go on."""
    links = fabric_links(fabric)
    assume(links)
    failed = fabric.links[data.draw(st.sampled_from(links))]
    network, fake = started(fabric, "ecmp")
    watched = {packet: fake.walk(packet) for packet in packets(fabric)}
    beside = [p for p, path in watched.items() if failed.id not in {port.link for port in path}]
    fake.down.add(failed.id)
    end = next(port for port in fabric.ports if port.link == failed.id)
    event = PortChanged(dpid(fabric.by_name[end.node]), PortState(end.number, end.name, False))
    for number, message in network.handle(event, 0):
        fake.tables[number].apply(message)
        for packet in beside:
            assert fake.walk(packet) == watched[packet]
