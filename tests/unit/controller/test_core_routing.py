"""Rules of each switch and paths of flows, on small fabrics that can be checked by hand."""

from __future__ import annotations

from collections import Counter

import pytest

from controller.core import pipeline
from controller.core.messages import FlowMod, Match, Output, Rule
from controller.core.pipeline import PIPELINE
from controller.core.routing import Routing, bucket_of
from controller.policies.registry import build_policy
from tests.fakes.fabrics import leaf_spine, link_between
from topologies.errors import SpecError
from topologies.model import Fabric, Role
from topologies.registry import build_fabric


def routing_of(fabric: Fabric, seed: int = 7, policy: str = "ecmp") -> Routing:
    """Routing in a fabric."""
    return Routing(fabric, build_policy({"policy": policy}, fabric), seed)


def rules_of(fabric: Fabric, switch: str) -> list[Rule]:
    """The rules of one switch."""
    return list(routing_of(fabric).rules(fabric.by_name[switch]).values())


def by_priority(rules: list[Rule]) -> Counter[int]:
    """How many rules each priority has."""
    return Counter(rule.priority for rule in rules)


def test_rules_of_a_leaf() -> None:
    """Its hosts, 64 buckets for UDP and TCP per remote leaf, one for the rest, the miss."""
    rules = rules_of(leaf_spine(4, 2, hosts_per_leaf=3), "leaf2")
    assert by_priority(rules) == {
        pipeline.OWN_HOST.priority: 3,
        pipeline.BUCKET.priority: 3 * 64 * 2,
        pipeline.REMOTE_LEAF.priority: 3,
        pipeline.MISS.priority: 1,
    }


def test_rules_of_a_spine() -> None:
    """One rule per leaf when there is one link to it; buckets over parallel links."""
    assert by_priority(rules_of(leaf_spine(3, 2), "spine1")) == {
        pipeline.REMOTE_LEAF.priority: 3, pipeline.MISS.priority: 1,
    }  # fmt: skip
    assert by_priority(rules_of(leaf_spine(3, 2, parallel=2), "spine1")) == {
        pipeline.BUCKET.priority: 3 * 64 * 2,
        pipeline.REMOTE_LEAF.priority: 3,
        pipeline.MISS.priority: 1,
    }


def test_single_uplink_needs_no_buckets() -> None:
    """With one spine there is nothing to choose."""
    assert by_priority(rules_of(leaf_spine(3, 1), "leaf1"))[pipeline.BUCKET.priority] == 0


def test_single_leaf_serves_its_hosts() -> None:
    """A fabric without spines has host rules and a miss."""
    assert by_priority(rules_of(leaf_spine(1, 0, hosts_per_leaf=5), "leaf1")) == {
        pipeline.OWN_HOST.priority: 5, pipeline.MISS.priority: 1,
    }  # fmt: skip


def test_exact_rules() -> None:
    """A host's rule and a bucket's rule, field by field."""
    rules = rules_of(leaf_spine(2, 2, hosts_per_leaf=2), "leaf1")
    host = Match.of(eth_type=0x0800, ipv4_dst=10 << 24 | 1 << 16 | 1 << 8 | 2)
    assert Rule(pipeline.OWN_HOST.priority, host, (Output(2),)) in rules
    prefix = (10 << 24 | 1 << 16 | 2 << 8, 0xFFFFFF00)
    bucket = Match.of(eth_type=0x0800, ip_proto=17, ipv4_dst=prefix, udp_src=(9, 0x3F))
    found = [rule for rule in rules if rule.match == bucket]
    assert len(found) == 1
    assert found[0].actions[0] in {Output(3), Output(4)}


def test_spines_compare_other_bits() -> None:
    """Six bits from bit 6 on, so that the second choice does not repeat the first."""
    rules = rules_of(leaf_spine(2, 2, parallel=2), "spine1")
    masks = {
        field.mask for rule in rules for field in rule.match.fields
        if field.name in ("udp_src", "tcp_src")
    }  # fmt: skip
    assert masks == {0x3F << 6}


def test_every_rule_is_declared() -> None:
    """The pipeline accepts all rules of all roles and policies."""
    fabric = leaf_spine(3, 2, hosts_per_leaf=3, parallel=2)
    for policy in ("ecmp", "wcmp", "static"):
        routing = routing_of(fabric, policy=policy)
        for node in fabric.switches:
            for rule in routing.rules(node).values():
                PIPELINE.check(FlowMod.add(rule, 1))


def test_number_of_rules_of_a_large_fabric() -> None:
    """8 leaves, 4 spines, 64 hosts: 912 rules per leaf, 9 per spine."""
    fabric = leaf_spine(8, 4, hosts_per_leaf=8)
    rules = routing_of(fabric).all_rules(list(fabric.switches))
    assert Counter(map(len, rules.values())) == {912: 8, 9: 4}


