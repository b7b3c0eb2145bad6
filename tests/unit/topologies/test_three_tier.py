"""Fabrics of kind three-tier: shape, names, ways, and what the rest makes of them."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from controller.core.routing import Routing
from controller.policies.registry import build_policy
from emulator import topo_text
from emulator.dataplane.delays import link_delays
from emulator.spec.model import CUT_THROUGH, SwitchSpec
from topologies.addressing import dpid, switch_of_dpid
from topologies.bisection import bisection_bps
from topologies.errors import SpecError
from topologies.model import Fabric, Role
from topologies.paths import Paths, nodes_of, oversubscription, uplink_bps
from topologies.registry import build_fabric

GBPS = 1_000_000_000
BASE: dict[str, Any] = {
    "kind": "three-tier", "pods": 2, "leaves_per_pod": 2, "aggs_per_pod": 2, "spines": 2,
    "hosts_per_leaf": 3, "host_link": {"rate": "40 Gbit/s"}, "leaf_link": {"rate": "40 Gbit/s"},
    "spine_link": {"rate": "40 Gbit/s"},
}  # fmt: skip


def fabric(**changes: Any) -> Fabric:
    """The fabric of figure 2 of the DCQCN paper, but for changes."""
    return build_fabric({**BASE, **changes})


def test_every_leaf_reaches_its_pod_and_every_aggregation_switch_the_spines() -> None:
    """4 leaves x 2, 4 aggregation switches x 2, and 12 hosts."""
    made = fabric()
    assert Counter(node.role for node in made.nodes) == {
        Role.HOST: 12, Role.LEAF: 4, Role.AGG: 4, Role.SPINE: 2
    }  # fmt: skip
    pairs = {(link.a, link.b) for link in made.links if made.by_name[link.a].is_switch}
    assert len(pairs) == 16
    assert ("leaf3", "agg4") in pairs
    assert ("leaf3", "agg2") not in pairs
    assert ("agg2", "spine1") in pairs


def test_switches_keep_their_numbers_apart() -> None:
    """Datapath ids are those of the tier, and lead back."""
    made = fabric()
    ids = {node.name: dpid(node) for node in made.switches}
    assert len(set(ids.values())) == len(ids)
    assert ids["agg2"] == 0x13002
    assert all(switch_of_dpid(made, value).name == name for name, value in ids.items())


@pytest.mark.parametrize(("dst", "ways", "links"), [("h2", 1, 2), ("h4", 2, 4), ("h7", 8, 6)])
def test_ways_between_hosts_grow_with_the_tiers(dst: str, ways: int, links: int) -> None:
    """Below a leaf, in a pod over 2 switches, across pods over 2 x 2 x 2."""
    found = Paths(fabric()).between("h1", dst)
    assert (len(found), {len(path) for path in found}) == (ways, {links})


def test_flows_use_all_ways_across_pods_and_never_loop() -> None:
    """Equal-cost paths of the controller, over many source ports: all eight, about evenly."""
    made = fabric()
    routing = Routing(made, build_policy({"policy": "ecmp"}, made), seed=7)
    used: Counter[tuple[str, ...]] = Counter()
    for sport in range(0xC000, 0x10000, 5):
        ports = routing.path_of("h1", "h12", sport)
        used[nodes_of(made, tuple(port.index for port in ports))] += 1
    assert len(used) == 8
    assert {len(path) for path in used} == {7}
    assert max(used.values()) < 1.5 * min(used.values())


def test_static_ways_spread_hosts_over_both_tiers() -> None:
    """Host n takes aggregation switch (n-1) mod 2 and spine (n-1) / 2 mod 2."""
    made = fabric(hosts_per_leaf=4)
    routing = Routing(made, build_policy({"policy": "static"}, made), seed=1)
    ways = set()
    for host in ("h9", "h10", "h11", "h12"):
        ports = routing.path_of("h1", host, 0xC000)
        ways.add(nodes_of(made, tuple(port.index for port in ports))[2:4])
    assert ways == {(agg, spine) for agg in ("agg1", "agg2") for spine in ("spine1", "spine2")}


@pytest.mark.parametrize(
    ("changes", "gbps"),
    [
        ({}, 160),
        ({"spine_link": {"rate": "10 Gbit/s"}}, 40),
        ({"leaf_link": {"rate": "10 Gbit/s"}}, 40),
        ({"pods": 1, "leaves_per_pod": 4}, 160),
        ({"spines": 1}, 80),
    ],
)
def test_bisection_is_that_of_the_narrowest_tier(changes: dict[str, Any], gbps: int) -> None:
    """Two pods: what both have to the spines; leaves of one pod meet in its own switches."""
    assert bisection_bps(fabric(**changes)) == gbps * GBPS


def test_uplinks_are_those_of_leaves() -> None:
    """Oversubscription is hosts over leaf uplinks: 3 x 40 over 2 x 40."""
    made = fabric()
    assert set(uplink_bps(made)) == {"leaf1", "leaf2", "leaf3", "leaf4"}
    assert oversubscription(made) == dict.fromkeys(uplink_bps(made), 1.5)


def test_a_cut_through_switch_waits_for_whole_frames_towards_faster_links_only() -> None:
    """Spine links are slower here: what goes down or stays in the pod is not waited for."""
    made = fabric(leaf_link={"rate": "100 Gbit/s"}, spine_link={"rate": "10 Gbit/s"})
    rates = [link.rate_bps for link in made.links]
    delays = link_delays(made, rates, SwitchSpec(CUT_THROUGH, 500), 1.0)
    from_host = delays[made.port_named("leaf1-eth1").index]
    assert from_host.whole_leaves == {2, 3, 4}
    at_agg = delays[next(p.index for p in made.ports_of["agg1"] if peer(made, p) == "spine1")]
    assert at_agg.whole_leaves == {1, 2}
    at_spine = delays[made.ports_of["spine1"][0].index]
    assert at_spine.whole_leaves == frozenset()


def peer(made: Fabric, port: Any) -> str:
    """The node at a port's other end."""
    return made.port(port.peer).node


def test_links_may_differ_and_the_text_names_every_tier() -> None:
    """A slower spine link, in the table of links."""
    made = fabric(links=[{"between": ["agg1", "spine2"], "rate": "1 Gbit/s"}])
    text = topo_text.render(made)
    assert "12 hosts, 4 leaves, 4 aggregation switches, 2 spines" in text
    assert "agg1 spine2" in text
    assert "1 Gbit/s" in text
    assert '"agg4"' in topo_text.dot(made)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"pods": 0}, "pods"),
        ({"pods": 100, "leaves_per_pod": 3}, "makes 300 in 100 pods, and 254 are allowed"),
        ({"pods": 200}, "leaves_per_pod"),
        ({"hosts_per_leaf": [1, 2]}, "has 2 entries for 4 leaves"),
        ({"leaf_link": {"speed": 1}}, "speed"),
        ({"oversubscription": 2}, "oversubscription"),
    ],
)
def test_wrong_shapes_are_refused(changes: dict[str, Any], message: str) -> None:
    """With the key that is wrong."""
    with pytest.raises(SpecError, match=message):
        fabric(**changes)
