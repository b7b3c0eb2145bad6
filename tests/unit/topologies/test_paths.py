"""Equal-cost paths, delays, oversubscription, bisection bandwidth."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest

from topologies import bisection
from topologies.bisection import bisection_bps
from topologies.model import Fabric
from topologies.paths import (
    Paths,
    links_of,
    nodes_of,
    oversubscription,
    path_delay_ns,
    path_rate_bps,
    uplink_bps,
)
from topologies.registry import build_fabric

GBPS = 10**9


def leaf_spine(leaves: int = 4, spines: int = 2, hosts: Any = 4, **more: Any) -> Fabric:
    """A leaf-spine with defaults."""
    shape = {"leaves": leaves, "spines": spines, "hosts_per_leaf": hosts}
    return build_fabric({"kind": "leaf-spine"} | shape | more)


def slow(leaf: str, spine: str, rate: str) -> dict[str, Any]:
    """An entry of ``links:``."""
    return {"between": [leaf, spine], "rate": rate}


def test_paths_below_one_leaf() -> None:
    """Two hosts of a leaf have one path of two links."""
    fabric = leaf_spine()
    (path,) = Paths(fabric).between("h1", "h2")
    assert [fabric.port(index).name for index in path] == ["h1-eth1", "leaf1-eth2"]
    assert nodes_of(fabric, path) == ("h1", "leaf1", "h2")
    assert Paths(fabric).hops("h1", "h2") == 2


def test_paths_across_spines() -> None:
    """Hosts of different leaves have one path per spine, in the order of the leaf's ports."""
    fabric = leaf_spine()
    paths = Paths(fabric).between("h1", "h16")
    assert [nodes_of(fabric, path) for path in paths] == [
        ("h1", "leaf1", spine, "leaf4", "h16") for spine in ("spine1", "spine2")
    ]
    assert Paths(fabric).hops("h1", "h16") == 4


def test_parallel_links_multiply_paths() -> None:
    """Every lane up combines with every lane down."""
    fabric = leaf_spine(fabric_link={"parallel": 3})
    paths = Paths(fabric).between("h1", "h5")
    assert len(set(paths)) == len(paths) == 2 * 3 * 3


def test_links_of_a_path_are_connected() -> None:
    """The links of a path are those of its ports, and each starts where the last one ended."""
    fabric = leaf_spine()
    for path in Paths(fabric).between("h3", "h9"):
        names = nodes_of(fabric, path)
        for link, here, there in zip(links_of(fabric, path), names, names[1:], strict=False):
            assert {fabric.links[link].a, fabric.links[link].b} == {here, there}


def test_a_host_is_no_distance_from_itself() -> None:
    """One empty path, 0 hops, 0 delay."""
    paths = Paths(leaf_spine())
    assert paths.between("h1", "h1") == ((),)
    assert paths.hops("h1", "h1") == 0
    assert paths.delay_ns("h1", "h1") == 0
    assert nodes_of(paths.fabric, ()) == ()


def test_hosts_do_not_forward_between_planes_or_leaves() -> None:
    """Paths stay in their plane, although the hosts are in both."""
    shape = {"leaves": 2, "spines": 1, "hosts_per_leaf": 2}
    fabric = build_fabric({"kind": "front-back", "front": shape, "back": shape | {"spines": 3}})
    paths = Paths(fabric)
    assert len(paths.between("h1", "h3", plane=1)) == 1
    assert len(paths.between("h1", "h3", plane=2)) == 3
    for path in paths.between("h1", "h3", plane=2):
        assert {fabric.links[link].plane for link in links_of(fabric, path)} == {2}


@pytest.mark.parametrize(
    ("src", "dst", "plane"), [("h1", "h2", 2), ("h99", "h1", 1), ("h1", "leaf1", 1)]
)
def test_only_hosts_of_a_plane_have_paths(src: str, dst: str, plane: int) -> None:
    """A host that is not in the plane, or no host at all, is a KeyError."""
    with pytest.raises(KeyError, match="is not in plane"):
        Paths(leaf_spine()).between(src, dst, plane)


def test_delay_is_that_of_the_quickest_path() -> None:
    """Propagation delays add up; of equal-cost paths the shortest in time counts."""
    fabric = leaf_spine(
        host_link={"delay": "100 ns"},
        fabric_link={"delay": "10 us"},
        links=[{"between": ["leaf1", "spine2"], "delay": "1 us"}],
    )
    paths = Paths(fabric)
    assert paths.delay_ns("h1", "h2") == 200
    assert paths.delay_ns("h1", "h5") == 100 + 1000 + 10_000 + 100
    assert paths.delay_ns("h5", "h9") == 20_200
    assert sorted(path_delay_ns(fabric, p) for p in paths.between("h1", "h5")) == [11_200, 20_200]


