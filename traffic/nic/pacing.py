"""Which packets a host's NIC may put into its egress queue now. PURE.

The queue below shapes to the line rate, so the engine only has to keep it fed: it fills up to a
horizon a little ahead of now, round robin over connections. The NIC notes when it could have sent
but came late, the emulation's own fault and part of the verdict.
"""

from __future__ import annotations

import math
from array import array
from collections import deque
from dataclasses import dataclass

from traffic.nic.connection import Connection
from traffic.nic.sender import Burst

_TURN_PACKETS = 4


@dataclass(frozen=True, slots=True)
class Grant:
    """Packets of a connection that go into the queue now."""

    connection: Connection
    burst: Burst


class NicQueue:
    """The sending side of one host port.

    Attributes:
        free_ns: when the queue will be empty.
        lateness_ns: how long it had been empty at each tick that found it backlogged before.
        busy_ns: line time of all data packets sent.

    Args:
        port: index in `Fabric.ports`.
        rate_bps: line rate, bit/s.
    """

    def __init__(self, port: int, rate_bps: int) -> None:
        self.port, self.rate_bps = port, rate_bps
        self.free_ns = 0.0
        self.lateness_ns: array[int] = array("q")
        self.busy_ns = 0.0
        self._active: deque[Connection] = deque()
        self._backlogged = False

    def activate(self, connection: Connection) -> None:
        """The connection may have something to send."""
        if not connection.queued:
            connection.queued = True
            self._active.append(connection)

    @property
    def busy(self) -> bool:
        """True while some connection wants to send."""
        return bool(self._active)

    def sync(self, now_ns: int, backlog_bytes: int) -> None:
        """Takes over what is really in the queue, and notes whether it ran dry for want of us."""
        if self._backlogged:
            late = 0 if backlog_bytes else max(0, int(now_ns - self.free_ns))
            self.lateness_ns.append(late)
        self.free_ns = now_ns + backlog_bytes * 8e9 / self.rate_bps

    def fill(self, now_ns: int, horizon_ns: int) -> list[Grant]:
        """Grants packets until the queue reaches to the horizon or nothing is eligible."""
        grants: list[Grant] = []
        waiting = 0
        while self.free_ns < horizon_ns and waiting < len(self._active):
            connection = self._active[0]
            count = self._eligible(connection, now_ns, horizon_ns)
            if count > 0:
                waiting = 0
                grants.append(self._grant(connection, count, now_ns))
                self._active.rotate(-1)
            elif connection.sender.allowed() > 0:
                waiting += 1
                self._active.rotate(-1)
            else:
                connection.queued = False
                self._active.popleft()
        self._backlogged = self._has_more(now_ns)
        return grants

    def _has_more(self, now_ns: int) -> bool:
        """Whether some connection could go on as soon as the queue is empty.

        Only when the queue reaches to the horizon: else it would have been granted its packets.
        """
        return any(
            connection.sender.allowed() > 0 and connection.sender.due_ns(now_ns) <= self.free_ns
            for connection in self._active
        )

    def _eligible(self, connection: Connection, now_ns: int, horizon_ns: int) -> int:
        """How many packets may go now: by window, room in the queue, turn, and rate."""
        sender = connection.sender
        room = math.ceil((horizon_ns - self.free_ns) / connection.line_gap_ns)
        count = min(sender.allowed(), room, _TURN_PACKETS)
        rate_bps = sender.rate_bps(now_ns)
        if count <= 0 or rate_bps is None:
            return count
        ahead_ns = horizon_ns - max(sender.due_ns(now_ns), now_ns)
        gap_ns = connection.wire_bytes * 8e9 / rate_bps
        return min(count, math.ceil(ahead_ns / gap_ns)) if ahead_ns > 0 else 0

    def _grant(self, connection: Connection, count: int, now_ns: int) -> Grant:
        burst = connection.sender.take(count, now_ns)
        line_bytes = connection.line_bytes(burst)
        connection.sender.on_sent(now_ns, line_bytes)
        line_ns = line_bytes * 8e9 / self.rate_bps
        self.free_ns += line_ns
        self.busy_ns += line_ns
        return Grant(connection, burst)
