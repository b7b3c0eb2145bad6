"""Which hosts a workload runs on: named ones, or a number of them in a stated order.

Orders over the hosts of one plane: ``contiguous`` fills leaf after leaf from h1 upward,
``strided`` takes one host of each leaf in turn, ``random`` shuffles by the seed.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from topologies.errors import SpecError, UnknownNameError
from topologies.model import Fabric
from topologies.reading import Reader, as_choice, as_integer, as_list, as_text

Order = Callable[[Fabric, int, random.Random], list[str]]


def _contiguous(fabric: Fabric, plane: int, rng: random.Random) -> list[str]:
    return [host.name for host in fabric.hosts if (host.name, plane) in fabric.attachment]


def _strided(fabric: Fabric, plane: int, rng: random.Random) -> list[str]:
    seen: dict[int, int] = {}
    keyed = []
    for name in _contiguous(fabric, plane, rng):
        leaf, _ = fabric.attachment[name, plane]
        seen[leaf] = seen.get(leaf, 0) + 1
        keyed.append((seen[leaf], leaf, name))
    return [name for _, _, name in sorted(keyed, key=lambda key: key[:2])]


def _random(fabric: Fabric, plane: int, rng: random.Random) -> list[str]:
    names = _contiguous(fabric, plane, rng)
    rng.shuffle(names)
    return names


ORDERS: dict[str, Order] = {"contiguous": _contiguous, "strided": _strided, "random": _random}


@dataclass(frozen=True)
class Placement:
    """How numbers of hosts are turned into hosts.

    Attributes:
        order: name of an entry of `ORDERS`.
        offset: hosts that are skipped at the beginning of the order.
    """

    order: str = "contiguous"
    offset: int = 0


@dataclass(frozen=True)
class HostSet:
    """A number of hosts, or their names.

    Attributes:
        path: key path, for errors.
        count: how many; None for all that are left.
        names: which ones; when given, count is their number.
    """

    path: str
    count: int | None = None
    names: tuple[str, ...] = ()


def read_placement(reader: Reader, sets: Iterable[HostSet]) -> Placement:
    """Read ``placement`` (a name) and ``offset``, which make sense for numbers of hosts only."""
    order = reader.choice("placement", ORDERS, "contiguous", what="placement")
    offset = reader.integer("offset", 0, minimum=0)
    wanted = list(sets)
    for key in ("placement", "offset"):
        if reader.has(key) and all(wish.names for wish in wanted):
            rule = f"has no effect: {wanted[0].path} names the hosts"
            raise SpecError(reader.at(key), reader.raw(key), rule, f"leave {key} out")
    return Placement(order, offset)


def as_host_set(value: object, path: str, minimum: int = 1) -> HostSet:
    """A number of hosts or a list of distinct names."""
    if not isinstance(value, (list, tuple)):
        return HostSet(path, as_integer(value, path, minimum=minimum))
    names: list[str] = []
    for place, entry in as_list(value, path, minimum=minimum):
        name = as_text(entry, place)
        if name in names:
            raise SpecError(place, name, "is in the list twice")
        names.append(name)
    return HostSet(path, len(names), tuple(names))


def as_placement_or_hosts(value: object, path: str) -> str | HostSet:
    """The name of an order, or a list of hosts."""
    if isinstance(value, (list, tuple)):
        return as_host_set(value, path)
    return as_choice(value, path, ORDERS, "placement")


def place(
    fabric: Fabric,
    plane: int,
    placement: Placement,
    wanted: Iterable[HostSet],
    rng: random.Random,
) -> list[tuple[str, ...]]:
    """Hosts for each wanted set; sets are disjoint.

    Named hosts are taken first; then each number takes the next hosts of the order.

    Raises:
        SpecError: a plane that does not exist, an unknown host, a host wanted twice, or more
            hosts wanted than there are.
    """
    sets = list(wanted)
    taken = _named(fabric, plane, sets)
    order = ORDERS[placement.order](fabric, plane, rng)[placement.offset :]
    free = [name for name in order if name not in taken]
    chosen: list[tuple[str, ...]] = []
    for wish in sets:
        if wish.names:
            chosen.append(wish.names)
            continue
        count = len(free) if wish.count is None else wish.count
        if count > len(free) or not count:
            raise _too_many(fabric, plane, placement, wish, len(free))
        chosen.append(tuple(free[:count]))
        free = free[count:]
    return chosen


def _named(fabric: Fabric, plane: int, sets: list[HostSet]) -> set[str]:
    known = {name for name, of_plane in fabric.attachment if of_plane == plane}
    taken: set[str] = set()
    for wish in sets:
        for name in wish.names:
            if name not in known:
                raise UnknownNameError(wish.path, f"host of plane {plane}", name, known)
            if name in taken:
                raise SpecError(wish.path, name, "is already in another list of this workload")
            taken.add(name)
    return taken


def _too_many(
    fabric: Fabric, plane: int, placement: Placement, wish: HostSet, free: int
) -> SpecError:
    total = sum(of_plane == plane for _, of_plane in fabric.attachment)
    rule = f"asks for more hosts than the {free} that are free"
    rule += f" of the {total} in plane {plane}"
    if placement.offset:
        rule += f" (offset {placement.offset})"
    count = "all" if wish.count is None else wish.count
    return SpecError(wish.path, count, rule, "ask for fewer, or build a larger fabric")
