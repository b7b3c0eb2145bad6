"""A software OpenFlow 1.3 flow table: applies our messages and answers where a packet goes.

It is stricter than a real switch: whatever OpenFlow 1.3.5 lets a switch reject raises
`OpenFlowError` here, and so does what the specification leaves undefined, such as two rules of one
priority that can match the same packet. Sections of the specification stand next to the code.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from controller.core.messages import (
    ALL_TABLES,
    Barrier,
    Command,
    Field,
    FlowMod,
    Match,
    Message,
    full_mask,
)

PREREQUISITES = {
    "ip_proto": {"eth_type": 0x0800},
    "ipv4_dst": {"eth_type": 0x0800},
    "tcp_src": {"ip_proto": 6},
    "udp_src": {"ip_proto": 17},
}
MAX_PHYSICAL_PORT = 0xFFFFFF00


class OpenFlowError(Exception):
    """What a switch would answer with an error message; the text begins with the spec's name."""


@dataclass(frozen=True)
class Entry:
    """A rule in a table."""

    priority: int
    match: Match
    ports: tuple[int, ...]
    cookie: int


Shape = tuple[tuple[str, int], ...]
"""Names and masks of the fields of a match; rules of one shape differ in their values only."""

Values = tuple[int, ...]


def shape_of(match: Match) -> Shape:
    """The fields that a match compares, and which bits of them."""
    return tuple((entry.name, entry.mask) for entry in match.fields)


