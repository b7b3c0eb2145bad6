"""PURE: the different ways between two hosts of a fabric, each with its unloaded times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from emulator import timing
from emulator.spec.model import SwitchSpec
from topologies.model import Fabric, Link
from topologies.paths import Paths, links_of
from traffic import wire

Signature = tuple[int, tuple[tuple[int, int], ...]]
"""(plane, (rate, delay) of each link): what makes two paths take equally long."""


@dataclass(frozen=True)
class PairClass:
    """Paths that take equally long.

    Attributes:
        plane: the fabric plane.
        src: a sender of such a path.
        dst: its receiver.
        links: links of the path, in travelling order.
        paths: how many paths between ordered pairs of hosts are like it.
    """

    plane: int
    src: str
    dst: str
    links: tuple[Link, ...]
    paths: int

    @property
    def switches(self) -> int:
        """Switches on the way."""
        return len(self.links) - 1

    @property
    def name(self) -> str:
        """What people call it."""
        where = {1: "below one leaf", 3: "across a spine"}
        return where.get(self.switches, f"over {self.switches} switches")


def pair_classes(fabric: Fabric) -> tuple[PairClass, ...]:
    """All classes of paths, the shortest first.

    Hosts on equal links below the same leaf are interchangeable, and so are leaves with equal
    uplinks: one pair stands for all of its kind.
    """
    paths = Paths(fabric)
    counts: Counter[Signature] = Counter()
    examples: dict[Signature, tuple[str, str, tuple[Link, ...]]] = {}
    for plane, src, dst, times in _representatives(fabric):
        for path in paths.between(src, dst, plane):
            links = tuple(fabric.links[link] for link in links_of(fabric, path))
            key = (plane, tuple((link.rate_bps, link.delay_ns) for link in links))
            counts[key] += times
            examples.setdefault(key, (src, dst, links))
    classes = [PairClass(key[0], *examples[key], counts[key]) for key in counts]
    return tuple(sorted(classes, key=lambda c: (c.plane, len(c.links), -c.paths, c.src, c.dst)))


Way = tuple[int, int]
"""(rate, delay) of a host link."""
Uplinks = tuple[tuple[str, int, int], ...]
"""(spine, rate, delay) of each uplink of a leaf: what makes leaves interchangeable."""


def _representatives(fabric: Fabric) -> Iterator[tuple[int, str, str, int]]:
    """(plane, source, destination, number of ordered pairs that they stand for)."""
    for plane in fabric.planes:
        leaves = _hosts_by_leaf(fabric, plane)
        for ways in leaves.values():
            yield from _below_one_leaf(plane, ways)
        yield from _across(plane, leaves, _uplinks(fabric, plane))


def _hosts_by_leaf(fabric: Fabric, plane: int) -> dict[str, dict[Way, list[str]]]:
    leaves: dict[str, dict[Way, list[str]]] = {}
    for link in fabric.links:
        if link.plane == plane and not fabric.by_name[link.a].is_switch:
            ways = leaves.setdefault(link.b, {})
            ways.setdefault((link.rate_bps, link.delay_ns), []).append(link.a)
    return leaves


def _uplinks(fabric: Fabric, plane: int) -> dict[str, Uplinks]:
    found: dict[str, list[tuple[str, int, int]]] = {}
    for link in fabric.links:
        if link.plane == plane and fabric.by_name[link.a].is_switch:
            found.setdefault(link.a, []).append((link.b, link.rate_bps, link.delay_ns))
    return {leaf: tuple(sorted(links)) for leaf, links in found.items()}


def _below_one_leaf(plane: int, ways: dict[Way, list[str]]) -> Iterator[tuple[int, str, str, int]]:
    for sources in ways.values():
        for targets in ways.values():
            if sources is not targets:
                yield plane, sources[0], targets[0], len(sources) * len(targets)
            elif len(sources) > 1:
                yield plane, sources[0], sources[1], len(sources) * (len(sources) - 1)


def _across(
    plane: int, leaves: dict[str, dict[Way, list[str]]], uplinks: dict[str, Uplinks]
) -> Iterator[tuple[int, str, str, int]]:
    """Pairs on two leaves; leaves with equal uplinks are interchangeable."""
    alike: dict[tuple[Uplinks, Way], dict[str, list[str]]] = {}
    for leaf, ways in leaves.items():
        for way, hosts in ways.items():
            alike.setdefault((uplinks.get(leaf, ()), way), {})[leaf] = hosts
    for sources in alike.values():
        for targets in alike.values():
            pairs = [
                (len(ours) * len(theirs), ours[0], theirs[0])
                for leaf, ours in sources.items()
                for other, theirs in targets.items()
                if leaf != other
            ]
            if pairs:
                yield plane, pairs[0][1], pairs[0][2], sum(count for count, _, _ in pairs)


@dataclass(frozen=True)
class PairTimes:
    """What a lone frame needs on a class of paths, model ns.

    Attributes:
        pair: the class.
        one_way_ns: first bit out to last bit in.
        round_trip_ns: the frame there and its reply (an acknowledgement, or a probe) back.
        bdp_bytes: bottleneck rate times round trip.
    """

    pair: PairClass
    one_way_ns: float
    round_trip_ns: float
    bdp_bytes: float


def pair_times(
    pair: PairClass,
    switch: SwitchSpec,
    frame_bytes: int,
    reply_bytes: int = wire.ACK_FRAME_BYTES,
) -> PairTimes:
    """Unloaded times of a class of paths; frame lengths without FCS."""
    return PairTimes(
        pair,
        timing.one_way_ns(pair.links, switch, frame_bytes),
        timing.round_trip_ns(pair.links, switch, frame_bytes, reply_bytes),
        timing.bdp_bytes(pair.links, switch, frame_bytes),
    )
