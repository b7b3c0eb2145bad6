"""Checks of finished fabrics: each broken rule is found, named and placed."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from topologies.checks import problems, verify
from topologies.errors import SpecError
from topologies.model import Fabric, Link, Node, Role
from topologies.registry import build_fabric


@pytest.fixture
def fabric() -> Fabric:
    """Two leaves, two spines, two hosts per leaf: 4 host links, 4 fabric links."""
    return build_fabric({"kind": "leaf-spine", "leaves": 2, "spines": 2, "hosts_per_leaf": 2})


def with_link(fabric: Fabric, position: int, **changes: object) -> Fabric:
    """The fabric with one link changed."""
    links = list(fabric.links)
    links[position] = replace(links[position], **changes)  # type: ignore[arg-type]
    return replace(fabric, links=tuple(links))


def with_node(fabric: Fabric, position: int, **changes: object) -> Fabric:
    """The fabric with one node changed."""
    nodes = list(fabric.nodes)
    nodes[position] = replace(nodes[position], **changes)  # type: ignore[arg-type]
    return replace(fabric, nodes=tuple(nodes))


def renamed(fabric: Fabric, old: str, new: str) -> Fabric:
    """The fabric with a node renamed everywhere."""
    position = [node.name for node in fabric.nodes].index(old)
    links = tuple(
        replace(link, a=new if link.a == old else link.a, b=new if link.b == old else link.b)
        for link in fabric.links
    )
    return replace(with_node(fabric, position, name=new), links=links)


def plus(fabric: Fabric, *links: Link) -> Fabric:
    """The fabric with more links."""
    return replace(fabric, links=(*fabric.links, *links))


def seated(fabric: Fabric, host: str, leaf: int, number: int) -> Fabric:
    """The fabric with a host on another seat, in its attachment only."""
    return replace(fabric, attachment={**fabric.attachment, (host, 1): (leaf, number)})


def without_seat(fabric: Fabric, host: str) -> Fabric:
    """The fabric with a host that has a link and no seat."""
    rest = {key: seat for key, seat in fabric.attachment.items() if key[0] != host}
    return replace(fabric, attachment=rest)


def test_a_good_fabric_has_no_problem(fabric: Fabric) -> None:
    """What the builders make passes."""
    assert problems(fabric) == []
    verify(fabric)


BROKEN: dict[str, tuple[Callable[[Fabric], Fabric], str]] = {
    "same name twice": (lambda f: with_node(f, 1, name="h1"), "'h1' names several nodes"),
    "same number twice": (
        lambda f: with_node(f, 5, index=1), "leaf.*not the only one with number 1"),
    "no host": (lambda f: replace(f, nodes=f.switches, links=()), "has no host"),
    "wrong id": (lambda f: with_link(f, 2, id=7), r"fabric\.links\[2\]: 7 must have the id 2"),
    "unknown node": (
        lambda f: with_link(f, 0, b="leaf9"), r"fabric\.links\[0\]: 'leaf9' is not a node"),
    "two hosts": (
        lambda f: with_link(f, 0, b="h2"), r"\['h1', 'h2'\] links two hosts without a switch"),
    "self loop": (lambda f: with_link(f, 0, b="h1"), "links a node to itself"),
    "same lane twice": (
        lambda f: plus(f, Link(8, "leaf1", "spine1", 10**9, 0)), "several links in lane 1"),
    "rate 0": (
        lambda f: with_link(f, 4, rate_bps=0), r"links\[4\] \(leaf1 to spine1\): 0 is not a rate"),
    "negative delay": (lambda f: with_link(f, 4, delay_ns=-1), "-1 is a negative delay"),
    "mtu low": (lambda f: replace(f, mtu_bytes=67), r"fabric\.mtu: 67 must be within 68 and 65535"),
    "mtu high": (lambda f: replace(f, mtu_bytes=65536), r"fabric\.mtu: 65536 must be within"),
    "buffer": (lambda f: replace(f, buffer_bytes=4217), "4217 is smaller than one frame of 4218"),
    "characters": (lambda f: renamed(f, "leaf1", "leaf/1"), "'leaf/1' must be made of letters"),
    "long name": (
        lambda f: renamed(f, "leaf1", "supervisor1"),
        "'supervisor1-eth1' is an interface name of 16 characters.*name of at most 10 characters"),
    "index": (lambda f: with_node(f, 4, index=255), "'leaf1' has index 255 in plane 1"),
    "seat number": (lambda f: seated(f, "h1", 1, 255), r"'h1' would get 10\.1\.1\.255"),
    "same address": (lambda f: seated(f, "h2", 1, 1), r"'h2' has the address 10\.1\.1\.1 of h1"),
    "other leaf": (lambda f: seated(f, "h1", 2, 3), "'h1' is not linked to leaf 2 of plane 1"),
    "no seat": (
        lambda f: without_seat(f, "h1"), "'h1' is linked to leaf 1 of plane 1 without a seat"),
    "two host links": (
        lambda f: plus(f, Link(8, "h1", "leaf2", 10**9, 0)),
        "'h1' is linked to leaf 2.*without a seat"),
    "two lanes": (
        lambda f: plus(f, Link(8, "h1", "leaf1", 10**9, 0, lane=2)), "'h1' has 2 links in plane 1"),
    "lonely node": (
        lambda f: replace(f, nodes=(*f.nodes, Node("spine3", Role.SPINE, 1, 3))),
        "'spine3' has no link"),
    "split": (
        lambda f: replace(f, links=f.links[:4]),
        r"\['h3', 'h4', 'leaf2'\] cannot be reached from leaf1"),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_each_broken_rule_is_found(fabric: Fabric, name: str) -> None:
    """The broken rule is among the problems, and verify raises the first of them."""
    change, message = BROKEN[name]
    broken = change(fabric)
    found = problems(broken)
    assert any(re.search(message, str(error)) for error in found), found
    with pytest.raises(SpecError) as caught:
        verify(broken)
    assert str(caught.value) == str(found[0])


def test_all_problems_are_listed(fabric: Fabric) -> None:
    """A user sees every mistake at once, not one per attempt."""
    broken = replace(with_link(fabric, 4, rate_bps=0), mtu_bytes=1, buffer_bytes=1)
    assert [error.value for error in problems(broken, "lab")] == [0, 1, 1]
    assert {error.path.split(".")[0] for error in problems(broken, "lab")} == {"lab"}


def test_a_path_through_a_host_is_no_connection(fabric: Fabric) -> None:
    """Hosts do not forward, so two leaves that only share a host are apart."""
    links = (*fabric.links[:4], Link(4, "h1", "leaf2", 10**9, 0))
    broken = replace(fabric, links=links, nodes=fabric.nodes[:6])
    lost = [error.value for error in problems(broken) if "cannot be reached" in str(error)]
    assert lost == [["h3", "h4", "leaf2"]]


def test_the_advice_for_long_names_is_followed_by_success() -> None:
    """Exactly as many links as the error allows pass, one more does not."""

    def plane(leaves: int) -> dict[str, object]:
        lanes = {"parallel": 9}
        return {"leaves": leaves, "spines": 10, "hosts_per_leaf": 1, "fabric_link": lanes}

    with pytest.raises(SpecError, match="give p2spine10 at most 99 links"):
        build_fabric({"kind": "front-back", "front": plane(12), "back": plane(12)})
    fabric = build_fabric({"kind": "front-back", "front": plane(11), "back": plane(11)})
    assert len(fabric.ports_of["p2spine10"]) == 99
