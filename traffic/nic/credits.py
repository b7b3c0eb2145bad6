"""Receivers that give credits: near the rate of their link, to their senders in turn. PURE.

RCCC, the receiver's congestion control of Ultra Ethernet (and of EQDS, Olteanu et al., NSDI 2022):
every sender says how many packets it wants to have sent; the receiver gives credits for as many as
its link carries. What a NIC gives in a tick it gives at once, a few packets to each in turn.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

from traffic.nic.connection import Connection
from traffic.nic.transports.uet_receiver import UetReceiver


class CreditPacer:
    """Gives the credits of one receiving port.

    Args:
        packet_ns: time between two of them.
        at_once: packets that a sender gets in its turn.
    """

    def __init__(self, packet_ns: float, at_once: int) -> None:
        self._packet_ns, self._at_once = packet_ns, at_once
        self._due_ns = 0.0
        self._waiting: deque[Connection] = deque()
        self._queued: set[int] = set()

    def want(self, connection: Connection) -> None:
        """A connection may want credits."""
        if connection.number not in self._queued and _wants(connection) > 0:
            self._queued.add(connection.number)
            self._waiting.append(connection)

    @property
    def idle(self) -> bool:
        """True when nobody wants any."""
        return not self._waiting

    def give(self, now_ns: int) -> Iterator[Connection]:
        """Gives what is due until now; those who got some, as often as they did."""
        self._due_ns = max(self._due_ns, now_ns - self._at_once * self._packet_ns)
        while self._waiting and self._due_ns <= now_ns:
            connection = self._waiting.popleft()
            packets = min(self._at_once, _wants(connection))
            connection.receiver.grant(packets)
            self._due_ns += packets * self._packet_ns
            if _wants(connection) > 0:
                self._waiting.append(connection)
            else:
                self._queued.discard(connection.number)
            yield connection


def _wants(connection: Connection) -> int:
    """Packets that a connection wants credits for."""
    receiver: UetReceiver = connection.receiver
    return receiver.wanted - receiver.granted


class CreditPacers:
    """Those of all receiving ports.

    Args:
        connections: all of the run.
        rates_bps: line rate of each port.
        share: of a line that credits are given for.
        at_once: packets that a sender gets in its turn.
    """

    def __init__(
        self,
        connections: Iterable[Connection],
        rates_bps: dict[int, int],
        share: float,
        at_once: int,
    ) -> None:
        self._pacers: dict[int, CreditPacer] = {}
        for connection in connections:
            port = connection.ends.dst_port
            packet_ns = connection.wire_bytes * 8e9 / (rates_bps[port] * share)
            self._pacers.setdefault(port, CreditPacer(packet_ns, at_once))
        self._busy: set[int] = set()

    @property
    def busy(self) -> bool:
        """True while somebody wants credits."""
        return bool(self._busy)

    def want(self, connection: Connection) -> None:
        """Something has come for a connection."""
        port = connection.ends.dst_port
        self._pacers[port].want(connection)
        if not self._pacers[port].idle:
            self._busy.add(port)

    def give(self, now_ns: int) -> Iterator[Connection]:
        """Gives what is due until now, port by port; the connections that got some."""
        for port in sorted(self._busy):
            yield from self._pacers[port].give(now_ns)
            if self._pacers[port].idle:
                self._busy.discard(port)
