"""Kinds of fabrics: registry, leaf-spine, front-back, template."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

from topologies import registry
from topologies.addressing import dpid, host_ip
from topologies.builders._template import KIND as TEMPLATE
from topologies.builders._template import build_template
from topologies.errors import SpecError, UnknownNameError
from topologies.model import Fabric, Role
from topologies.paths import oversubscription
from topologies.registry import build_fabric


def leaf_spine(**changes: Any) -> Fabric:
    """A 4 x 2 x 4 leaf-spine with changed keys; None takes a key out."""
    raw = {"kind": "leaf-spine", "leaves": 4, "spines": 2, "hosts_per_leaf": 4} | changes
    return build_fabric({key: value for key, value in raw.items() if value is not None})


def front_back(front: dict[str, Any], back: dict[str, Any], **top: Any) -> Fabric:
    """Two planes of 2 x 1 x 2 with changed keys."""
    shape = {"leaves": 2, "spines": 1, "hosts_per_leaf": 2}
    return build_fabric({"kind": "front-back", "front": shape | front, "back": shape | back} | top)


def test_the_registry_knows_the_builders() -> None:
    """Both kinds are there without any import by the user, and the template is not."""
    assert {"leaf-spine", "front-back"} <= set(registry.kinds())
    assert TEMPLATE not in registry.kinds()


@pytest.mark.parametrize("kind", ["leaf-spin", 3, None, ["leaf-spine"]])
def test_an_unknown_kind_lists_the_known(kind: object) -> None:
    """The error names the key and every kind there is."""
    with pytest.raises(UnknownNameError, match=r"^fabric\.kind: .*front-back, leaf-spine"):
        build_fabric({"kind": kind})


def test_a_name_is_registered_once() -> None:
    """Registering a name twice is a programming error, whichever builder it is."""
    registry.kinds()
    with pytest.raises(ValueError, match=r"leaf-spine.*twice"):
        registry.register("leaf-spine")(build_template)


def test_the_template_is_a_working_builder() -> None:
    """Registered under its name, the template builds a verified fabric."""
    registry.register(TEMPLATE)(build_template)
    try:
        fabric = build_fabric({"kind": TEMPLATE, "hosts": 3, "rate": "10 Gbit/s"})
    finally:
        registry.unregister(TEMPLATE)
    assert [node.name for node in fabric.nodes] == ["h1", "h2", "h3", "leaf1"]
    assert {link.rate_bps for link in fabric.links} == {10**10}


def test_importing_a_builder_alone_works() -> None:
    """A builder module can be imported first, without the registry, in any order."""
    module = importlib.import_module("topologies.builders.leaf_spine")
    assert registry.builder("leaf-spine") is module.build_leaf_spine


def test_defaults_of_leaf_spine() -> None:
    """100 Gbit/s everywhere, 500 ns to hosts, 1 us between switches, 16 MB, MTU 4200."""
    fabric = leaf_spine()
    hosts, switches = fabric.links[:16], fabric.links[16:]
    assert {link.rate_bps for link in fabric.links} == {100 * 10**9}
    assert {link.delay_ns for link in hosts} == {500}
    assert {link.delay_ns for link in switches} == {1000}
    assert (fabric.buffer_bytes, fabric.mtu_bytes) == (16_000_000, 4200)


def test_shape_of_leaf_spine() -> None:
    """Hosts, leaves, spines in order; every leaf has one link to every spine."""
    fabric = leaf_spine()
    assert [n.name for n in fabric.switches] == [f"leaf{i}" for i in (1, 2, 3, 4)] + [
        "spine1",
        "spine2",
    ]
    assert len(fabric.hosts) == 16
    assert host_ip(fabric, "h5") == "10.1.2.1"
    between = {(link.a, link.b) for link in fabric.links[16:]}
    assert between == {(f"leaf{i}", f"spine{j}") for i in range(1, 5) for j in (1, 2)}
    ports = [port.name for port in fabric.ports_of["leaf2"]]
    assert ports == [f"leaf2-eth{i}" for i in range(1, 7)]


def test_values_of_the_file_reach_the_fabric() -> None:
    """Each key ends up where it belongs."""
    fabric = leaf_spine(
        host_link={"rate": "25 Gbit/s", "delay": "0"},
        fabric_link={"rate": "50 Gbit/s", "delay": "2 us", "parallel": 3},
        buffer="1 MB",
        mtu="1500 B",
    )
    assert {(link.rate_bps, link.delay_ns) for link in fabric.links[:16]} == {(25 * 10**9, 0)}
    assert {(link.rate_bps, link.delay_ns) for link in fabric.links[16:]} == {(50 * 10**9, 2000)}
    assert [link.lane for link in fabric.links[16:19]] == [1, 2, 3]
    assert (fabric.buffer_bytes, fabric.mtu_bytes) == (1_000_000, 1500)


def test_hosts_per_leaf_may_differ() -> None:
    """A list gives each leaf its number of hosts, and hosts are counted through."""
    fabric = leaf_spine(leaves=3, hosts_per_leaf=[1, 3, 2])
    leaves = [fabric.attachment[host.name, 1][0] for host in fabric.hosts]
    assert leaves == [1, 2, 2, 2, 3, 3]


def test_a_single_switch() -> None:
    """One leaf without a spine is a fabric."""
    fabric = leaf_spine(leaves=1, spines=0)
    assert [node.name for node in fabric.switches] == ["leaf1"]


@pytest.mark.parametrize("ratio", [1, 2, 1.5, "3:1", "4:3", 0.5])
def test_oversubscription_sets_the_uplinks(ratio: object) -> None:
    """The rate of the uplinks follows, on every leaf, also with unequal hosts and lanes."""
    fabric = leaf_spine(
        hosts_per_leaf=[1, 2, 3, 4], oversubscription=ratio, fabric_link={"parallel": 2}
    )
    wanted = {"3:1": 3, "4:3": 4 / 3}.get(str(ratio), ratio)
    for value in oversubscription(fabric).values():
        assert value == pytest.approx(wanted, rel=1e-9)


def test_unequal_links() -> None:
    """An entry changes one lane, all lanes or a host link, and nothing else."""
    fabric = leaf_spine(
        fabric_link={"parallel": 2},
        links=[
            {"between": ["leaf1", "spine2"], "lane": 2, "rate": "40 Gbit/s"},
            {"between": ["spine1", "leaf3"], "rate": "10 Gbit/s", "delay": "9 us"},
            {"between": ["h2", "leaf1"], "delay": "7 us"},
        ],
    )
    plain = leaf_spine(fabric_link={"parallel": 2})
    changed = {
        (link.a, link.b, link.lane, link.rate_bps, link.delay_ns)
        for link, before in zip(fabric.links, plain.links, strict=True)
        if link != before
    }
    assert changed == {
        ("leaf1", "spine2", 2, 40 * 10**9, 1000),
        ("leaf3", "spine1", 1, 10 * 10**9, 9000),
        ("leaf3", "spine1", 2, 10 * 10**9, 9000),
        ("h2", "leaf1", 1, 100 * 10**9, 7000),
    }


FAST = {"rate": "1 Gbit/s"}


def unequal(*between: str, **more: object) -> dict[str, Any]:
    """A ``links:`` list of one entry that changes a rate."""
    return {"links": [{"between": list(between)} | FAST | more]}


BAD_LEAF_SPINE: list[tuple[dict[str, Any], str]] = [
    ({"leaves": 0}, r"fabric\.leaves: 0 must be at least 1"),
    ({"leaves": 255}, r"fabric\.leaves: 255 must be at most 254"),
    ({"leaves": True}, r"fabric\.leaves: True must be a whole number"),
    ({"leaves": None}, r"fabric: 'leaves' is missing"),
    ({"spines": 0}, r"fabric\.spines: 0 would leave the 4 leaves unconnected"),
    ({"spines": 0, "leaves": 1, "oversubscription": 2}, r"oversubscription: 2 needs links"),
    ({"spines": 0, "leaves": 1, "fabric_link": FAST}, r"fabric_link: .* needs links to spines"),
    ({"hosts_per_leaf": 255}, r"hosts_per_leaf: 255 must be at most 254"),
    ({"hosts_per_leaf": [1, 2, 3]}, r"has 3 entries for 4 leaves"),
    ({"hosts_per_leaf": [1, 2, 3, 0]}, r"hosts_per_leaf\[3\]: 0 must be at least 1"),
    ({"spine": 2}, r"fabric\.spine: 'spine' is not a known key; did you mean 'spines'"),
    ({"host_link": {"speed": 1}}, r"fabric\.host_link\.speed: .*known: delay, rate"),
    ({"host_link": {"rate": 0}}, r"fabric\.host_link\.rate: 0 must be above 0"),
    ({"host_link": {"rate": "1 parsec"}}, r"unknown unit 'parsec'"),
    ({"fabric_link": {"parallel": 65}}, r"fabric\.fabric_link\.parallel: 65 must be at most 64"),
    ({"fabric_link": FAST, "oversubscription": 2}, r"excludes fabric\.fabric_link\.rate"),
    ({"oversubscription": 121}, r"oversubscription: 121 must be at most 60; YAML reads"),
    ({"oversubscription": 0}, r"oversubscription: 0 must be above 0"),
    ({"oversubscription": "two"}, r"fabric\.oversubscription: 'two'"),
    ({"mtu": 67}, r"fabric\.mtu: 67 must be within 68 and 65535"),
    ({"mtu": "64 KiB"}, r"fabric\.mtu: 65536 must be within"),
    ({"buffer": "4 KB"}, r"fabric\.buffer: 4000 is smaller than one frame of 4218"),
    (unequal("leaf1", "spine3"), r"links\[0\]\.between: 'spine3' is not"),
    (unequal("h1", "leaf2"), r"between: \['h1', 'leaf2'\] are not linked"),
    (unequal("leaf1"), r"links\[0\]\.between: .* must name two nodes"),
    ({"links": [{"between": ["leaf1", "spine1"]}]}, r"links\[0\]: .* changes nothing"),
    (unequal("leaf1", "spine1", lane=2), r"lane: 2 must be at most 1"),
    ({"links": unequal("leaf1", "spine1")["links"] * 2}, r"links\[1\]: .*an earlier entry"),
    (unequal("leaf1", "spine1", loss=1), r"links\[0\]\.loss: 'loss' is not"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "message"), BAD_LEAF_SPINE, ids=lambda v: str(v)[:40])
def test_bad_leaf_spines(changes: dict[str, Any], message: str) -> None:
    """Each mistake is one error with its key path."""
    with pytest.raises(SpecError, match=message):
        leaf_spine(**changes)


def test_front_back_has_the_same_hosts_in_both_planes() -> None:
    """Each host has an interface and an address in both planes, seated as each plane says."""
    fabric = front_back({}, {"leaves": 4, "hosts_per_leaf": 1, "spines": 3})
    assert fabric.planes == (1, 2)
    assert len(fabric.hosts) == 4
    assert [host_ip(fabric, "h4", plane) for plane in (1, 2)] == ["10.1.2.2", "10.2.4.1"]
    for host in fabric.hosts:
        planes = [fabric.link_of(port).plane for port in fabric.ports_of[host.name]]
        assert planes == [1, 2]


def test_front_back_orders_nodes_and_links() -> None:
    """Hosts, leaves of both planes, spines of both; host links before fabric links."""
    fabric = front_back({}, {})
    roles = [node.role for node in fabric.nodes]
    assert roles == sorted(roles, key=[Role.HOST, Role.LEAF, Role.SPINE].index)
    assert [node.name for node in fabric.switches] == [
        "leaf1", "leaf2", "p2leaf1", "p2leaf2", "spine1", "p2spine1",
    ]  # fmt: skip
    at_hosts = [not fabric.by_name[link.a].is_switch for link in fabric.links]
    assert at_hosts == sorted(at_hosts, reverse=True)
    assert len({dpid(node) for node in fabric.switches}) == 6


def test_front_back_planes_are_separate() -> None:
    """Rates and unequal links of one section stay in that section."""
    fabric = front_back(
        {"host_link": {"rate": "100 Gbit/s"}},
        {
            "host_link": {"rate": "400 Gbit/s"},
            "links": [{"between": ["p2leaf1", "p2spine1"], "rate": "10 Gbit/s"}],
        },
    )
    rates = {(link.plane, link.a, link.b): link.rate_bps for link in fabric.links}
    assert rates[1, "h1", "leaf1"] == 100 * 10**9
    assert rates[2, "h1", "p2leaf1"] == 400 * 10**9
    assert rates[2, "p2leaf1", "p2spine1"] == 10 * 10**9
    assert rates[1, "leaf1", "spine1"] == rates[2, "p2leaf2", "p2spine1"] == 100 * 10**9


def test_front_back_shares_buffer_and_mtu() -> None:
    """They may stand at the top or in a section, and may not differ."""
    assert front_back({}, {}, mtu=9000).mtu_bytes == 9000
    assert front_back({"mtu": 1500}, {}, buffer="2 MB").mtu_bytes == 1500
    assert front_back({"mtu": 1500}, {"mtu": "1500 B"}).buffer_bytes == 16_000_000
    with pytest.raises(SpecError, match=r"fabric\.back\.mtu: 1500 differs from fabric\.mtu"):
        front_back({}, {"mtu": 1500}, mtu=9000)


BAD_FRONT_BACK: list[tuple[dict[str, Any], str]] = [
    ({"hosts_per_leaf": 3}, r"fabric\.back\.hosts_per_leaf: .*6 hosts in the back plane.*has 4"),
    ({"leaves": 0}, r"fabric\.back\.leaves: 0"),
    ({"kind": "leaf-spine"}, r"fabric\.back\.kind: 'kind' is not a known key"),
    (unequal("leaf1", "spine1"), r"fabric\.back\.links\[0\].*p2leaf1"),
    ({"spines": 10, "leaves": 4, "hosts_per_leaf": 1, "fabric_link": {"parallel": 64}},
     r"'p2spine10-eth100' is an interface name of 16 characters.*at most 99 links.*than 10 spines"),
]  # fmt: skip


@pytest.mark.parametrize(("back", "message"), BAD_FRONT_BACK, ids=lambda v: str(v)[:40])
def test_bad_front_backs(back: dict[str, Any], message: str) -> None:
    """Each mistake in a section is one error with the section in its path."""
    with pytest.raises(SpecError, match=message):
        front_back({}, back)


@pytest.mark.parametrize("raw", [{"kind": "front-back"}, {"kind": "front-back", "front": None}])
def test_front_back_needs_both_sections(raw: object) -> None:
    """A missing or empty section is an error."""
    with pytest.raises(SpecError, match="front"):
        build_fabric(raw)
