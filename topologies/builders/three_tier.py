"""Kind ``three-tier``: pods of leaves and aggregation switches below common spines.

    kind: three-tier
    pods: 2                        # 1..254
    leaves_per_pod: 2              # all pods together 1..254
    aggs_per_pod: 2
    spines: 2
    hosts_per_leaf: 5              # or one number per leaf: [4, 1, 2, 2]
    host_link: {rate: 40 Gbit/s, delay: 500 ns}
    leaf_link: {rate: 40 Gbit/s, delay: 1 us}     # leaf to aggregation switch
    spine_link: {rate: 40 Gbit/s, delay: 1 us}    # aggregation switch to spine
    links: []                      # as in leaf-spine
    buffer: 16 MB
    mtu: 4200 B

Every leaf is linked to all aggregation switches of its pod, and every one of those to all spines.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product

from topologies.addressing import MAX_INDEX
from topologies.builders._overrides import apply_overrides, read_overrides
from topologies.builders._plane import (
    DEFAULT_FABRIC_DELAY_NS,
    DEFAULT_HOST_DELAY_NS,
    DEFAULT_RATE_BPS,
    read_hosts_per_leaf,
    read_switch_settings,
)
from topologies.errors import SpecError
from topologies.model import Fabric, Link, Node, Role
from topologies.reading import Reader
from topologies.registry import register

KIND = "three-tier"


@dataclass(frozen=True)
class Tier:
    """Rate (bit/s) and propagation delay (ns) of the links above a tier."""

    rate_bps: int
    delay_ns: int


@dataclass(frozen=True)
class Shape:
    """How many of what; every number counts from 1."""

    pods: int
    leaves_per_pod: int
    aggs_per_pod: int
    spines: int
    hosts_per_leaf: tuple[int, ...]

    def seats(self) -> list[tuple[int, int]]:
        """(leaf, number on it) of each host."""
        return [
            (leaf, number)
            for leaf, hosts in enumerate(self.hosts_per_leaf, start=1)
            for number in range(1, hosts + 1)
        ]

    def nodes(self) -> Iterator[Node]:
        """Hosts, leaves, aggregation switches, spines."""
        for at in range(1, len(self.seats()) + 1):
            yield Node(f"h{at}", Role.HOST, 0, at)
        for role, count in (
            (Role.LEAF, self.pods * self.leaves_per_pod),
            (Role.AGG, self.pods * self.aggs_per_pod),
            (Role.SPINE, self.spines),
        ):
            yield from (Node(f"{role}{at}", role, 1, at) for at in range(1, count + 1))

    def cables(self) -> Iterator[tuple[str, str, int]]:
        """(lower node, upper node, tier of the lower one: 0 host, 1 leaf, 2 aggregation)."""
        for at, (leaf, _) in enumerate(self.seats(), start=1):
            yield f"h{at}", f"leaf{leaf}", 0
        for pod in range(self.pods):
            leaves = range(pod * self.leaves_per_pod + 1, (pod + 1) * self.leaves_per_pod + 1)
            aggs = range(pod * self.aggs_per_pod + 1, (pod + 1) * self.aggs_per_pod + 1)
            yield from ((f"leaf{leaf}", f"agg{agg}", 1) for leaf, agg in product(leaves, aggs))
        above = product(range(1, self.pods * self.aggs_per_pod + 1), range(1, self.spines + 1))
        yield from ((f"agg{agg}", f"spine{spine}", 2) for agg, spine in above)


@register(KIND)
def build_three_tier(raw: Mapping[str, object], path: str) -> Fabric:
    """The fabric that a mapping of this kind describes; `SpecError` when it is wrong."""
    with Reader(raw, path) as reader:
        reader.choice("kind", [KIND], KIND)
        shape = _read_shape(reader)
        tiers = (
            _read_tier(reader, "host_link", DEFAULT_HOST_DELAY_NS),
            _read_tier(reader, "leaf_link", DEFAULT_FABRIC_DELAY_NS),
            _read_tier(reader, "spine_link", DEFAULT_FABRIC_DELAY_NS),
        )
        overrides = read_overrides(reader, "links")
        buffer_bytes, mtu_bytes = read_switch_settings(reader)
    links = [
        Link(at, lower, upper, tiers[tier].rate_bps, tiers[tier].delay_ns)
        for at, (lower, upper, tier) in enumerate(shape.cables())
    ]
    seats = {(f"h{at}", 1): seat for at, seat in enumerate(shape.seats(), start=1)}
    changed = apply_overrides(links, overrides, 1)
    return Fabric(KIND, tuple(shape.nodes()), changed, buffer_bytes, mtu_bytes, seats)


def _read_shape(reader: Reader) -> Shape:
    pods, leaves, aggs, spines = (
        reader.integer(key, minimum=1, maximum=MAX_INDEX)
        for key in ("pods", "leaves_per_pod", "aggs_per_pod", "spines")
    )
    for key, count in (("leaves_per_pod", pods * leaves), ("aggs_per_pod", pods * aggs)):
        if count > MAX_INDEX:
            rule = f"makes {count} in {pods} pods, and {MAX_INDEX} are allowed"
            raise SpecError(reader.at(key), reader.raw(key), rule, "use fewer or smaller pods")
    return Shape(pods, leaves, aggs, spines, read_hosts_per_leaf(reader, pods * leaves))


def _read_tier(reader: Reader, key: str, delay_ns: int) -> Tier:
    with reader.mapping(key, {}) as link:
        return Tier(link.rate("rate", DEFAULT_RATE_BPS), link.duration("delay", delay_ns))
