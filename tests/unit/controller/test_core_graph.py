"""The ways towards each leaf, and what they can carry while links are down."""

from __future__ import annotations

from controller.core.graph import Graph
from tests.fakes.fabrics import leaf_spine, link_between
from topologies.registry import build_fabric

GBPS = 10**9


def test_ways_of_a_leaf_are_all_its_uplinks() -> None:
    """Every lane to every spine, by port number; hosts' ports are none."""
    graph = Graph(leaf_spine(3, 2, hosts_per_leaf=4, parallel=2))
    ways = graph.ways("leaf1", "leaf3")
    assert [hop.port for hop in ways] == [5, 6, 7, 8]
    assert {hop.neighbour for hop in ways} == {"spine1", "spine2"}
    assert [hop.name for hop in ways] == [f"leaf1-eth{n}" for n in (5, 6, 7, 8)]


def test_ways_of_a_spine_are_the_lanes_to_the_leaf() -> None:
    """A spine never goes through another leaf."""
    graph = Graph(leaf_spine(3, 2, parallel=3))
    assert {hop.neighbour for hop in graph.ways("spine2", "leaf2")} == {"leaf2"}
    assert len(graph.ways("spine2", "leaf2")) == 3


def test_a_leaf_has_no_way_to_itself() -> None:
    """Nor to what does not exist in its plane."""
    graph = Graph(leaf_spine(2, 2))
    assert graph.ways("leaf1", "leaf1") == ()
    assert graph.ways("leaf1", "leaf9") == ()


def test_planes_are_apart() -> None:
    """A switch has ways within its own plane only."""
    plane = {"leaves": 2, "spines": 1, "hosts_per_leaf": 1}
    graph = Graph(build_fabric({"kind": "front-back", "front": plane, "back": plane}))
    assert {leaf.plane for leaf in graph.leaves} == {1, 2}
    assert graph.ways("leaf1", "p2leaf2") == ()
    assert [hop.neighbour for hop in graph.ways("p2leaf1", "p2leaf2")] == ["p2spine1"]


def test_capacity_without_failures_is_the_rate() -> None:
    """Every way of a symmetric fabric carries its own rate."""
    capacities = Graph(leaf_spine(3, 2, parallel=2)).capacities("leaf3")
    assert set(capacities) == {"leaf1", "leaf2", "spine1", "spine2"}
    assert {c for ways in capacities.values() for c in ways.values()} == {100 * GBPS}


def test_capacity_of_a_way_whose_spine_lost_its_link() -> None:
    """A working uplink to a spine that cannot go on carries nothing to that leaf."""
    fabric = leaf_spine(3, 2)
    graph = Graph(fabric)
    down = {link_between(fabric, "spine1", "leaf3").id}
    assert list(graph.capacities("leaf3", down)["leaf1"].values()) == [0, 100 * GBPS]
    assert list(graph.capacities("leaf2", down)["leaf1"].values()) == [100 * GBPS] * 2
    assert list(graph.capacities("leaf2", down)["leaf3"].values()) == [0, 100 * GBPS]


def test_capacity_is_what_the_next_switch_can_pass_on() -> None:
    """Two lanes up and one lane left down: each lane up carries half of the lane down."""
    fabric = leaf_spine(2, 2, parallel=2)
    graph = Graph(fabric)
    down = {link_between(fabric, "spine1", "leaf2", lane=1).id}
    by_port = graph.capacities("leaf2", down)["leaf1"]
    by_spine = {hop.neighbour: by_port[hop.port] for hop in graph.ways("leaf1", "leaf2")}
    assert by_spine == {"spine1": 50 * GBPS, "spine2": 100 * GBPS}


def test_capacity_of_unequal_links() -> None:
    """The slower of up and down link counts."""
    links = [
        {"between": ["leaf1", "spine1"], "rate": "40 Gbit/s"},
        {"between": ["leaf2", "spine2"], "rate": "25 Gbit/s"},
    ]
    graph = Graph(leaf_spine(2, 2, links=links))
    assert list(graph.capacities("leaf2")["leaf1"].values()) == [40 * GBPS, 25 * GBPS]
