"""Bisection bandwidth: what the links between two halves of the hosts carry, in the worst split.

A split gives each leaf, with its hosts, to one of two sides, as evenly in hosts as the leaves
allow. A spine belongs to the side that makes the cut smaller, so a split costs the sum over the
spines of the smaller of its capacities to the two sides. Leaves of equal links are
interchangeable, which keeps the search small: it is exact for every fabric of up to 14 different
leaves and for far larger ones with equal leaves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import product
from math import prod

from topologies.model import Fabric
from topologies.paths import uplink_bps

MAX_SPLITS = 2**14
"""Above so many splits (only with many unequal leaves) the halves in index order are taken."""

Kind = tuple[int, tuple[int, ...]]
"""What makes leaves interchangeable: number of hosts, capacity to each spine in bit/s."""


def bisection_bps(fabric: Fabric, plane: int = 1) -> int:
    """Bisection bandwidth of a plane in one direction, bit/s.

    For equal leaves and an even number of them it is half the sum of all uplinks. A plane of a
    single leaf is cut at the slower half of its host links. Beyond `MAX_SPLITS` the result is
    that of the split in index order, an upper bound.
    """
    leaves = _kinds(fabric, plane)
    if len(leaves) < 2:
        rates = sorted(
            link.rate_bps
            for link in fabric.links
            if link.plane == plane and not fabric.by_name[link.a].is_switch
        )
        return sum(rates[: len(rates) // 2])
    totals = [sum(column) for column in zip(*(uplinks for _, uplinks in leaves), strict=True)]
    hosts = sum(count for count, _ in leaves)
    costs = (_cost(split, totals, hosts) for split in _splits(leaves))
    return min(costs)[1]


def _kinds(fabric: Fabric, plane: int) -> list[Kind]:
    """Number of hosts and capacity to each spine, for each leaf in index order."""
    seats = Counter(leaf for (_, where), (leaf, _) in fabric.attachment.items() if where == plane)
    spines = sorted({spine for uplinks in uplink_bps(fabric, plane).values() for spine in uplinks})
    return [
        (seats[fabric.by_name[leaf].index], tuple(uplinks.get(spine, 0) for spine in spines))
        for leaf, uplinks in uplink_bps(fabric, plane).items()
    ]


def _splits(leaves: list[Kind]) -> Iterator[Counter[Kind]]:
    """The leaves of one side, as a number of each kind."""
    kinds = Counter(leaves)
    if prod(count + 1 for count in kinds.values()) > MAX_SPLITS:
        yield Counter(leaves[: len(leaves) // 2])
        return
    for chosen in product(*(range(count + 1) for count in kinds.values())):
        if 0 < sum(chosen) < len(leaves):
            yield Counter(dict(zip(kinds, chosen, strict=True)))


def _cost(split: Counter[Kind], totals: list[int], hosts: int) -> tuple[int, int]:
    """(how uneven in hosts, capacity of the cut in bit/s)."""
    side = sum(kind[0] * count for kind, count in split.items())
    capacities = [0] * len(totals)
    for (_, uplinks), count in split.items():
        for spine, rate_bps in enumerate(uplinks):
            capacities[spine] += rate_bps * count
    cut = sum(min(c, total - c) for c, total in zip(capacities, totals, strict=True))
    return abs(hosts - 2 * side), cut
