"""What the controller says to a switch, as frozen dataclasses of our own.

No framework type appears here, so the core can be tested without one and a fake switch can apply
the messages. `controller.wire` turns them into OpenFlow 1.3 bytes. Names follow the OpenFlow
Switch Specification 1.3.5; the fields are those of its section 7.2.3.7.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

FIELD_BITS = {
    "eth_type": 16,
    "ip_proto": 8,
    "ipv4_dst": 32,
    "tcp_src": 16,
    "udp_src": 16,
}
"""Width of each match field that we know, bits."""

ETH_TYPE_IPV4 = 0x0800
IP_PROTO_TCP = 6
IP_PROTO_UDP = 17
ALL_TABLES = 0xFF
EXACT_COOKIE = (1 << 64) - 1


class Field(NamedTuple):
    """One field of a match: bits of `mask` that are 1 must be as in `value`."""

    name: str
    value: int
    mask: int

    @property
    def exact(self) -> bool:
        """True when every bit of the field is compared."""
        return self.mask == full_mask(self.name)


def full_mask(name: str) -> int:
    """The mask that compares every bit of a field; KeyError for a field that we do not know."""
    return (1 << FIELD_BITS[name]) - 1


@dataclass(frozen=True, slots=True)
class Match:
    """Which packets a rule applies to.

    Attributes:
        fields: sorted by name, each at most once; empty matches every packet.
    """

    fields: tuple[Field, ...] = ()

    @staticmethod
    def of(**fields: int | tuple[int, int]) -> Match:
        """A match from ``name=value`` or ``name=(value, mask)``."""
        made = []
        for name, given in sorted(fields.items()):
            value, mask = given if isinstance(given, tuple) else (given, full_mask(name))
            made.append(Field(name, value, mask))
        return Match(tuple(made))

    def accepts(self, packet: dict[str, int]) -> bool:
        """Whether a packet with these field values matches; a field it lacks never does."""
        return all(
            name in packet and packet[name] & mask == value for name, value, mask in self.fields
        )

    def __str__(self) -> str:
        shown = (
            f"{name}={value:#x}" + ("" if mask == full_mask(name) else f"/{mask:#x}")
            for name, value, mask in self.fields
        )
        return ",".join(shown) or "any"


@dataclass(frozen=True, slots=True)
class Output:
    """The action that sends a packet out of a port."""

    port: int

    def __str__(self) -> str:
        return f"output:{self.port}"


class Command(IntEnum):
    """What a flow-mod does; numbers of `ofp_flow_mod_command`."""

    ADD = 0
    MODIFY_STRICT = 2
    DELETE = 3
    DELETE_STRICT = 4


@dataclass(frozen=True, slots=True)
class Rule:
    """One entry of a flow table, before it gets a generation; no actions means drop."""

    priority: int
    match: Match
    actions: tuple[Output, ...] = ()
    table: int = 0

    @property
    def key(self) -> RuleKey:
        """What identifies it in its table: adding a rule with the same key replaces it."""
        return RuleKey(self.table, self.priority, self.match)

    def __str__(self) -> str:
        actions = ",".join(map(str, self.actions)) or "drop"
        return f"table={self.table},priority={self.priority},{self.match} -> {actions}"


class RuleKey(NamedTuple):
    """Table, priority and match of a rule."""

    table: int
    priority: int
    match: Match


@dataclass(frozen=True, slots=True)
class FlowMod:
    """A change of a flow table.

    Attributes:
        command: what to do.
        match: the rule's match (ADD, the STRICT ones) or a filter (DELETE: every rule within it).
        priority: 0-65535, the higher wins; ignored by DELETE.
        actions: what matched packets undergo; none means drop.
        cookie: the generation that the rule gets (ADD), or is compared with (the others).
        cookie_mask: bits of the cookie that the others compare; 0 compares none.
        table: number of the table; `ALL_TABLES` for DELETE only.
    """

    command: Command
    match: Match = field(default_factory=Match)
    priority: int = 0
    actions: tuple[Output, ...] = ()
    cookie: int = 0
    cookie_mask: int = 0
    table: int = 0

    @staticmethod
    def add(rule: Rule, cookie: int) -> FlowMod:
        """Add a rule, or replace the one with the same key."""
        return FlowMod(
            Command.ADD,
            rule.match,
            rule.priority,
            rule.actions,
            cookie,
            table=rule.table,
        )

    @staticmethod
    def remove(key: RuleKey) -> FlowMod:
        """Remove exactly one rule, whatever its generation."""
        return FlowMod(Command.DELETE_STRICT, key.match, key.priority, table=key.table)

    def __str__(self) -> str:
        rule = Rule(self.priority, self.match, self.actions, self.table)
        return f"{self.command.name} {rule} (cookie {self.cookie:#x}/{self.cookie_mask:#x})"


@dataclass(frozen=True, slots=True)
class Barrier:
    """Asks the switch to finish all that came before it and to answer.

    Attributes:
        token: 32-bit number that the answer repeats; the transaction id on the wire.
    """

    token: int


Message = FlowMod | Barrier
