"""The flow tables and priority bands that we use, declared as data.

`Pipeline.check` refuses a message that uses anything undeclared, when it is made and not when a
switch rejects it: an unknown table or priority, a field or mask that the table does not have, a
missing prerequisite (OpenFlow 1.3.5 section 7.2.3.8), a value with bits outside of its mask.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from controller.core.messages import (
    ALL_TABLES,
    ETH_TYPE_IPV4,
    FIELD_BITS,
    IP_PROTO_TCP,
    IP_PROTO_UDP,
    Barrier,
    Command,
    FlowMod,
    Match,
    Message,
    full_mask,
)

PREREQUISITES: Mapping[str, tuple[str, int]] = {
    "ip_proto": ("eth_type", ETH_TYPE_IPV4),
    "ipv4_dst": ("eth_type", ETH_TYPE_IPV4),
    "tcp_src": ("ip_proto", IP_PROTO_TCP),
    "udp_src": ("ip_proto", IP_PROTO_UDP),
}
"""Field -> the field and value that a match must also have."""

MAX_PORT = 0xFFFFFF00
"""OFPP_MAX: numbers above it are reserved (flood, controller, ...), which we never use."""


class PipelineError(ValueError):
    """A message uses what the pipeline does not declare; a fault of this program, not of a user."""


@dataclass(frozen=True)
class Band:
    """The rules of one purpose, all of one priority and with the same fields.

    Attributes:
        name: its purpose.
        priority: 0-65535, the higher wins.
        fields: sets of fields that its matches may consist of.
    """

    name: str
    priority: int
    fields: frozenset[frozenset[str]]


def _band(name: str, priority: int, *fields: str) -> Band:
    return Band(name, priority, frozenset(frozenset(entry.split()) for entry in fields))


OWN_HOST = _band("own-host", 4000, "eth_type ipv4_dst")
REMOTE_HOST = _band("remote-host", 3000, "eth_type ipv4_dst")
BUCKET = _band(
    "bucket",
    2000,
    "eth_type ipv4_dst ip_proto udp_src",
    "eth_type ipv4_dst ip_proto tcp_src",
)
REMOTE_LEAF = _band("remote-leaf", 1000, "eth_type ipv4_dst")
MISS = _band("miss", 0, "")


@dataclass(frozen=True)
class Table:
    """One flow table.

    Attributes:
        number: OpenFlow table id.
        name: its purpose.
        bands: the priority bands that its rules lie in.
        masked: fields that may be compared in part.
    """

    number: int
    name: str
    bands: tuple[Band, ...]
    masked: frozenset[str]


FORWARD = Table(
    0,
    "forward",
    (OWN_HOST, REMOTE_HOST, BUCKET, REMOTE_LEAF, MISS),
    frozenset({"ipv4_dst", "tcp_src", "udp_src"}),
)


class Pipeline:
    """A set of tables that refuses what it does not declare."""

    def __init__(self, tables: tuple[Table, ...]) -> None:
        self._masked = {table.number: table.masked for table in tables}
        self._shapes = {
            (table.number, band.priority): band.fields for table in tables for band in table.bands
        }
        if len(self._shapes) != sum(len(table.bands) for table in tables):
            raise PipelineError("two bands of a table have the same priority")
        self._accepted: set[tuple[int, int, Match]] = set()

    def check(self, message: Message) -> None:
        """Raise `PipelineError` when a message uses anything that is not declared."""
        if isinstance(message, Barrier):
            return
        if message.command is Command.DELETE:
            self._check_filter(message)
            return
        self._check_rule(message.table, message.priority, message.match)
        for action in message.actions:
            if not 1 <= action.port <= MAX_PORT:
                raise PipelineError(f"output to port {action.port}, not a port of a switch")

    def _check_filter(self, message: FlowMod) -> None:
        if message.table != ALL_TABLES and message.table not in self._masked:
            raise PipelineError(f"table {message.table} is not declared")
        check_match(message.match)

    def _check_rule(self, table: int, priority: int, match: Match) -> None:
        if (table, priority, match) in self._accepted:
            return
        if table not in self._masked:
            raise PipelineError(f"table {table} is not declared")
        shapes = self._shapes.get((table, priority))
        if shapes is None:
            raise PipelineError(f"priority {priority} is no band of table {table}")
        names = frozenset(field.name for field in match.fields)
        if names not in shapes:
            raise PipelineError(f"{match}: these fields are not those of priority {priority}")
        for field in match.fields:
            if not field.exact and field.name not in self._masked[table]:
                raise PipelineError(f"{match}: {field.name} may not be masked in table {table}")
        check_match(match)
        self._accepted.add((table, priority, match))


def check_match(match: Match) -> None:
    """Raise `PipelineError` for a match that every switch has to reject."""
    for field in match.fields:
        if field.name not in FIELD_BITS:
            raise PipelineError(f"{field.name} is not a field that we know")
    exact = {field.name: field.value for field in match.fields if field.exact}
    if len({field.name for field in match.fields}) != len(match.fields):
        raise PipelineError(f"{match}: a field stands in it twice")
    for name, value, mask in match.fields:
        if not 0 < mask <= full_mask(name):
            raise PipelineError(f"{match}: mask of {name} is empty or too wide")
        if value & ~mask:
            raise PipelineError(f"{match}: {name} has bits outside of its mask")
        if name in PREREQUISITES:
            needed, number = PREREQUISITES[name]
            if exact.get(needed) != number:
                raise PipelineError(f"{match}: {name} needs {needed}={number:#x}")


PIPELINE = Pipeline((FORWARD,))
"""The pipeline of every switch."""
