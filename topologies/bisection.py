"""Bisection bandwidth: what the links between two halves of the hosts carry, in the worst split.

A split gives each leaf, with its hosts, to one of two sides, as evenly in hosts as the leaves
allow. A spine belongs to the side that makes the cut smaller, so a split costs the sum over the
spines of the smaller of its capacities to the two sides. Leaves of equal links are
interchangeable, which keeps the search small: it is exact for every fabric of up to 14 different
leaves and for far larger ones with equal leaves. Where aggregation switches stand between leaves
and spines, the cut of a split is the largest flow between its two sides (Ford and Fulkerson).
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from itertools import product
from math import prod

from topologies.model import Fabric, Role
from topologies.paths import uplink_bps

MAX_SPLITS = 2**14
"""Above so many splits (only with many unequal leaves) the halves in index order are taken."""

MAX_FLOWS = 2**8
"""The same where the cut of each split has to be searched."""

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
    if any(node.role is Role.AGG and node.plane == plane for node in fabric.switches):
        names = list(uplink_bps(fabric, plane))
        return min(_cost_of_flow(fabric, plane, side) for side in _sides(leaves, names))[1]
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


def _splits(leaves: list[Kind], most: int = MAX_SPLITS) -> Iterator[Counter[Kind]]:
    """The leaves of one side, as a number of each kind."""
    kinds = Counter(leaves)
    if prod(count + 1 for count in kinds.values()) > most:
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


def _sides(leaves: list[Kind], names: list[str]) -> Iterator[set[str]]:
    """Names of the leaves of one side, for each split."""
    for split in _splits(leaves, MAX_FLOWS):
        left, side = Counter(split), set()
        for kind, name in zip(leaves, names, strict=True):
            if left[kind]:
                left[kind] -= 1
                side.add(name)
        yield side


def _cost_of_flow(fabric: Fabric, plane: int, side: set[str]) -> tuple[int, int]:
    """(how uneven in hosts, largest flow from one side's leaves to the other's)."""
    residual: dict[str, dict[str, int]] = {}
    for link in fabric.links:
        if link.plane == plane and fabric.by_name[link.a].is_switch:
            for a, b in ((link.a, link.b), (link.b, link.a)):
                ways = residual.setdefault(a, {})
                ways[b] = ways.get(b, 0) + link.rate_bps
    others = set(uplink_bps(fabric, plane)) - side
    seats = Counter(leaf for (_, where), (leaf, _) in fabric.attachment.items() if where == plane)
    here, there = (
        sum(seats[fabric.by_name[name].index] for name in names) for names in (side, others)
    )
    return abs(here - there), _largest_flow(residual, side, others)


def _largest_flow(residual: dict[str, dict[str, int]], sources: set[str], sinks: set[str]) -> int:
    """Edmonds and Karp: fills the shortest way with room until none is left."""
    total = 0
    while way := _way_with_room(residual, sources, sinks):
        room = min(residual[a][b] for a, b in way)
        total += room
        for a, b in way:
            residual[a][b] -= room
            residual[b][a] += room
    return total


def _way_with_room(
    residual: dict[str, dict[str, int]], sources: set[str], sinks: set[str]
) -> list[tuple[str, str]]:
    came: dict[str, str] = {}
    queue = deque(sorted(sources))
    while queue:
        here = queue.popleft()
        if here in sinks:
            return _steps(came, here)
        for there, room in residual.get(here, {}).items():
            if room and there not in came and there not in sources:
                came[there] = here
                queue.append(there)
    return []


def _steps(came: dict[str, str], end: str) -> list[tuple[str, str]]:
    steps = []
    while end in came:
        steps.append((came[end], end))
        end = came[end]
    return steps