def test_rate_of_a_path_is_its_slowest_link() -> None:
    """A slow lane shows in the paths through it only."""
    fabric = leaf_spine(links=[slow("leaf2", "spine1", "40 Gbit/s")])
    rates = [path_rate_bps(fabric, path) for path in Paths(fabric).between("h1", "h5")]
    assert rates == [40 * GBPS, 100 * GBPS]


@pytest.mark.parametrize(("spines", "hosts", "ratio"), [(4, 4, 1.0), (2, 4, 2.0), (4, 2, 0.5)])
def test_oversubscription(spines: int, hosts: int, ratio: float) -> None:
    """Host bandwidth over uplink bandwidth, leaf by leaf."""
    fabric = leaf_spine(spines=spines, hosts=hosts)
    assert set(oversubscription(fabric).items()) == {(f"leaf{i}", ratio) for i in (1, 2, 3, 4)}


def test_oversubscription_of_unequal_leaves() -> None:
    """Hosts, lanes and slow links count as they are; a leaf without uplinks has no ratio."""
    fabric = leaf_spine(
        leaves=2,
        hosts=[1, 6],
        fabric_link={"parallel": 2},
        links=[slow("leaf1", "spine1", "25 Gbit/s")],
    )
    assert oversubscription(fabric) == {"leaf1": 100 / 250, "leaf2": 600 / 400}
    assert uplink_bps(fabric)["leaf1"] == {"spine1": 50 * GBPS, "spine2": 200 * GBPS}
    assert oversubscription(leaf_spine(leaves=1, spines=0)) == {}


@pytest.mark.parametrize(
    ("leaves", "spines", "lanes"), [(2, 1, 1), (4, 2, 1), (8, 4, 2), (254, 3, 1)]
)
def test_bisection_of_equal_leaves(leaves: int, spines: int, lanes: int) -> None:
    """Half of the leaves' uplinks, also for the largest fabric."""
    fabric = leaf_spine(leaves, spines, 1, fabric_link={"parallel": lanes})
    assert bisection_bps(fabric) == leaves // 2 * spines * lanes * 100 * GBPS


def test_bisection_of_one_switch() -> None:
    """A single leaf is cut at half of its host links, the slower ones."""
    assert bisection_bps(leaf_spine(1, 0, 8)) == 4 * 100 * GBPS
    one_slow = leaf_spine(1, 0, 2, links=[slow("h1", "leaf1", "10 Gbit/s")])
    assert bisection_bps(one_slow) == 10 * GBPS


def worst_split_bps(fabric: Fabric) -> int:
    """The definition, by brute force: all halves of the leaves, all sides for the spines."""
    uplinks = uplink_bps(fabric)
    spines = sorted(next(iter(uplinks.values())))
    best = None
    for side in combinations(uplinks, len(uplinks) // 2):
        cut = 0
        for spine in spines:
            inside = sum(uplinks[leaf][spine] for leaf in side)
            cut += min(inside, sum(u[spine] for u in uplinks.values()) - inside)
        best = cut if best is None else min(best, cut)
    assert best is not None
    return best


def test_bisection_of_unequal_leaves_is_the_worst_split() -> None:
    """Slow links are put where they hurt: the result is that of trying every half."""
    links = [
        slow("leaf1", "spine1", "10 Gbit/s"),
        slow("leaf2", "spine2", "20 Gbit/s"),
        slow("leaf4", "spine1", "40 Gbit/s"),
        slow("leaf6", "spine2", "5 Gbit/s"),
    ]
    fabric = leaf_spine(6, 2, 2, links=links)
    assert bisection_bps(fabric) == worst_split_bps(fabric)
    in_order = 3 * 200 * GBPS - 170 * GBPS
    assert bisection_bps(fabric) < in_order


def test_bisection_with_too_many_different_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the limit of splits the halves in index order are taken, which bounds it above."""
    links = [slow(f"leaf{i}", "spine1", f"{i} Gbit/s") for i in range(1, 7)]
    fabric = leaf_spine(6, 1, 1, links=links)
    assert bisection_bps(fabric) == worst_split_bps(fabric)
    monkeypatch.setattr(bisection, "MAX_SPLITS", 8)
    assert bisection_bps(fabric) == (1 + 2 + 3) * GBPS
