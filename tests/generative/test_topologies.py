"""The same properties over many generated fabrics."""

from __future__ import annotations

import ipaddress
import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from topologies.addressing import dpid, host_ip, host_mac, leaf_prefix, switch_of_dpid
from topologies.bisection import bisection_bps
from topologies.checks import problems
from topologies.files import fabric_from_dict, fabric_to_dict
from topologies.model import Fabric, Role
from topologies.paths import Paths, links_of, nodes_of, oversubscription, path_delay_ns, uplink_bps
from topologies.registry import build_fabric, kinds
from topologies.settings import EcnRule, resolve

RATES = st.sampled_from(["10 Gbit/s", "25 Gbit/s", "100 Gbit/s", "400 Gbit/s"])
DELAYS = st.sampled_from(["0", "100 ns", "500 ns", "2 us"])


@st.composite
def unequal_links(draw: st.DrawFn, leaves: int, spines: int) -> list[dict[str, Any]]:
    """Some leaf-spine pairs of plane 1, each with a rate of its own in all lanes."""
    pairs = [[f"leaf{i}", f"spine{j}"] for i in range(1, leaves + 1) for j in range(1, spines + 1)]
    chosen = draw(st.lists(st.sampled_from(pairs), unique_by=tuple))
    return [{"between": draw(st.permutations(pair)), "rate": draw(RATES)} for pair in chosen]


@st.composite
def planes(draw: st.DrawFn, hosts: int | None = None) -> dict[str, Any]:
    """The keys of one leaf-spine plane; with ``hosts`` leaves of one host that add up to it."""
    leaves = draw(st.integers(1, 6)) if hosts is None else hosts
    per_leaf: Any = 1
    if hosts is None:
        many = st.lists(st.integers(1, 4), min_size=leaves, max_size=leaves)
        per_leaf = draw(st.integers(1, 4) | many)
    plane: dict[str, Any] = {
        "leaves": leaves,
        "spines": draw(st.integers(1, 4)),
        "hosts_per_leaf": per_leaf,
        "host_link": {"rate": draw(RATES), "delay": draw(DELAYS)},
        "fabric_link": {"delay": draw(DELAYS), "parallel": draw(st.integers(1, 3))},
    }
    if hosts is None and draw(st.booleans()):
        plane["links"] = draw(unequal_links(leaves, plane["spines"]))
    elif draw(st.booleans()):
        plane["oversubscription"] = draw(st.sampled_from([0.5, 1, 1.5, 2, 3, "4:1"]))
    else:
        plane["fabric_link"]["rate"] = draw(RATES)
    return plane


@st.composite
def three_tiers(draw: st.DrawFn) -> dict[str, Any]:
    """A ``three-tier`` fabric of up to three pods."""
    names = ("pods", "leaves_per_pod", "aggs_per_pod", "spines")
    links = ("host_link", "leaf_link", "spine_link")
    return {
        "kind": "three-tier",
        **{name: draw(st.integers(1, 3)) for name in names},
        "hosts_per_leaf": draw(st.integers(1, 3)),
        **{link: {"rate": draw(RATES), "delay": draw(DELAYS)} for link in links},
    }


def mappings() -> st.SearchStrategy[dict[str, Any]]:
    """A ``fabric:`` mapping of any registered kind."""
    return leaf_spines() | three_tiers()


@st.composite
def leaf_spines(draw: st.DrawFn) -> dict[str, Any]:
    """A ``fabric:`` mapping of the kinds that are made of leaf-spine planes."""
    front = draw(planes())
    if draw(st.booleans()):
        return {"kind": "leaf-spine"} | front
    per_leaf = front["hosts_per_leaf"]
    hosts = sum(per_leaf) if isinstance(per_leaf, list) else per_leaf * front["leaves"]
    return {"kind": "front-back", "front": front, "back": draw(planes(hosts=hosts))}


def plane_of(raw: dict[str, Any], plane: int) -> dict[str, Any]:
    """The keys that describe a plane."""
    section: dict[str, Any] = (
        raw if raw["kind"] == "leaf-spine" else raw[("front", "back")[plane - 1]]
    )
    return section


def some_pairs(fabric: Fabric) -> list[tuple[str, str]]:
    """The first host with each of the others, and the last with the first."""
    names = [host.name for host in fabric.hosts]
    return [(names[0], name) for name in names[1:]] + [(names[-1], names[0])]


many_fabrics = settings(max_examples=60, deadline=None, derandomize=True)


def test_every_kind_is_generated() -> None:
    """A new builder must be added to the generator of this file."""
    assert set(kinds()) == {"leaf-spine", "front-back", "three-tier"}


@many_fabrics
@given(mappings())
def test_fabrics_are_sound(raw: dict[str, Any]) -> None:
    """What a builder makes from valid keys passes all checks, and is the same every time."""
    fabric = build_fabric(raw)
    assert problems(fabric) == []
    assert build_fabric(raw) == fabric


@many_fabrics
@given(mappings())
def test_addresses_are_unique_and_in_their_prefix(raw: dict[str, Any]) -> None:
    """No two interfaces share an IP or MAC address; each lies below its own leaf's prefix only."""
    fabric = build_fabric(raw)
    ips = [host_ip(fabric, *seat) for seat in fabric.attachment]
    macs = [host_mac(fabric, *seat) for seat in fabric.attachment]
    assert len(set(ips)) == len(set(macs)) == len(fabric.attachment)
    prefixes = {
        (leaf.plane, leaf.index): ipaddress.ip_network(leaf_prefix(leaf.plane, leaf.index))
        for leaf in fabric.switches
        if leaf.role is Role.LEAF
    }
    for (host, plane), (leaf, _) in fabric.attachment.items():
        address = ipaddress.ip_address(host_ip(fabric, host, plane))
        assert [key for key, net in prefixes.items() if address in net] == [(plane, leaf)]


