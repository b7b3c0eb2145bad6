"""Which packets a host's NIC may put into its egress queue now. PURE.

The queue below shapes to the line rate, so the engine only has to keep it fed: it fills up to a
horizon a little ahead of now, round robin over connections. A class that is paused has what it
needs in the queue already and gets no more, so it holds up no other class. The NIC notes when it
could have sent but came late, the emulation's own fault and part of the verdict.
"""

from __future__ import annotations

import math
from array import array
from collections import deque
from typing import NamedTuple

from traffic.nic.connection import Connection
from traffic.nic.sender import Burst

_TURN_PACKETS = 4


class Grant(NamedTuple):
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
        self._paused = 0

    def activate(self, connection: Connection) -> None:
        """The connection may have something to send."""
        if not connection.queued:
            connection.queued = True
            self._active.append(connection)

    @property
    def busy(self) -> bool:
        """True while some connection wants to send."""
        return bool(self._active)

    def sync(self, now_ns: int, backlog_bytes: int, paused: int = 0) -> None:
        """Takes over what is really in the queue, and notes whether it ran dry for want of us.

        Args:
            now_ns: now.
            backlog_bytes: wire bytes that wait and may leave.
            paused: classes that may not, as bits.
        """
        same, self._paused = paused == self._paused, paused
        if self._backlogged and same:  # what has been paused since is no dry queue
            late = 0 if backlog_bytes else max(0, int(now_ns - self.free_ns))
            self.lateness_ns.append(late)
        self.free_ns = now_ns + backlog_bytes * 8e9 / self.rate_bps

    def fill(self, now_ns: int, horizon_ns: int) -> list[Grant]:
        """Grants packets until the queue reaches to the horizon or nothing is eligible.

        Connections take turns of a few packets; one that is alone gets all that it may send.
        """
        grants: list[Grant] = []
        active, waiting = self._active, 0
        while self.free_ns < horizon_ns and waiting < len(active):
            connection = active[0]
            count = connection.sender.allowed()
            if count <= 0:
                connection.queued = False
                active.popleft()
                continue
            if len(active) > 1:
                count = min(count, _TURN_PACKETS)
            count = self._eligible(connection, count, now_ns, horizon_ns)
            if count > 0:
                waiting = 0
                grants.append(self._grant(connection, count, now_ns))
            else:
                waiting += 1
            active.rotate(-1)
        self._backlogged = self.free_ns >= horizon_ns and self._has_more(now_ns)
        return grants

    def _has_more(self, now_ns: int) -> bool:
        """Whether some connection could go on as soon as the queue, which is full, is empty.

        A queue that does not reach to the horizon was given all that there was for it.
        """
        for connection in self._active:
            if self._paused >> connection.traffic_class & 1:
                continue
            sender = connection.sender
            if sender.allowed() > 0 and sender.due_ns(now_ns) <= self.free_ns:
                return True
        return False

    def _eligible(self, connection: Connection, most: int, now_ns: int, horizon_ns: int) -> int:
        """How many packets, of those allowed, may go now: by room in the queue and by rate."""
        if self._paused >> connection.traffic_class & 1:
            return 0
        sender = connection.sender
        count = min(most, math.ceil((horizon_ns - self.free_ns) / connection.line_gap_ns))
        rate_bps = sender.rate_bps(now_ns)
        if rate_bps is None:
            return count
        ahead_ns = horizon_ns - max(sender.due_ns(now_ns), now_ns)
        gap_ns = connection.wire_bytes * 8e9 / rate_bps
        return min(count, math.ceil(ahead_ns / gap_ns)) if ahead_ns > 0 else 0

    def _grant(self, connection: Connection, count: int, now_ns: int) -> Grant:
        burst = connection.sender.take(count, now_ns)
        burst.start_ns = self.free_ns
        line_bytes = connection.line_bytes(burst)
        connection.sender.on_sent(now_ns, line_bytes)
        line_ns = line_bytes * 8e9 / self.rate_bps
        self.free_ns += line_ns
        self.busy_ns += line_ns
        return Grant(connection, burst)
