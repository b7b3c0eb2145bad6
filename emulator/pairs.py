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

    Hosts that hang on equal links below the same leaf are interchangeable, so one of them (two,
    where there are) stands for all.
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


def _representatives(fabric: Fabric) -> Iterator[tuple[int, str, str, int]]:
    """(plane, source, destination, number of pairs that they stand for)."""
    groups: dict[tuple[int, int, int, int], list[str]] = {}
    for link in fabric.links:
        seat = fabric.attachment.get((link.a, link.plane))
        if seat is not None:
            key = (link.plane, seat[0], link.rate_bps, link.delay_ns)
            groups.setdefault(key, []).append(link.a)
    for key, sources in groups.items():
        for other, targets in groups.items():
            if key == other and len(sources) > 1:
                yield key[0], sources[0], sources[1], len(sources) * (len(sources) - 1)
            elif key[0] == other[0] and key != other:
                yield key[0], sources[0], targets[0], len(sources) * len(targets)


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