@many_fabrics
@given(mappings())
def test_datapath_ids_are_unique_and_reversible(raw: dict[str, Any]) -> None:
    """Every switch has an id of its own that leads back to it."""
    fabric = build_fabric(raw)
    ids = [dpid(node) for node in fabric.switches]
    assert len(set(ids)) == len(ids)
    assert [switch_of_dpid(fabric, value) for value in ids] == list(fabric.switches)


@many_fabrics
@given(leaf_spines())
def test_all_pairs_are_connected_by_all_paths(raw: dict[str, Any]) -> None:
    """One path below a leaf, spines x lanes^2 across; all distinct, loop-free, in one plane."""
    fabric = build_fabric(raw)
    paths = Paths(fabric)
    for plane in fabric.planes:
        shape = plane_of(raw, plane)
        across = shape["spines"] * shape["fabric_link"]["parallel"] ** 2
        for src, dst in some_pairs(fabric) if len(fabric.hosts) > 1 else []:
            found = paths.between(src, dst, plane)
            same = fabric.attachment[src, plane][0] == fabric.attachment[dst, plane][0]
            assert len(set(found)) == len(found) == (1 if same else across)
            assert paths.hops(src, dst, plane) == (2 if same else 4)
            for path in found:
                names = nodes_of(fabric, path)
                assert (names[0], names[-1]) == (src, dst)
                assert len(set(names)) == len(names)
                assert {fabric.links[link].plane for link in links_of(fabric, path)} == {plane}


@many_fabrics
@given(mappings())
def test_ways_there_and_back_are_alike(raw: dict[str, Any]) -> None:
    """The paths from b to a use the links of the paths from a to b, with the same delays."""
    fabric = build_fabric(raw)
    paths = Paths(fabric)
    for src, dst in some_pairs(fabric)[:3] if len(fabric.hosts) > 1 else []:
        there = Counter(links_of(fabric, path) for path in paths.between(src, dst))
        back = Counter(links_of(fabric, path)[::-1] for path in paths.between(dst, src))
        assert there == back
        assert paths.delay_ns(src, dst) == paths.delay_ns(dst, src)
        assert paths.delay_ns(src, dst) == min(
            path_delay_ns(fabric, path) for path in paths.between(src, dst)
        )


@many_fabrics
@given(leaf_spines())
def test_oversubscription_is_as_asked(raw: dict[str, Any]) -> None:
    """Where the user gave the ratio, every leaf has it, up to the rounding to whole bit/s."""
    fabric = build_fabric(raw)
    for plane in fabric.planes:
        asked = plane_of(raw, plane).get("oversubscription")
        if asked is not None:
            wanted = 4.0 if asked == "4:1" else asked
            for ratio in oversubscription(fabric, plane).values():
                assert ratio == pytest.approx(wanted, rel=1e-8)


@many_fabrics
@given(mappings())
def test_bisection_is_at_most_half_of_all_uplinks(raw: dict[str, Any]) -> None:
    """No split costs more than half of the uplinks, and a connected plane carries something."""
    fabric = build_fabric(raw)
    for plane in fabric.planes:
        uplinks = uplink_bps(fabric, plane)
        if len(uplinks) > 1:
            total = sum(sum(spines.values()) for spines in uplinks.values())
            assert 0 < 2 * bisection_bps(fabric, plane) <= total


@many_fabrics
@given(mappings())
def test_files_lose_nothing(raw: dict[str, Any]) -> None:
    """A fabric that went through JSON is equal, ports and all."""
    fabric = build_fabric(raw)
    again = fabric_from_dict(json.loads(json.dumps(fabric_to_dict(fabric))))
    assert again == fabric
    assert again.ports == fabric.ports


@many_fabrics
@given(mappings())
def test_a_rule_for_switches_reaches_every_switch_port(raw: dict[str, Any]) -> None:
    """Exactly the ports of switches get it."""
    fabric = build_fabric(raw)
    rule = EcnRule(3, 100, 200, 0.5)
    wanted = {port.index for node in fabric.switches for port in fabric.ports_of[node.name]}
    assert resolve([rule], fabric) == {index: {3: rule} for index in wanted}


@pytest.mark.parametrize(("leaves", "spines", "hosts"), [(8, 4, 64), (254, 2, 1), (2, 254, 254)])
def test_large_fabrics(leaves: int, spines: int, hosts: int) -> None:
    """The limits of the address plan can be reached, and the graph is still right."""
    raw = {"kind": "leaf-spine", "leaves": leaves, "spines": spines, "hosts_per_leaf": hosts}
    fabric = build_fabric(raw)
    assert len(fabric.hosts) == leaves * hosts
    assert len(fabric.links) == leaves * (hosts + spines)
    assert max(len(port.name) for port in fabric.ports) <= 15
    last = fabric.hosts[-1].name
    assert len(Paths(fabric).between("h1", last)) == spines
    assert fabric_from_dict(fabric_to_dict(fabric)) == fabric
