"""PURE: which pairs of hosts probe each other."""

from __future__ import annotations

from itertools import permutations

from emulator.spec.model import ALL_HOSTS, ALL_LEAVES, Experiment
from topologies.model import Fabric


def probe_pairs(experiment: Experiment) -> tuple[tuple[str, str, int], ...]:
    """(source, destination, plane) of every probe stream of one class.

    ``all-leaves`` takes the first host of each leaf with that of each other leaf, ``all-hosts`` all
    hosts with each other; both in every plane and in both directions. A fabric of a single leaf has
    no pair of leaves, so there ``all-leaves`` means its hosts. Listed pairs use the lowest plane
    that has both hosts.
    """
    if experiment.probes is None:
        return ()
    fabric, pairs = experiment.fabric, experiment.probes.pairs
    if isinstance(pairs, str):
        return tuple(
            (src, dst, plane)
            for plane in fabric.planes
            for src, dst in permutations(_ends(fabric, plane, pairs), 2)
        )
    return tuple((src, dst, _common_plane(fabric, src, dst)) for src, dst in pairs)


def _ends(fabric: Fabric, plane: int, which: str) -> list[str]:
    """Hosts that probe each other in a plane."""
    seats = [(seat, host) for (host, where), seat in fabric.attachment.items() if where == plane]
    first: dict[int, str] = {}
    for (leaf, _), host in sorted(seats):
        first.setdefault(leaf, host)
    if which == ALL_HOSTS or (which == ALL_LEAVES and len(first) < 2):
        return [host for _, host in sorted(seats)]
    return list(first.values())


def _common_plane(fabric: Fabric, src: str, dst: str) -> int:
    both = (
        p for p in fabric.planes if (src, p) in fabric.attachment and (dst, p) in fabric.attachment
    )
    return next(both, fabric.planes[0])
