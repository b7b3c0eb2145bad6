"""Retransmission timers of all connections, of which a tick looks only at those that may be over.

A deadline that moves to a later time, as with every acknowledgement, is not noted anew: when the
time that was noted has come, the connection is asked for its deadline of then.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from traffic.nic.connection import Connection

_NEVER_NS = 1 << 62


class Timers:
    """The connections that wait for an acknowledgement, by when to look at them again.

    Args:
        connections: all of the run, by number.
    """

    def __init__(self, connections: Sequence[Connection]) -> None:
        self._connections = connections
        self._heap: list[tuple[int, int]] = []
        self._noted_ns: dict[int, int] = {}

    def watch(self, connection: Connection) -> None:
        """The connection has sent something, or has been looked at."""
        deadline_ns = connection.sender.deadline_ns
        number = connection.number
        if deadline_ns is not None and deadline_ns < self._noted_ns.get(number, _NEVER_NS):
            self._noted_ns[number] = deadline_ns
            heapq.heappush(self._heap, (deadline_ns, number))

    def expire(self, now_ns: int) -> list[Connection]:
        """Makes the connections go back whose deadline has passed; those, by their deadlines."""
        gone_back = []
        while self._heap and self._heap[0][0] <= now_ns:
            noted_ns, number = heapq.heappop(self._heap)
            if noted_ns != self._noted_ns.get(number):
                continue  # looked at already, for an earlier deadline
            del self._noted_ns[number]
            connection = self._connections[number]
            if connection.sender.check_timeout(now_ns):
                gone_back.append(connection)
            self.watch(connection)
        return gone_back
