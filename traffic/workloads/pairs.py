"""Traffic patterns: who sends to whom among a list of hosts."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence

from topologies.errors import SpecError

Pair = tuple[str, str]
Pattern = Callable[[Sequence[str], random.Random], list[Pair]]


def permutation(hosts: Sequence[str], rng: random.Random) -> list[Pair]:
    """Each host sends to one other and receives from one other, at random.

    A random cycle over all hosts (Sattolo 1986), so that nobody sends to itself.
    """
    order = list(hosts)
    rng.shuffle(order)
    following = dict(zip(order, [*order[1:], order[0]], strict=True))
    return [(host, following[host]) for host in hosts]


def incast(hosts: Sequence[str], rng: random.Random) -> list[Pair]:
    """All others send to the first host."""
    return [(host, hosts[0]) for host in hosts[1:]]


def halves(hosts: Sequence[str], rng: random.Random) -> list[Pair]:
    """The first half sends to the second half, one to one; an odd last host is left out."""
    half = len(hosts) // 2
    return list(zip(hosts[:half], hosts[half : 2 * half], strict=True))


def all_to_all(hosts: Sequence[str], rng: random.Random) -> list[Pair]:
    """Everybody sends to everybody else."""
    return [(src, dst) for src in hosts for dst in hosts if src != dst]


PATTERNS: dict[str, Pattern] = {
    "permutation": permutation,
    "incast": incast,
    "pairs": halves,
    "all-to-all": all_to_all,
}
"""The patterns by name."""


def cross_leaf_permutation(
    hosts: Sequence[str], leaf_of: Mapping[str, int], rng: random.Random, path: str
) -> list[Pair]:
    """A permutation in which sender and receiver are always on different leaves.

    Sorted by leaf in random order, every host sends to the one that stands as many places further
    as the fullest leaf has hosts, which no leaf spans.

    Raises:
        SpecError: one leaf has more than half of the hosts, so there is none.
    """
    leaves: dict[int, list[str]] = {}
    for host in hosts:
        leaves.setdefault(leaf_of[host], []).append(host)
    groups = list(leaves.values())
    for group in groups:
        rng.shuffle(group)
    rng.shuffle(groups)
    order = [host for group in groups for host in group]
    widest = max(len(group) for group in groups)
    if 2 * widest > len(order):
        rule = f"cannot hold: {widest} of the {len(order)} hosts are on one leaf"
        raise SpecError(path, True, rule, "take hosts of more leaves, or leave cross_leaf out")
    shift = rng.randint(widest, len(order) - widest)
    receivers = {order[i]: order[(i + shift) % len(order)] for i in range(len(order))}
    return [(host, receivers[host]) for host in hosts]
