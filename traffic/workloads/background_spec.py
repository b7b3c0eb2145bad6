"""The keys of background traffic, and how they are read.

Two ways to offer traffic. Closed: each pair sends ``count`` messages of ``bytes``, the next one
``gap`` after the last has come. Open: flows arrive at random at a share ``load`` of each sender's
link for ``duration``, with sizes from a distribution.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from topologies.errors import SpecError
from topologies.reading import Reader, as_list, as_text
from topologies.units import parse_size
from traffic.workloads.base import WorkloadSpec, read_common, resolve
from traffic.workloads.pairs import PATTERNS
from traffic.workloads.placement import HostSet, Placement, as_host_set, read_placement
from traffic.workloads.sizes import BUILT_IN, SizeCdf, fixed, read_cdf

KIND = "background"
BEST_EFFORT_DSCP = 0
RANDOM_PAIRS = "poisson"
"""The pattern in which each flow goes to another host drawn at random."""


@dataclass(frozen=True)
class Closed:
    """Messages one after the other.

    Attributes:
        size_bytes: size of each message.
        count: messages of each pair.
        gap_ns: pause after a message has come.
    """

    size_bytes: int
    count: int
    gap_ns: int


@dataclass(frozen=True)
class Open:
    """Flows that arrive by a Poisson process.

    Attributes:
        load: share of the link that the flows take with all headers; of the sender's link, or with
            ``incast`` of the receiver's.
        sizes: distribution of flow sizes.
        duration_ns: time during which flows arrive.
    """

    load: float
    sizes: SizeCdf
    duration_ns: int


@dataclass(frozen=True, kw_only=True)
class BackgroundSpec(WorkloadSpec):
    """Background traffic.

    Attributes:
        pattern: who sends to whom: an entry of `PATTERNS`, or ``poisson``.
        hosts: hosts that take part.
        placement: order that a number of hosts is taken from.
        pairs: (sender, receiver) of the pattern ``pairs``; empty: first half to second half.
        cross_leaf: whether every pair of a permutation must be on two leaves.
        offer: how traffic is offered.
    """

    pattern: str
    hosts: HostSet
    placement: Placement
    pairs: tuple[tuple[str, str], ...]
    cross_leaf: bool
    offer: Closed | Open


def read(reader: Reader, folder: Path) -> BackgroundSpec:
    """Read background traffic."""
    common = read_common(reader, KIND, BEST_EFFORT_DSCP)
    pattern = reader.choice("pattern", [*PATTERNS, RANDOM_PAIRS], "permutation", what="pattern")
    pairs = reader.get("pairs", _as_pairs, ()) if pattern == "pairs" else ()
    if pairs:
        reader.exclusive("pairs", "hosts")
        names = tuple(dict.fromkeys(name for pair in pairs for name in pair))
        hosts = HostSet(reader.at("pairs"), len(names), names)
    else:
        everyone = HostSet(reader.at("hosts"))
        hosts = reader.get("hosts", lambda v, p: as_host_set(v, p, minimum=2), everyone)
    cross_leaf = reader.flag("cross_leaf", False) if pattern == "permutation" else False
    return BackgroundSpec(
        **common,
        pattern=pattern,
        hosts=hosts,
        placement=read_placement(reader, [hosts]),
        pairs=pairs,
        cross_leaf=cross_leaf,
        offer=_read_offer(reader, pattern, folder),
    )


def _as_pairs(value: object, path: str) -> tuple[tuple[str, str], ...]:
    pairs = []
    for place, entry in as_list(value, path, minimum=1):
        ends = [as_text(name, at) for at, name in as_list(entry, place, minimum=2, maximum=2)]
        if ends[0] == ends[1]:
            raise SpecError(place, ends, "has the same host as sender and receiver")
        pairs.append((ends[0], ends[1]))
    return tuple(pairs)


def _read_offer(reader: Reader, pattern: str, folder: Path) -> Closed | Open:
    if pattern != RANDOM_PAIRS and not reader.has("load"):
        return Closed(
            size_bytes=reader.size("bytes"),
            count=reader.integer("count", 1, minimum=1),
            gap_ns=reader.duration("gap", 0),
        )
    reader.exclusive("load", "count")
    return Open(
        load=reader.fraction("load", maximum=None, allow_zero=False),
        sizes=_read_sizes(reader, folder),
        duration_ns=reader.duration("duration", allow_zero=False),
    )


def _read_sizes(reader: Reader, folder: Path) -> SizeCdf:
    """``bytes`` (all equal), ``sizes`` (a built-in name) or ``sizes_file``."""
    reader.exclusive("bytes", "sizes", "sizes_file")
    if reader.has("sizes_file"):
        file = resolve(folder, reader.text("sizes_file"))
        return read_cdf(file, reader.at("sizes_file"))
    if reader.has("sizes"):
        return reader.get("sizes", _as_sizes, fixed(1))
    return fixed(reader.size("bytes"))


def _as_sizes(value: object, path: str) -> SizeCdf:
    if isinstance(value, str) and value in BUILT_IN:
        return BUILT_IN[value]
    try:
        return fixed(parse_size(value, path))
    except SpecError:
        rule = "is neither a size nor a known distribution"
        raise SpecError(path, value, rule, f"known: {', '.join(sorted(BUILT_IN))}") from None
