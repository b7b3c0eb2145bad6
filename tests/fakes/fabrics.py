"""Fabrics for tests, by numbers."""

from __future__ import annotations

from topologies.model import Fabric, Link
from topologies.registry import build_fabric


def leaf_spine(
    leaves: int, spines: int, hosts_per_leaf: int | list[int] = 1, parallel: int = 1, **more: object
) -> Fabric:
    """A leaf-spine fabric; `more` are further keys of its description."""
    raw: dict[str, object] = {
        "kind": "leaf-spine",
        "leaves": leaves,
        "spines": spines,
        "hosts_per_leaf": hosts_per_leaf,
    }
    if spines:
        raw["fabric_link"] = {"rate": "100 Gbit/s", "delay": "1 us", "parallel": parallel}
    return build_fabric(raw | more)


def link_between(fabric: Fabric, a: str, b: str, lane: int = 1) -> Link:
    """The link of two nodes, in either order; KeyError when there is none."""
    for link in fabric.links:
        if {link.a, link.b} == {a, b} and link.lane == lane:
            return link
    raise KeyError((a, b, lane))
