"""What has arrived at the NICs of all hosts and is not due yet. PURE.

Data waits in the lane of its connection, everything else by itself. Both are found by when they
are due, so a tick costs nothing for a connection to which nothing has come.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence

from traffic.nic.arrivals import runs
from traffic.nic.connection import Connection, Tally
from traffic.nic.medium import Records
from traffic.nic.plan import PROBE_QP_BASE
from traffic.nic.probes import ProbeStream

Target = Connection | ProbeStream | None
"""Whom a frame that is no data is for; nobody knows a stranger."""

Event = tuple[int, int, Target, int, int, int]
"""(due_ns, number of its arrival, whom it is for, PSN, AETH, opcode)"""


class Inbox:
    """Takes records and gives back what is due.

    Args:
        connections: all of the run.
        probes: all streams of the run, by number.
    """

    def __init__(
        self, connections: Sequence[Connection], probes: Sequence[ProbeStream] = ()
    ) -> None:
        self._of_data = {one.receiver_qp: one for one in connections}
        self._of_rest: dict[int, Target] = {one.sender_qp: one for one in connections}
        self._of_rest |= {PROBE_QP_BASE + n: stream for n, stream in enumerate(probes)}
        self._lanes: list[tuple[int, int]] = []
        self._events: list[Event] = []
        self._number = 0

    @property
    def waits(self) -> bool:
        """True when something is not due yet."""
        return bool(self._lanes or self._events)

    def take(self, records: Records) -> None:
        """Frames that arrived, oldest first."""
        of_data = self._of_data
        for qp, times, psn, length, opcode, tos, aeth in runs(records):
            connection = of_data.get(qp)
            if connection is None:
                self._take_event(qp, times, psn, length, opcode, aeth)
                continue
            lane = connection.lane
            if lane.runs:
                lane.add(psn, times, length, opcode, tos)
            else:
                lane.add(psn, times, length, opcode, tos)
                heapq.heappush(self._lanes, (lane.next_ns, qp))

    def _take_event(
        self, qp: int, times: list[int], psn: int, length: int, opcode: int, aeth: int
    ) -> None:
        target = self._of_rest.get(qp)
        for time_ns in times:
            self._number += 1
            due_ns = time_ns
            if isinstance(target, Connection):
                due_ns = target.back.due_ns(time_ns, length)
            elif target is not None:
                due_ns += target.path.hold_ns(length)
            heapq.heappush(self._events, (due_ns, self._number, target, psn, aeth, opcode))

    def deliver(self, now_ns: int, tally: Tally) -> Iterator[Connection]:
        """Hands over the data that is due, connection by connection; yields each of them."""
        lanes = self._lanes
        while lanes and lanes[0][0] <= now_ns:
            qp = lanes[0][1]
            connection = self._of_data[qp]
            connection.deliver(now_ns, tally)
            if connection.lane.runs:
                heapq.heapreplace(lanes, (connection.lane.next_ns, qp))
            else:
                heapq.heappop(lanes)
            yield connection

    def events(self, now_ns: int) -> Iterator[Event]:
        """Everything else that is due, in the order of time."""
        events = self._events
        while events and events[0][0] <= now_ns:
            yield heapq.heappop(events)
