"""Unequal links: the ``links:`` list, which changes rate or delay of single links.

links:
  - {between: [leaf1, spine2], lane: 1, rate: 40 Gbit/s}
  - {between: [h3, leaf1], delay: 5 us}
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from topologies.errors import SpecError, UnknownNameError
from topologies.model import Link
from topologies.reading import Reader


@dataclass(frozen=True)
class Override:
    """A change of the link or the parallel links between two nodes.

    Attributes:
        path: key path of the entry, for error messages.
        between: names of the two nodes, in either order.
        lane: which of the parallel links; None for all.
        rate_bps: new rate, bit/s; None to keep.
        delay_ns: new propagation delay, ns; None to keep.
    """

    path: str
    between: tuple[str, str]
    lane: int | None
    rate_bps: int | None
    delay_ns: int | None

    @property
    def changes(self) -> list[str]:
        """What it changes: "rate", "delay" or both."""
        wanted = {"rate": self.rate_bps, "delay": self.delay_ns}
        return [what for what, value in wanted.items() if value is not None]

    def applied(self, link: Link) -> Link:
        """The link after the change."""
        return replace(
            link,
            rate_bps=link.rate_bps if self.rate_bps is None else self.rate_bps,
            delay_ns=link.delay_ns if self.delay_ns is None else self.delay_ns,
        )


def read_overrides(reader: Reader, key: str) -> tuple[Override, ...]:
    """The entries of a ``links:`` list; none when the key is absent."""
    return tuple(_read_override(entry) for entry in reader.readers(key))


def _read_override(reader: Reader) -> Override:
    with reader:
        names = reader.texts("between")
        override = Override(
            path=reader.path,
            between=(names[0], names[-1]),
            lane=reader.integer("lane", None, minimum=1),
            rate_bps=reader.rate("rate", None),
            delay_ns=reader.duration("delay", None),
        )
    if len(names) != 2 or names[0] == names[1]:
        raise SpecError(reader.at("between"), names, "must name two nodes", "write [leaf1, spine2]")
    if not override.changes:
        rule = "changes nothing"
        raise SpecError(reader.path, list(names), rule, "add a rate, a delay or both")
    return override


def apply_overrides(
    links: Sequence[Link], overrides: Sequence[Override], plane: int
) -> tuple[Link, ...]:
    """All links after the changes of one plane; `SpecError` for one that this plane has not."""
    result = list(links)
    own = [link for link in links if link.plane == plane]
    done: set[tuple[int, str]] = set()
    for override in overrides:
        for link in _chosen(own, override):
            _claim(done, link, override)
            result[link.id] = override.applied(result[link.id])
    return tuple(result)


def _chosen(links: Sequence[Link], override: Override) -> list[Link]:
    path = f"{override.path}.between"
    for name in override.between:
        if not any(name in (link.a, link.b) for link in links):
            raise UnknownNameError(path, "node", name, _names(links))
    ends = set(override.between)
    lanes = [link for link in links if {link.a, link.b} == ends]
    if not lanes:
        rule, way_out = "are not linked", "name a host and its leaf, or a leaf and a spine"
        raise SpecError(path, list(override.between), rule, way_out)
    if override.lane is None:
        return lanes
    if override.lane > len(lanes):
        rule = f"must be at most {len(lanes)}, the number of parallel links"
        raise SpecError(f"{override.path}.lane", override.lane, rule)
    return [link for link in lanes if link.lane == override.lane]


def _claim(done: set[tuple[int, str]], link: Link, override: Override) -> None:
    """Refuse to set the same value of the same link twice."""
    for what in override.changes:
        if (link.id, what) in done:
            rule = f"sets the {what} of a link that an earlier entry has set"
            raise SpecError(override.path, list(override.between), rule, "give one entry per lane")
        done.add((link.id, what))


def _names(links: Sequence[Link]) -> list[str]:
    """All node names, with the hosts, which may be many, as one range."""
    lower = {link.a for link in links}
    upper = {link.b for link in links}
    return [*upper, f"h1..h{len(lower - upper)}"]
