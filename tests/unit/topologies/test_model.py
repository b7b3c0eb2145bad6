"""Ports, addresses, datapath ids and errors: what everything else leans on."""

from __future__ import annotations

import dataclasses

import pytest

from topologies import addressing
from topologies.errors import SpecError, UnknownNameError
from topologies.model import Fabric, Link, Node, Role
from topologies.registry import build_fabric


@pytest.fixture
def fabric() -> Fabric:
    """Two leaves, two spines, two hosts per leaf, two lanes."""
    lanes = {"parallel": 2}
    shape = {"leaves": 2, "spines": 2, "hosts_per_leaf": 2, "fabric_link": lanes}
    return build_fabric({"kind": "leaf-spine"} | shape)


def test_ports_are_numbered_by_links(fabric: Fabric) -> None:
    """Link k has ports 2k+1 and 2k+2, which are each other's peers."""
    for link in fabric.links:
        a, b = fabric.port(2 * link.id + 1), fabric.port(2 * link.id + 2)
        assert (a.node, b.node, a.peer, b.peer) == (link.a, link.b, b.index, a.index)
        assert fabric.link_of(a) is fabric.link_of(b) is link


def test_port_names_lead_back_to_ports(fabric: Fabric) -> None:
    """A leaf's ports are its hosts', then its uplinks', numbered from 1; names are unique."""
    assert [port.name for port in fabric.ports_of["leaf2"]] == [
        f"leaf2-eth{i}" for i in range(1, 7)
    ]
    assert len({port.name for port in fabric.ports}) == len(fabric.ports)
    for port in fabric.ports:
        assert fabric.port_named(port.name) is port
    with pytest.raises(KeyError):
        fabric.port_named("leaf2-eth7")


def test_nodes_by_role(fabric: Fabric) -> None:
    """Hosts and switches together are all nodes; both lists are computed once."""
    assert fabric.hosts + fabric.switches == fabric.nodes
    assert {node.role for node in fabric.hosts} == {Role.HOST}
    assert fabric.hosts is fabric.hosts
    assert fabric.switches is fabric.switches


def test_cached_lists_do_not_change_equality(fabric: Fabric) -> None:
    """A fabric that has been asked for its ports equals one that has not."""
    assert fabric.ports
    assert dataclasses.replace(fabric) == fabric
    assert dataclasses.replace(fabric, mtu_bytes=1500) != fabric


def test_addresses_come_from_indices(fabric: Fabric) -> None:
    """Host 2 of leaf 2 is 10.1.2.2, its MAC spells the same, its leaf's prefix contains it."""
    assert addressing.host_ip(fabric, "h4") == "10.1.2.2"
    assert addressing.host_mac(fabric, "h4") == "02:00:0a:01:02:02"
    assert addressing.leaf_prefix(1, 2) == "10.1.2.0/24"
    with pytest.raises(KeyError):
        addressing.host_ip(fabric, "h4", plane=2)


def test_datapath_ids_lead_back_to_switches(fabric: Fabric) -> None:
    """leaf1 and spine1 have different, non-zero ids; hosts have none."""
    ids = {addressing.dpid(node): node for node in fabric.switches}
    assert len(ids) == len(fabric.switches)
    assert 0 not in ids
    for value, node in ids.items():
        assert addressing.switch_of_dpid(fabric, value) is node
    with pytest.raises(KeyError):
        addressing.switch_of_dpid(fabric, 1)
    with pytest.raises(KeyError):
        addressing.dpid(fabric.hosts[0])


def test_parts_are_immutable() -> None:
    """Nothing can change a node or a link after it is made."""
    with pytest.raises(dataclasses.FrozenInstanceError):
        Node("h1", Role.HOST, 0, 1).name = "h2"  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError):
        Link(0, "h1", "leaf1", 1, 0).rate_bps = 2  # type: ignore[misc]


def test_errors_name_file_place_value_rule_and_way_out() -> None:
    """The text has all parts, in an order that people read."""
    error = SpecError("rate", 0, "must be above 0", "write e.g. 1 Gbit/s")
    assert str(error) == "rate: 0 must be above 0; write e.g. 1 Gbit/s"
    inside = error.under("fabric.host_link", "lab.yaml")
    assert str(inside).startswith("lab.yaml: fabric.host_link.rate: 0 must")


def test_unknown_names_suggest_the_nearest() -> None:
    """The known names are listed, the nearest first; without a near one just listed."""
    near = UnknownNameError("policy", "policy", "ecpm", ["ecmp", "wcmp"])
    assert "did you mean 'ecmp'? known: ecmp, wcmp" in str(near)
    assert "did you mean" not in str(UnknownNameError("policy", "policy", "x", ["ecmp"]))
