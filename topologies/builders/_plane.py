"""What the builders share: reading the keys of a leaf-spine plane, joining planes to a fabric."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

from topologies.addressing import MAX_INDEX
from topologies.builders._overrides import Override, apply_overrides, read_overrides
from topologies.errors import SpecError
from topologies.model import Fabric, Link, Node, Role
from topologies.reading import REQUIRED, Reader, as_integer, as_list
from topologies.units import parse_fraction

DEFAULT_RATE_BPS = 100_000_000_000
"""Rate of every link when the file names none: 100 Gbit/s."""
DEFAULT_HOST_DELAY_NS = 500
"""Propagation delay of a host link: 500 ns."""
DEFAULT_FABRIC_DELAY_NS = 1_000
"""Propagation delay of a leaf-spine link: 1 us."""
DEFAULT_BUFFER_BYTES = 16_000_000
"""Shared packet buffer of a switch: 16 MB."""
DEFAULT_MTU_BYTES = 4_200
"""IP MTU: a RoCEv2 payload of 4096 bytes and all its headers fit."""
MAX_PARALLEL = 64
"""Parallel links between a leaf and a spine: as many as there are hash buckets."""
MAX_OVERSUBSCRIPTION = 60
"""YAML 1.1 reads an unquoted 1:1 as 61 (base 60); a larger ratio is that, not a wish."""


@dataclass(frozen=True)
class PlaneShape:
    """One leaf-spine plane, in target units.

    Attributes:
        spines: number of spines.
        hosts_per_leaf: number of hosts on each leaf; its length is the number of leaves.
        host_rate_bps: rate of host links, bit/s.
        host_delay_ns: propagation delay of host links, ns.
        fabric_rates_bps: rate of each leaf's links to the spines, bit/s.
        fabric_delay_ns: propagation delay of leaf-spine links, ns.
        parallel: links between each leaf and each spine.
        overrides: changes of single links.
    """

    spines: int
    hosts_per_leaf: tuple[int, ...]
    host_rate_bps: int
    host_delay_ns: int
    fabric_rates_bps: tuple[int, ...]
    fabric_delay_ns: int
    parallel: int
    overrides: tuple[Override, ...] = ()

    @property
    def hosts(self) -> int:
        """Number of hosts."""
        return sum(self.hosts_per_leaf)


def read_plane(reader: Reader) -> PlaneShape:
    """The keys ``leaves spines hosts_per_leaf host_link fabric_link oversubscription links``."""
    leaves = reader.integer("leaves", minimum=1, maximum=MAX_INDEX)
    spines = _read_spines(reader, leaves)
    hosts = read_hosts_per_leaf(reader, leaves)
    with reader.mapping("host_link", {}) as link:
        host_rate_bps = link.rate("rate", DEFAULT_RATE_BPS)
        host_delay_ns = link.duration("delay", DEFAULT_HOST_DELAY_NS)
    with reader.mapping("fabric_link", {}) as link:
        parallel = link.integer("parallel", 1, minimum=1, maximum=MAX_PARALLEL)
        fabric_delay_ns = link.duration("delay", DEFAULT_FABRIC_DELAY_NS)
        ports = spines * parallel
        rates = _fabric_rates(reader, link, [n * host_rate_bps for n in hosts], ports)
    return PlaneShape(
        spines, hosts, host_rate_bps, host_delay_ns, rates, fabric_delay_ns, parallel,
        read_overrides(reader, "links"),
    )  # fmt: skip


def _read_spines(reader: Reader, leaves: int) -> int:
    """Number of spines; 0 makes a single leaf a fabric of its own."""
    spines = reader.integer("spines", minimum=0, maximum=MAX_INDEX)
    if spines == 0 and leaves > 1:
        rule = f"would leave the {leaves} leaves unconnected"
        raise SpecError(reader.at("spines"), 0, rule, "write at least 1, or leaves: 1")
    for key in ("fabric_link", "oversubscription"):
        if spines == 0 and reader.has(key):
            rule = "needs links to spines, and there are none"
            raise SpecError(reader.at(key), reader.raw(key), rule, "remove it, or write spines: 1")
    return spines


def read_hosts_per_leaf(reader: Reader, leaves: int) -> tuple[int, ...]:
    """The key ``hosts_per_leaf``: how many hosts each leaf has."""
    return reader.get("hosts_per_leaf", lambda v, p: _hosts_per_leaf(v, p, leaves), REQUIRED)


def _hosts_per_leaf(value: object, path: str, leaves: int) -> tuple[int, ...]:
    """One number for all leaves, or a list with one per leaf."""
    if not isinstance(value, (list, tuple)):
        return (as_integer(value, path, minimum=1, maximum=MAX_INDEX),) * leaves
    entries = as_list(value, path)
    if len(entries) != leaves:
        rule = f"has {len(entries)} entries for {leaves} leaves"
        raise SpecError(path, value, rule, "give one number for all leaves, or one per leaf")
    return tuple(as_integer(v, p, minimum=1, maximum=MAX_INDEX) for p, v in entries)


def _fabric_rates(
    reader: Reader, link: Reader, offered_bps: Sequence[int], ports: int
) -> tuple[int, ...]:
    """Rate of each leaf's uplinks: as written, or from the oversubscription of each leaf."""
    if not reader.has("oversubscription"):
        return (link.rate("rate", DEFAULT_RATE_BPS),) * len(offered_bps)
    path = reader.at("oversubscription")
    ratio = reader.get("oversubscription", _oversubscription, 1.0)
    if link.has("rate"):
        rule = f"excludes {link.at('rate')}, which is also given"
        raise SpecError(path, reader.raw("oversubscription"), rule, "give only one of them")
    return tuple(max(1, round(Fraction(total) / ports / Fraction(ratio))) for total in offered_bps)


