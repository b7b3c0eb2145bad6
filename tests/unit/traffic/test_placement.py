"""Which hosts a workload gets."""

from __future__ import annotations

import random

import pytest

from tests.fakes.ideal_network import leaf_spine
from topologies.errors import SpecError, UnknownNameError
from topologies.reading import Reader
from traffic.workloads.placement import HostSet, Placement, as_host_set, place, read_placement

FABRIC = leaf_spine(leaves=3, hosts_per_leaf=[3, 1, 2])


def placed(order: str, *wanted: HostSet, offset: int = 0, seed: int = 1) -> list[tuple[str, ...]]:
    """The hosts of each wanted set in a fabric of leaves with 3, 1 and 2 hosts."""
    return place(FABRIC, 1, Placement(order, offset), wanted, random.Random(seed))


def test_contiguous_fills_leaf_after_leaf() -> None:
    """h1, h2 and so on, in the order of their numbers."""
    assert placed("contiguous", HostSet("ranks", 4)) == [("h1", "h2", "h3", "h4")]


def test_strided_takes_leaves_in_turn() -> None:
    """First the first host of each leaf, then the second where there is one."""
    assert placed("strided", HostSet("ranks", 6)) == [("h1", "h4", "h5", "h2", "h6", "h3")]


def test_random_is_seeded() -> None:
    """Equal seeds give equal hosts, other seeds other ones; every host occurs once."""
    whole = HostSet("ranks", 6)
    assert placed("random", whole, seed=3) == placed("random", whole, seed=3)
    orders = {placed("random", whole, seed=seed)[0] for seed in range(5)}
    assert len(orders) > 1
    assert all(sorted(order) == [f"h{n}" for n in range(1, 7)] for order in orders)


def test_sets_follow_each_other_and_the_offset_skips() -> None:
    """Two numbers take disjoint hosts; the offset leaves hosts out at the beginning."""
    sets = placed("contiguous", HostSet("clients", 2), HostSet("servers", 2), offset=1)
    assert sets == [("h2", "h3"), ("h4", "h5")]


def test_named_hosts_are_taken_first() -> None:
    """A number does not take hosts that another set names, and None takes what is left."""
    sets = placed("contiguous", HostSet("clients"), HostSet("servers", 2, ("h1", "h3")))
    assert sets == [("h2", "h4", "h5", "h6"), ("h1", "h3")]


def test_only_hosts_of_the_plane() -> None:
    """A plane's placement knows the hosts of that plane only."""
    with pytest.raises(SpecError, match="of the 0 in plane 2"):
        place(FABRIC, 2, Placement(), [HostSet("ranks", 1)], random.Random(1))


def test_more_ranks_than_hosts() -> None:
    """The error names what was asked for and what there is."""
    with pytest.raises(SpecError, match=r"workloads\[0\].ranks: 8 .* the 5 that are free of the 6"):
        placed("contiguous", HostSet("workloads[0].ranks", 8), offset=1)


def test_no_hosts_left() -> None:
    """A set of all hosts that are left must have at least one."""
    with pytest.raises(SpecError, match="hosts: 'all' asks for more hosts than the 0"):
        placed("contiguous", HostSet("clients", 6), HostSet("hosts"))


@pytest.mark.parametrize(
    ("names", "message"),
    [(("h1", "h9"), "'h9' is not a known host of plane 1"), (("leaf1",), "'leaf1' is not a known")],
)
def test_unknown_hosts(names: tuple[str, ...], message: str) -> None:
    """A host that the plane does not have, or a switch, is refused."""
    with pytest.raises(UnknownNameError, match=message):
        placed("contiguous", HostSet("hosts", len(names), names))


def test_a_host_belongs_to_one_set() -> None:
    """The same host as client and server is refused."""
    with pytest.raises(SpecError, match="servers: 'h1' is already in another list"):
        placed("contiguous", HostSet("clients", 1, ("h1",)), HostSet("servers", 1, ("h1",)))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (0, "must be at least 1"),
        ("four", "must be a whole number"),
        (["h1", "h1"], r"hosts\[1\]: 'h1' is in the list twice"),
        ([], "must have at least 1"),
    ],
)
def test_wrong_host_sets(value: object, message: str) -> None:
    """Neither a number above 0 nor a list of distinct names."""
    with pytest.raises(SpecError, match=message):
        as_host_set(value, "hosts")


@pytest.mark.parametrize("key", ["placement", "offset"])
def test_a_placement_of_named_hosts_is_refused(key: str) -> None:
    """Keys that would have no effect are errors, not ignored."""
    raw = {"placement": "strided"} if key == "placement" else {"offset": 1}
    with pytest.raises(SpecError, match=f"{key}: .* has no effect: hosts names the hosts"):
        read_placement(Reader(raw), [HostSet("hosts", 1, ("h1",))])


def test_unknown_order() -> None:
    """The error lists the orders."""
    with pytest.raises(UnknownNameError, match="contiguous, random, strided"):
        read_placement(Reader({"placement": "stride"}), [HostSet("hosts", 1)])