@dataclass
class FakeTable:
    """The tables of one switch (we use table 0 only).

    Attributes:
        ports: numbers of the ports that exist; an output to another is an error.
        capacity: number of rules that fit.
        answered: tokens of the barriers answered so far.
    """

    ports: frozenset[int]
    capacity: int = 1_000_000
    answered: list[int] = field(default_factory=list)
    _entries: dict[tuple[int, Match], Entry] = field(default_factory=dict)
    _index: dict[int, dict[Shape, dict[Values, Entry]]] = field(default_factory=dict)

    def apply(self, message: Message) -> None:
        """Do what the message says; `OpenFlowError` when a switch would refuse it."""
        match message:
            case Barrier(token=token):
                self.check_overlap()
                self.answered.append(token)
            case FlowMod(command=Command.ADD):
                self._add(message)
            case FlowMod(command=Command.MODIFY_STRICT):
                self._modify_strict(message)
            case FlowMod():
                self._delete(message)

    def apply_all(self, messages: Iterable[Message]) -> None:
        """Apply messages in order."""
        for message in messages:
            self.apply(message)

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All rules."""
        return tuple(self._entries.values())

    def __len__(self) -> int:
        return len(self._entries)

    def lookup(self, packet: dict[str, int]) -> Entry | None:
        """The matching rule of highest priority (5.3); None is a table miss."""
        for priority in sorted(self._index, reverse=True):
            for shape, rules in self._index[priority].items():
                if all(name in packet for name, _ in shape):
                    found = rules.get(tuple(packet[name] & mask for name, mask in shape))
                    if found is not None:
                        return found
        return None

    def output(self, packet: dict[str, int], in_port: int | None = None) -> int | None:
        """The port that a packet leaves by; None when it is dropped.

        A packet is never sent back through the port that it came in by (7.2.3.5), and one without
        a rule is dropped (5.4, table miss).
        """
        entry = self.lookup(packet)
        if entry is None or not entry.ports or entry.ports[0] == in_port:
            return None
        return entry.ports[0]

    def _add(self, message: FlowMod) -> None:
        """Add or replace (6.4); counters of a replaced rule are cleared, it never vanishes."""
        self._check_rule(message)
        key = (message.priority, message.match)
        if key not in self._entries and len(self._entries) >= self.capacity:
            raise OpenFlowError(f"OFPFMFC_TABLE_FULL: {len(self)} rules")
        ports = tuple(action.port for action in message.actions)
        self._put(Entry(message.priority, message.match, ports, message.cookie))

    def _modify_strict(self, message: FlowMod) -> None:
        """Change the actions of one rule, if it is there (6.4)."""
        self._check_rule(message)
        old = self._entries.get((message.priority, message.match))
        if old is not None and not (old.cookie ^ message.cookie) & message.cookie_mask:
            ports = tuple(action.port for action in message.actions)
            self._put(Entry(old.priority, old.match, ports, old.cookie))

    def _delete(self, message: FlowMod) -> None:
        """Delete one rule, or all within a match, of the given cookie (6.4); none is no error."""
        if message.actions:
            raise OpenFlowError("OFPBAC_*: a delete with actions")
        strict = message.command is Command.DELETE_STRICT
        if message.table not in ((0,) if strict else (0, ALL_TABLES)):
            raise OpenFlowError(f"OFPFMFC_BAD_TABLE_ID: {message.table}")
        check_fields(message.match)
        for entry in list(self._chosen(message, strict)):
            if not (entry.cookie ^ message.cookie) & message.cookie_mask:
                self._remove(entry)

    def _chosen(self, message: FlowMod, strict: bool) -> Iterator[Entry]:
        if strict:
            found = self._entries.get((message.priority, message.match))
            yield from [found] if found is not None else []
            return
        yield from (entry for entry in self.entries if within(entry.match, message.match))

    def _check_rule(self, message: FlowMod) -> None:
        if message.table != 0:
            raise OpenFlowError(f"OFPFMFC_BAD_TABLE_ID: {message.table}")
        if not 0 <= message.priority <= 0xFFFF:
            raise OpenFlowError(f"priority {message.priority} is not 16 bits")
        if not 0 <= message.cookie < 1 << 64:
            raise OpenFlowError(f"cookie {message.cookie} is not 64 bits")
        check_fields(message.match)
        for action in message.actions:
            if action.port not in self.ports or action.port > MAX_PHYSICAL_PORT:
                raise OpenFlowError(f"OFPBAC_BAD_OUT_PORT: {action.port}")
        if len(message.actions) > 1:
            raise OpenFlowError("more than one output: a copy of each packet, which we never want")

    def _put(self, entry: Entry) -> None:
        self._entries[entry.priority, entry.match] = entry
        shapes = self._index.setdefault(entry.priority, {})
        values = tuple(item.value for item in entry.match.fields)
        shapes.setdefault(shape_of(entry.match), {})[values] = entry

    def _remove(self, entry: Entry) -> None:
        del self._entries[entry.priority, entry.match]
        shape = shape_of(entry.match)
        rules = self._index[entry.priority][shape]
        del rules[tuple(item.value for item in entry.match.fields)]
        if not rules:
            del self._index[entry.priority][shape]

    def check_overlap(self) -> None:
        """Raise when two rules of one priority can match the same packet (OFPFMFC_OVERLAP)."""
        for priority, shapes in self._index.items():
            entries = [next(iter(rules.values())) for rules in shapes.values()]
            for position, first in enumerate(entries):
                for second in entries[position + 1 :]:
                    self._check_shapes(priority, shape_of(first.match), shape_of(second.match))

    def _check_shapes(self, priority: int, first: Shape, second: Shape) -> None:
        """Compare all rules of two shapes by the bits that both of them look at."""
        theirs = dict(second)
        common = {name: mask & theirs.get(name, 0) for name, mask in first}
        projected = [
            {
                tuple(item.value & common.get(item.name, 0) for item in entry.match.fields
                      if common.get(item.name, 0))
                for entry in self._index[priority][shape].values()
            }
            for shape in (first, second)
        ]  # fmt: skip
        both = projected[0] & projected[1]
        if both:
            raise OpenFlowError(f"OFPFMFC_OVERLAP: priority {priority}, {first} and {second}")


def within(match: Match, limit: Match) -> bool:
    """Whether a rule's match is as specific as a filter or more, and agrees with it (6.4)."""
    own = {entry.name: entry for entry in match.fields}
    return all(
        name in own and own[name].mask & mask == mask and own[name].value & mask == value
        for name, value, mask in limit.fields
    )


def check_fields(match: Match) -> None:
    """Raise for a match that 7.2.3.4 to 7.2.3.8 forbid."""
    seen: dict[str, Field] = {}
    for entry in match.fields:
        if entry.name in seen:
            raise OpenFlowError(f"OFPBMC_DUP_FIELD: {entry.name}")
        seen[entry.name] = entry
        try:
            full = full_mask(entry.name)
        except KeyError:
            raise OpenFlowError(f"OFPBMC_BAD_FIELD: {entry.name}") from None
        if not 0 < entry.mask <= full:
            raise OpenFlowError(f"OFPBMC_BAD_MASK: {entry.name} {entry.mask:#x}")
        if entry.value & ~entry.mask:
            raise OpenFlowError(f"OFPBMC_BAD_WILDCARDS: {entry.name} {entry.value:#x}")
    for name in seen:
        for needed, value in PREREQUISITES.get(name, {}).items():
            if needed not in seen or seen[needed] != Field(needed, value, full_mask(needed)):
                raise OpenFlowError(f"OFPBMC_BAD_PREREQ: {name} needs {needed}={value:#x}")