def _oversubscription(value: object, path: str) -> float:
    """Host bandwidth over uplink bandwidth of a leaf: ``2``, ``1.5`` or ``"2:1"``."""
    ratio = parse_fraction(value, path, maximum=None, allow_zero=False)
    if ratio > MAX_OVERSUBSCRIPTION:
        way_out = 'YAML reads an unquoted 2:1 as 121: write 2 or "2:1"'
        raise SpecError(path, value, f"must be at most {MAX_OVERSUBSCRIPTION}", way_out)
    return ratio


def read_switch_settings(reader: Reader) -> tuple[int, int]:
    """The keys ``buffer`` and ``mtu``: bytes of shared buffer, IP MTU in bytes."""
    return reader.size("buffer", DEFAULT_BUFFER_BYTES), reader.size("mtu", DEFAULT_MTU_BYTES)


def join_planes(
    kind: str, shapes: Sequence[PlaneShape], buffer_bytes: int, mtu_bytes: int
) -> Fabric:
    """The fabric whose plane k is the k-th shape; all have the same hosts ``h1``, ``h2``, ..."""
    attachment: dict[tuple[str, int], tuple[int, int]] = {}
    links: tuple[Link, ...] = ()
    planes = list(enumerate(shapes, start=1))
    for plane, shape in planes:
        attachment |= _attachment(plane, shape)
    for plane, shape in planes:
        links += tuple(_host_links(len(links), plane, shape, attachment))
    for plane, shape in planes:
        links += tuple(_fabric_links(len(links), plane, shape))
    for plane, shape in planes:
        links = apply_overrides(links, shape.overrides, plane)
    return Fabric(kind, _nodes(shapes), links, buffer_bytes, mtu_bytes, attachment)


def switch_name(role: Role, plane: int, index: int) -> str:
    """``leaf1`` in plane 1, ``p2leaf1`` in plane 2."""
    return f"{'' if plane == 1 else f'p{plane}'}{role}{index}"


def _nodes(shapes: Sequence[PlaneShape]) -> tuple[Node, ...]:
    nodes = [Node(f"h{i}", Role.HOST, 0, i) for i in range(1, shapes[0].hosts + 1)]
    for role in (Role.LEAF, Role.SPINE):
        for plane, shape in enumerate(shapes, start=1):
            total = len(shape.hosts_per_leaf) if role is Role.LEAF else shape.spines
            indices = range(1, total + 1)
            nodes += (Node(switch_name(role, plane, i), role, plane, i) for i in indices)
    return tuple(nodes)


def _attachment(plane: int, shape: PlaneShape) -> Mapping[tuple[str, int], tuple[int, int]]:
    seats = [
        (leaf, number)
        for leaf, hosts in enumerate(shape.hosts_per_leaf, start=1)
        for number in range(1, hosts + 1)
    ]
    return {(f"h{i}", plane): seat for i, seat in enumerate(seats, start=1)}


def _host_links(
    first: int,
    plane: int,
    shape: PlaneShape,
    attachment: Mapping[tuple[str, int], tuple[int, int]],
) -> Iterator[Link]:
    """One link per host, with ids from first on."""
    for host in range(1, shape.hosts + 1):
        leaf = switch_name(Role.LEAF, plane, attachment[f"h{host}", plane][0])
        rate_bps, delay_ns = shape.host_rate_bps, shape.host_delay_ns
        yield Link(first + host - 1, f"h{host}", leaf, rate_bps, delay_ns, plane)


def _fabric_links(first: int, plane: int, shape: PlaneShape) -> Iterator[Link]:
    """The links of each leaf to each spine, lane by lane, with ids from first on."""
    leaves, spines = len(shape.hosts_per_leaf), shape.spines
    places = product(range(leaves), range(1, spines + 1), range(1, shape.parallel + 1))
    for number, (leaf, spine, lane) in enumerate(places, start=first):
        lower = switch_name(Role.LEAF, plane, leaf + 1)
        upper = switch_name(Role.SPINE, plane, spine)
        rate_bps, delay_ns = shape.fabric_rates_bps[leaf], shape.fabric_delay_ns
        yield Link(number, lower, upper, rate_bps, delay_ns, plane, lane)