def test_path_within_a_leaf() -> None:
    """Two hosts of a leaf talk through it alone."""
    path = routing_of(leaf_spine(2, 2, hosts_per_leaf=2)).path_of("h1", "h2", 5)
    assert [port.name for port in path] == ["h1-eth1", "leaf1-eth2"]


def test_path_across_a_spine() -> None:
    """Host, leaf, spine, leaf; the last port faces the destination."""
    path = routing_of(leaf_spine(2, 2, hosts_per_leaf=2)).path_of("h1", "h4", 5)
    assert [port.node[:5].rstrip("123") for port in path] == ["h", "leaf", "spine", "leaf"]
    assert path[-1].name == "leaf2-eth2"


def test_64_source_ports_over_4_spines() -> None:
    """Flows that differ in 64 consecutive UDP source ports use each spine 16 times."""
    routing = routing_of(leaf_spine(4, 4, hosts_per_leaf=2))
    spines = Counter(routing.path_of("h1", "h8", port)[2].node for port in range(0xC000, 0xC040))
    assert set(spines.values()) == {16}


def test_other_protocols_take_the_way_of_bucket_0() -> None:
    """ICMP has no source port; it goes where UDP source port 0 goes."""
    routing = routing_of(leaf_spine(2, 4))
    ways = {routing.path_of("h1", "h2", port, protocol="icmp") for port in range(64)}
    assert ways == {routing.path_of("h1", "h2", 0)}


def test_udp_and_tcp_of_equal_port_share_a_path() -> None:
    """Both transports have the same buckets."""
    routing = routing_of(leaf_spine(2, 4))
    for port in range(64):
        assert routing.path_of("h1", "h2", port) == routing.path_of(
            "h1", "h2", port, protocol="tcp"
        )


def test_no_path_while_the_host_is_cut_off() -> None:
    """A host whose own link is down has no path, in either direction."""
    fabric = leaf_spine(2, 2)
    down = frozenset({link_between(fabric, "h2", "leaf2").id})
    routing = routing_of(fabric)
    assert routing.path_of("h1", "h2", 0, down=down) == ()
    assert routing.path_of("h2", "h1", 0, down=down) == ()


def test_no_path_and_no_rules_without_a_way() -> None:
    """A leaf that no spine reaches has no rules on the others; their packets are dropped early."""
    fabric = leaf_spine(3, 2)
    down = frozenset(link_between(fabric, "leaf3", f"spine{n}").id for n in (1, 2))
    routing = routing_of(fabric)
    assert routing.path_of("h1", "h3", 0, down=down) == ()
    rules = by_priority(list(routing.rules(fabric.by_name["leaf1"], down).values()))
    assert rules[pipeline.REMOTE_LEAF.priority] == 1


def test_unknown_host_or_plane_is_a_key_error() -> None:
    """Asking for a flow that cannot exist is the caller's fault."""
    routing = routing_of(leaf_spine(2, 2))
    for src, dst, plane in (("h1", "h9", 1), ("h9", "h1", 1), ("h1", "h2", 2)):
        with pytest.raises(KeyError):
            routing.path_of(src, dst, 0, plane=plane)


def test_planes_route_apart() -> None:
    """A host in two planes is reached in each through that plane's switches only."""
    plane = {"leaves": 2, "spines": 2, "hosts_per_leaf": 2}
    fabric = build_fabric({"kind": "front-back", "front": plane, "back": plane})
    routing = routing_of(fabric)
    for number, prefix in ((1, ""), (2, "p2")):
        path = routing.path_of("h1", "h4", 5, plane=number)
        assert {port.node.startswith("p2") for port in path[1:]} == {prefix == "p2"}
        assert len(path) == 4


def test_more_ways_than_buckets_are_refused() -> None:
    """65 uplinks cannot all be used by 64 buckets."""
    with pytest.raises(SpecError, match=r"65 is more ways from leaf[12] to leaf[12] than the 64"):
        routing_of(leaf_spine(2, 65))
    assert routing_of(leaf_spine(2, 64)).path_of("h1", "h2", 1)


@pytest.mark.parametrize(
    ("protocol", "port", "role", "bucket"),
    [
        ("udp", 0xC041, Role.LEAF, 1),
        ("udp", 0xC041, Role.SPINE, 1),
        ("tcp", 0x0FC0, Role.SPINE, 63),
        ("tcp", 0x0FC0, Role.LEAF, 0),
        ("icmp", 0xFFFF, Role.LEAF, 0),
    ],
)
def test_bucket_of(protocol: str, port: int, role: Role, bucket: int) -> None:
    """Leaves look at bits 0-5 of the source port, spines at bits 6-11."""
    assert bucket_of(protocol, port, role) == bucket
