"""The tick loop of the NIC engine: drain, decide, fill, never a system call per packet.

The order within a tick: take what arrived and hold it until its path's delay is over; hand what
is due to its connection; start the flows that the schedule released; fill the NICs' queues up to
the horizon; send everything in one batch; sleep.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from operator import itemgetter

from traffic.nic.arrivals import runs
from traffic.nic.connection import QP_BASE, Connection, Tally
from traffic.nic.medium import Clock, Medium
from traffic.nic.outbox import Outbox
from traffic.nic.plan import PROBE_QP_BASE, Counters, Plan, Recorder, lateness_ns
from traffic.nic.probes import ProbeStream
from traffic.nic.sender import Message
from traffic.tasks import Flow
from traffic.wire import SYNDROME_ACK, Opcode

__all__ = ["PROBE_QP_BASE", "Counters", "NicEngine", "Plan", "Recorder", "lateness_ns"]

_IDLE_TICKS = 16
_NEVER = 1 << 62

Target = Connection | ProbeStream | None
"""Whom a frame that is no data is for; nobody knows a stranger."""


@dataclass(slots=True)
class NicEngine:
    """Runs a plan over a medium until it is finished, told to stop, or out of time.

    Attributes:
        plan: what to run.
        medium: the network below.
        clock: model time.
        recorder: told what happened.
        counters: what was done so far.
    """

    plan: Plan
    medium: Medium
    clock: Clock
    recorder: Recorder
    counters: Counters = field(default_factory=Counters)
    _lanes: list[tuple[int, int]] = field(init=False)
    _events: list[tuple[int, int, Target, int, int, int]] = field(init=False)
    _answering: dict[int, Connection] = field(init=False)
    _notifying: list[Connection] = field(init=False)
    _waiting: dict[int, Connection] = field(init=False)
    _number: int = field(init=False, default=0)
    _last_tick_ns: int = field(init=False)
    _last_due_ns: int = field(init=False)
    _outbox: Outbox = field(init=False)

    def __post_init__(self) -> None:
        self._lanes, self._events, self._notifying = [], [], []
        self._answering, self._waiting = {}, {}
        self._last_tick_ns = self._last_due_ns = self.clock.now_ns()
        self._outbox = Outbox(self.plan.bank, self.medium)

    def run(self, should_stop: Callable[[], bool], limit_ns: int | None = None) -> bool:
        """Runs to the end: all tasks are done, or, with probes alone, the limit.

        Args:
            should_stop: asked every tick; True ends the run in order.
            limit_ns: model time at which the run ends at the latest.

        Returns:
            True when all tasks were done.
        """
        schedule = self.plan.schedule
        self._last_tick_ns = self.clock.now_ns()
        schedule.start(self._last_tick_ns)
        end = _NEVER if limit_ns is None else limit_ns
        probes_alone = not schedule.tasks and limit_ns is not None
        while (probes_alone or not schedule.finished) and not should_stop():
            now = self.clock.now_ns()
            if now >= end:
                break
            self.tick(now)
            self.clock.sleep_until(self._wake_ns(now, end))
        return schedule.finished

    def drain(self, quiet_ns: int, limit_ns: int) -> bool:
        """Lets what is under way arrive, sending nothing any more.

        Args:
            quiet_ns: nothing arrives for this long = drained.
            limit_ns: model time to wait at most.

        Returns:
            True when the network fell silent in time.
        """
        begin = last = self.clock.now_ns()
        received = self.counters.received
        while (now := self.clock.now_ns()) - begin < limit_ns:
            self._take(now)
            self._deliver(now)
            if self.counters.received != received or self._waits or self.medium.backlog().any():
                received, last = self.counters.received, now
            if now - last >= quiet_ns:
                return True
            self.clock.sleep_until(now + self.plan.parameters.tick_ns)
        return False

    def tick(self, now: int) -> None:
        """One round. What arrives within half a period counts as there, so ticks add no delay."""
        self.counters.ticks += 1
        inside = self.medium.inside_switches()
        self.counters.inside_switches_ns += inside * (now - self._last_tick_ns)
        self._last_tick_ns = now
        self._take(now)
        self._deliver(now + self.plan.parameters.tick_ns // 2)
        self._start_flows(now)
        self._check_timeouts(now)
        self._answer()
        self._send_probes(now)
        self._fill(now)
        self.counters.refused += self._outbox.flush()
        self.recorder.tick(now)

    def _wake_ns(self, now: int, end: int) -> int:
        next_event = self.plan.schedule.next_event_ns()
        wake = end if next_event is None else min(end, next_event)
        for probe in self.plan.probes:
            if probe.next_ns < wake:
                wake = int(probe.next_ns)
        if self._waits or self._waiting or any(nic.busy for nic in self.plan.nics.values()):
            wake = min(wake, now + self.plan.parameters.tick_ns)
        return min(wake, now + _IDLE_TICKS * self.plan.parameters.tick_ns)

    def _take(self, now: int) -> None:
        """What arrived waits: data in the lane of its connection, all else by itself."""
        records = self.medium.receive()
        if not len(records):
            return
        self.counters.received += len(records)
        for qp, times, psn, length, opcode, tos, aeth in runs(records):
            target = self._target(qp)
            if isinstance(target, Connection) and qp & 1:
                if not target.lane.runs:
                    target.lane.add(psn, times, length, opcode, tos)
                    heapq.heappush(self._lanes, (target.lane.next_ns, target.number))
                else:
                    target.lane.add(psn, times, length, opcode, tos)
                continue
            for time_ns in times:
                self._number += 1
                due = self._due(target, time_ns, length)
                heapq.heappush(self._events, (due, self._number, target, psn, aeth, opcode))

    def _target(self, qp: int) -> Target:
        """The connection or the stream of probes that a queue pair belongs to."""
        known: Sequence[Connection | ProbeStream] = self.plan.connections
        number = (qp - QP_BASE) >> 1
        if qp >= PROBE_QP_BASE:
            known, number = self.plan.probes, qp - PROBE_QP_BASE
        return known[number] if 0 <= number < len(known) else None

    @staticmethod
    def _due(target: Target, time_ns: int, length: int) -> int:
        if target is None:
            return time_ns
        if isinstance(target, ProbeStream):
            return time_ns + target.path.hold_ns(length)
        return target.back.due_ns(time_ns, length)

    @property
    def _waits(self) -> bool:
        """True when something that arrived is not due yet."""
        return bool(self._lanes or self._events)

    def _deliver(self, now: int) -> None:
        """Hands over what is due: connection by connection, messages in the order of their ends."""
        tally = Tally()
        self._deliver_data(now, tally)
        self._deliver_rest(now, tally)
        if tally.last_due_ns > -_NEVER:
            self._last_due_ns = tally.last_due_ns
        self.counters.delivered += tally.packets
        self.counters.marked += tally.marked
        self._notifying += tally.notify
        for due, message in sorted(tally.done, key=itemgetter(0)):
            self._finish(message, due)

    def _deliver_data(self, now: int, tally: Tally) -> None:
        lanes = self._lanes
        while lanes and lanes[0][0] <= now:
            number = lanes[0][1]
            connection = self.plan.connections[number]
            connection.deliver(now, tally)
            self._answering[number] = connection
            if connection.lane.runs:
                heapq.heapreplace(lanes, (connection.lane.next_ns, number))
            else:
                heapq.heappop(lanes)

    def _deliver_rest(self, now: int, tally: Tally) -> None:
        events = self._events
        while events and events[0][0] <= now:
            due, _, target, psn, aeth, opcode = heapq.heappop(events)
            tally.last_due_ns = max(tally.last_due_ns, due)
            if target is None:
                self.counters.strangers += 1
            elif isinstance(target, ProbeStream):
                self._deliver_probe(target, psn, due)
            else:
                self._deliver_control(target, psn, aeth, opcode, due)

    def _finish(self, message: Message, due: int) -> None:
        schedule = self.plan.schedule
        flow = schedule.tasks[message.flow_id]
        ready = schedule.ready_ns(message.flow_id)
        schedule.flow_done(message.flow_id, due)
        assert isinstance(flow, Flow)
        self.recorder.flow_done(flow, due if ready is None else ready, message, due)

    def _deliver_control(
        self, connection: Connection, psn: int, aeth: int, opcode: int, due: int
    ) -> None:
        sender = connection.sender
        if opcode == Opcode.CNP:
            sender.on_cnp(due)
        elif aeth >> 24 == SYNDROME_ACK:
            sender.on_ack(psn, due)
        else:
            sender.on_nak(psn, due)
        self._settle(connection)

    def _settle(self, connection: Connection) -> None:
        """Queues a connection that may send and forgets one that waits for nothing."""
        sender = connection.sender
        if sender.next < sender.end:
            self.plan.nics[connection.ends.src_port].activate(connection)
        if connection.idle:
            self._waiting.pop(connection.number, None)

    def _deliver_probe(self, stream: ProbeStream, psn: int, due: int) -> None:
        measured = stream.arrive(psn, due)
        if measured is None:
            self.counters.strangers += 1
            return
        self.counters.delivered += 1
        self.recorder.probe(stream, psn, *measured)

    def _start_flows(self, now: int) -> None:
        """Those that are ready now, or by what was delivered a little early."""
        schedule = self.plan.schedule
        for flow in schedule.ready(max(now, self._last_due_ns)):
            connection = self.plan.connection_of[flow.connection]
            connection.enqueue(flow)
            self._waiting[connection.number] = connection
            self.plan.nics[connection.ends.src_port].activate(connection)
        for task, start_ns, done_ns in schedule.pop_computes():
            self.recorder.compute_done(task, start_ns, done_ns)

    def _check_timeouts(self, now: int) -> None:
        for connection in self._waiting.values():
            if connection.sender.check_timeout(now):
                self.counters.timeouts += 1
                self.plan.nics[connection.ends.src_port].activate(connection)

    def _answer(self) -> None:
        """CNPs, ACKs and NAKs for what was delivered."""
        for connection in self._notifying:
            self._outbox.add_cnp(connection)
        self.counters.cnps += len(self._notifying)
        self.counters.control_sent += len(self._notifying)
        self._notifying.clear()
        for connection in self._answering.values():
            answer = connection.receiver.pop_answer()
            if answer is not None:
                self.counters.naks += answer[0]
                self._outbox.add_ack(connection, *answer)
                self.counters.control_sent += 1
        self._answering.clear()

    def _send_probes(self, now: int) -> None:
        for stream in self.plan.probes:
            while stream.due(now):
                psn = stream.send(now)
                self._outbox.add(stream.src_port, stream.template, Opcode.SEND_ONLY, psn, 0)
                self.counters.probes_sent += 1

    def _fill(self, now: int) -> None:
        backlog = self.medium.backlog()
        horizon = now + self.plan.parameters.lookahead_ns
        for nic in self.plan.nics.values():
            if not nic.busy:
                continue
            nic.sync(now, int(backlog[nic.port]))
            for grant in nic.fill(now, horizon):
                self._outbox.add_burst(grant)
                self.counters.data_sent += grant.burst.count
                self.counters.retransmitted += grant.burst.again
