"""64 hash buckets shared out over the ways to a destination: exactly, repeatably, and calmly.

*Exactly*: way ``w`` of weight ``W_w`` gets its share of the buckets by the divisor method of
Webster (Sainte-Lague), with one bucket first for every way of positive weight. Equal weights thus
differ by at most one bucket. *Repeatably*: which buckets a way gets depends on a seed, the switch
and the destination through BLAKE2, never on Python's salted hash or on what happened before.
*Calmly*: the shares without a way that failed are derived from the shares with it, and divisor
methods never take a seat away from a party when another leaves (Balinski and Young, "Fair
Representation", 1982), so only the buckets of the failed way move, and its return moves exactly
those back.
"""

from __future__ import annotations

import hashlib
import heapq
import math
from collections.abc import Iterator, Mapping, Sequence

BUCKETS = 64
"""Buckets of one destination, a power of two: six bits of the source port choose one."""

Way = int
"""What a bucket leads to; here the number of a port."""


def stable_hash(*parts: object) -> int:
    """A 64-bit hash of some texts and numbers that is the same in every process and run."""
    text = "\x1f".join(map(str, parts)).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big")


def permutation(*key: object, count: int = BUCKETS) -> tuple[int, ...]:
    """The numbers below `count` in an order that depends on the key only."""
    return tuple(sorted(range(count), key=lambda number: stable_hash(*key, number)))


def awards(weights: Mapping[Way, int], *key: object) -> Iterator[Way]:
    """The ways in the order in which they are given seats, without end.

    The next seat goes to the way with the smallest ``d(seats) / weight`` with d(0) = 0 and
    d(n) = 2n + 1; the key decides between equals, so that spare buckets do not always go to the
    same way. Fractions are compared exactly.
    """
    scale = math.lcm(*weights.values()) if weights else 1
    heap = [(0, stable_hash(*key, "tie", way), way) for way in weights]
    seats = dict.fromkeys(weights, 0)
    heapq.heapify(heap)
    while heap:
        _, tie, way = heap[0]
        yield way
        seats[way] += 1
        heapq.heapreplace(heap, ((2 * seats[way] + 1) * (scale // weights[way]), tie, way))


def shares(weights: Mapping[Way, int], *key: object, count: int = BUCKETS) -> dict[Way, int]:
    """How many of `count` buckets each way of positive weight gets."""
    seats = {way: 0 for way, weight in weights.items() if weight > 0}
    for way, _ in zip(awards(_positive(weights), *key), range(count), strict=False):
        seats[way] += 1
    return seats


def assign(
    normal: Mapping[Way, int],
    current: Mapping[Way, int],
    *key: object,
    count: int = BUCKETS,
) -> tuple[Way, ...]:
    """The way of each bucket; empty when no way is left.

    Args:
        normal: weight of every way when all of them work.
        current: their weights now; absent or 0 means that a way must not be used.
        key: the seed and what the buckets belong to.
        count: number of buckets.

    Returns:
        The assignment of `normal` in which as few buckets as possible have moved so that the
        shares are those of `current`.
    """
    wanted = shares(current, *key, count=count)
    if not wanted:
        return ()
    order = permutation(*key, count=count)
    base = zip(order, awards(_positive(normal), *key), strict=False)
    assigned, left = _keep(dict(base), wanted)
    return _fill(assigned, left, awards(_positive(current), *key), order)


def _positive(weights: Mapping[Way, int]) -> dict[Way, int]:
    return {way: weight for way, weight in weights.items() if weight > 0}


def _keep(
    base: Mapping[int, Way], wanted: Mapping[Way, int]
) -> tuple[dict[int, Way], dict[Way, int]]:
    """The buckets that stay where they are, and how many each way still lacks."""
    left = dict(wanted)
    kept: dict[int, Way] = {}
    for bucket, way in base.items():
        if left.get(way, 0) > 0:
            kept[bucket] = way
            left[way] -= 1
    return kept, left


def _fill(
    assigned: dict[int, Way],
    left: dict[Way, int],
    turns: Iterator[Way],
    order: Sequence[int],
) -> tuple[Way, ...]:
    """Give the buckets without a way to those that lack some, in the order of the awards."""
    for bucket in order:
        if bucket in assigned:
            continue
        way = next(way for way in turns if left[way] > 0)
        left[way] -= 1
        assigned[bucket] = way
    return tuple(assigned[bucket] for bucket in range(len(order)))
