"""What has arrived at the NICs of all hosts and is not due yet. PURE.

Data waits in the lane of its connection, everything else by itself. Both are found by when they
are due, so a tick costs nothing for a connection to which nothing has come.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence

from traffic.nic.arrivals import joined, singles
from traffic.nic.connection import Connection, Tally
from traffic.nic.medium import Records
from traffic.nic.plan import PROBE_QP_BASE
from traffic.nic.probes import ProbeStream

CUT = -1
"""Stands for the opcode of a packet that came cut to its headers."""
_MANY = 512

Target = Connection | ProbeStream | None
"""Whom a frame that is no data is for; nobody knows a stranger."""

Event = tuple[int, int, int, Target, int, int, int]
"""(due_ns, queue pair, number of its arrival, whom it is for, PSN, AETH, opcode)"""


class Inbox:
    """Takes records and gives back what is due.

    Args:
        connections: all of the run.
        probes: all streams of the run, by number.
    """

    def __init__(
        self, connections: Sequence[Connection], probes: Sequence[ProbeStream] = ()
    ) -> None:
        self._connections = {one.receiver_qp: one for one in connections}
        self._lane_of = {one.receiver_qp: one.lane for one in connections}
        self._others: dict[int, Target] = {one.sender_qp: one for one in connections}
        self._others |= {PROBE_QP_BASE + n: stream for n, stream in enumerate(probes)}
        self._lanes: list[tuple[int, int]] = []
        self._events: list[Event] = []
        self._number = 0

    @property
    def waits(self) -> bool:
        """True when something is not due yet."""
        return bool(self._lanes or self._events)

    def take(self, records: Records) -> None:
        """Frames that arrived, oldest first."""
        cut = records["trimmed"] != 0
        if cut.any():
            self._take_cut(records[cut])
            records = records[~cut]
        if len(records) < _MANY:
            self._take_singles(records)
        else:
            self._take_runs(records)

    def _take_cut(self, records: Records) -> None:
        """Packets that were cut on the way: they overtake whole ones, so no lane has them."""
        for qp, time_ns, psn, length, _, _, aeth in singles(records):
            connection = self._connections.get(qp)
            if connection is None:
                self._take_other(qp, time_ns, psn, length, CUT, aeth)
                continue
            self._number += 1
            due_ns = time_ns + connection.lane.hold_ns(length)
            heapq.heappush(self._events, (due_ns, qp, self._number, connection, psn, aeth, CUT))

    def _take_singles(self, records: Records) -> None:
        """One by one, which is sooner done than joining them when they are few."""
        lane_of = self._lane_of
        for qp, time_ns, psn, length, opcode, tos, aeth in singles(records):
            lane = lane_of.get(qp)
            if lane is None:
                self._take_other(qp, time_ns, psn, length, opcode, aeth)
                continue
            begins = not lane.runs
            lane.add(psn, time_ns, length, opcode, tos)
            if begins:
                heapq.heappush(self._lanes, (lane.next_ns, qp))

    def _take_runs(self, records: Records) -> None:
        lane_of = self._lane_of
        for qp, times, psn, length, opcode, tos, aeth in joined(records):
            lane = lane_of.get(qp)
            if lane is None:
                for number, time_ns in enumerate(times):
                    self._take_other(qp, time_ns, psn + number, length, opcode, aeth)
                continue
            begins = not lane.runs
            lane.add_run(psn, times, length, opcode, tos)
            if begins:
                heapq.heappush(self._lanes, (lane.next_ns, qp))

    def _take_other(
        self, qp: int, time_ns: int, psn: int, length: int, opcode: int, aeth: int
    ) -> None:
        target = self._others.get(qp)
        if isinstance(target, Connection):
            time_ns = target.back.due_ns(time_ns, length)
        elif target is not None:
            time_ns += target.path.hold_ns(length)
        self._number += 1
        heapq.heappush(self._events, (time_ns, qp, self._number, target, psn, aeth, opcode))

    def deliver(self, now_ns: int, tally: Tally) -> Iterator[Connection]:
        """Hands over the data that is due, connection by connection; yields each of them."""
        lanes = self._lanes
        while lanes and lanes[0][0] <= now_ns:
            qp = lanes[0][1]
            connection = self._connections[qp]
            connection.deliver(now_ns, tally)
            if connection.lane.runs:
                heapq.heapreplace(lanes, (connection.lane.next_ns, qp))
            else:
                heapq.heappop(lanes)
            yield connection

    def events(self, now_ns: int) -> Iterator[Event]:
        """Everything else that is due, in the order of time, then of queue pairs."""
        events = self._events
        while events and events[0][0] <= now_ns:
            yield heapq.heappop(events)
