"""The tick loop of the NIC engine: drain, decide, fill, never a system call per packet.

The order within a tick: take what arrived and hold it until its path's delay is over; hand what
is due to its connection; start the flows that the schedule released; fill the NICs' queues up to
the horizon; send everything in one batch; sleep.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from operator import itemgetter

from traffic.entropies import offsets
from traffic.nic.connection import Connection, Tally
from traffic.nic.credits import CreditPacers
from traffic.nic.inbox import CUT, Inbox
from traffic.nic.medium import Clock, Medium
from traffic.nic.outbox import Outbox
from traffic.nic.parameters import NicParameters
from traffic.nic.plan import PROBE_QP_BASE, Counters, Plan, Recorder, lateness_ns
from traffic.nic.probes import Calendar, ProbeStream
from traffic.nic.scatter import ScatterInbox
from traffic.nic.sender import Message
from traffic.nic.spraying import SprayOutbox
from traffic.nic.timers import Timers
from traffic.nic.transports import sprays
from traffic.tasks import Flow
from traffic.uet_params import RCCC, UEC
from traffic.wire import SYNDROME_ACK, Opcode

__all__ = ["PROBE_QP_BASE", "Counters", "NicEngine", "Plan", "Recorder", "lateness_ns"]

_IDLE_TICKS = 16
_NEVER = 1 << 62


def pool_of(parameters: NicParameters) -> list[int]:
    """What each entropy changes in the source ports of connections that spray."""
    return offsets((parameters.uet or UEC).entropies, f"{parameters.seed}/entropies")


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
    _inbox: Inbox = field(init=False)
    _outbox: Outbox | SprayOutbox = field(init=False)
    _credits: CreditPacers | None = field(init=False)
    _timers: Timers = field(init=False)
    _calendar: Calendar = field(init=False)
    _busy: set[int] = field(init=False)
    _waiting: set[int] = field(init=False)
    _answering: dict[int, Connection] = field(init=False)
    _notifying: list[Connection] = field(init=False)
    _last_tick_ns: int = field(init=False)
    _last_due_ns: int = field(init=False)

    def __post_init__(self) -> None:
        self._connect()
        self._timers = Timers(self.plan.connections)
        self._calendar = Calendar(self.plan.probes)
        self._busy, self._waiting = set(), set()
        self._answering, self._notifying = {}, []
        self._last_tick_ns = self._last_due_ns = self.clock.now_ns()

    def _connect(self) -> None:
        """What the transport needs: packets in runs, or each by itself."""
        plan = self.plan
        self._credits = None
        if not sprays(plan.parameters.transport):
            self._inbox = Inbox(plan.connections, plan.probes)
            self._outbox = Outbox(plan.bank, self.medium)
            return
        params = plan.parameters.uet or UEC
        self._inbox = ScatterInbox(plan.connections, plan.probes)
        self._outbox = SprayOutbox(plan.bank, self.medium, pool_of(plan.parameters))
        if RCCC in plan.parameters.control.split("+"):
            rates_bps = {port: nic.rate_bps for port, nic in plan.nics.items()}
            self._credits = CreditPacers(
                plan.connections, rates_bps, params.credit_share, params.credit_packets
            )

    def run(self, should_stop: Callable[[], bool], limit_ns: int | None = None) -> bool:
        """Runs to the end: all tasks are done, or, with probes alone, the limit.

        Args:
            should_stop: asked every tick; True ends the run in order.
            limit_ns: model time at which the run ends at the latest.

        Returns:
            True when all tasks were done.
        """
        schedule = self.plan.schedule
        now = self._last_tick_ns = self.clock.now_ns()
        schedule.start(now)
        end = _NEVER if limit_ns is None else limit_ns
        probes_alone = not schedule.tasks and limit_ns is not None
        while now < end and (probes_alone or not schedule.finished) and not should_stop():
            self.tick(now)
            now = self.clock.sleep_until(self._wake_ns(now, end))
        return schedule.finished

    def drain(self, quiet_ns: int, limit_ns: int) -> bool:
        """Lets what is under way arrive, sending nothing any more.

        Args:
            quiet_ns: nothing arrives for this long = drained.
            limit_ns: model time to wait at most.

        Returns:
            True when the network fell silent in time.
        """
        now = begin = last = self.clock.now_ns()
        received = self.counters.received
        while now - begin < limit_ns:
            self._take(now)
            self._deliver(now)
            waits = self._inbox.waits
            if self.counters.received != received or waits or self.medium.backlog().any():
                received, last = self.counters.received, now
            if now - last >= quiet_ns:
                return True
            now = self.clock.sleep_until(now + self.plan.parameters.tick_ns)
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
        self._give_credits(now)
        self._answer(now)
        self._send_probes(now)
        self._fill(now)
        self.counters.refused += self._outbox.flush()
        self.recorder.tick(now)

    def _wake_ns(self, now: int, end: int) -> int:
        tick_ns = self.plan.parameters.tick_ns
        busy = self._waiting or self._busy or self._inbox.waits
        busy = busy or (self._credits is not None and self._credits.busy)
        wake = min(end, now + (tick_ns if busy else _IDLE_TICKS * tick_ns))
        for event_ns in (self.plan.schedule.next_event_ns(), self._calendar.next_ns):
            if event_ns is not None and event_ns < wake:
                wake = event_ns
        return wake

    def _take(self, now: int) -> None:
        """What arrived waits until the rest of its path's delay is over."""
        records = self.medium.receive()
        if len(records):
            self.counters.received += len(records)
            self._inbox.take(records)

    def _deliver(self, now: int) -> None:
        """Hands over what is due: connection by connection, messages in the order of their ends."""
        tally = Tally()
        for connection in self._inbox.deliver(now, tally):
            self._answering[connection.number] = connection
        for due, qp, _, target, psn, aeth, opcode in self._inbox.events(now):
            tally.last_due_ns = max(tally.last_due_ns, due)
            if target is None:
                self.counters.strangers += 1
            elif opcode == CUT:
                self._deliver_cut(target, qp, psn)
            elif isinstance(target, Connection):
                self._deliver_control(target, psn, aeth, opcode, due)
            else:
                self._deliver_probe(target, psn, due)
        if tally.last_due_ns > -_NEVER:
            self._last_due_ns = tally.last_due_ns
        self.counters.delivered += tally.packets
        self.counters.marked += tally.marked
        self._notifying += tally.notify
        for due, message in sorted(tally.done, key=itemgetter(0)):
            self._finish(message, due)

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
        elif aeth >> 24 & 0xFF == SYNDROME_ACK:
            sender.on_ack(psn, due, aeth)
        else:
            sender.on_nak(psn, due, aeth)
        if not connection.queued and sender.has_more:
            self._activate(connection)
        if sender.idle:
            self._waiting.discard(connection.number)

    def _deliver_cut(self, target: Connection | ProbeStream, qp: int, psn: int) -> None:
        """A packet of which only the headers have come: a probe is lost, data is asked for."""
        self.counters.trimmed += 1
        if isinstance(target, Connection) and qp == target.receiver_qp:
            target.receiver.on_trimmed(psn)
            self._answering[target.number] = target

    def _activate(self, connection: Connection) -> None:
        """The connection may have something to send."""
        port = connection.ends.src_port
        self.plan.nics[port].activate(connection)
        self._busy.add(port)

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
            self._waiting.add(connection.number)
            self._activate(connection)
        for task, start_ns, done_ns in schedule.pop_computes():
            self.recorder.compute_done(task, start_ns, done_ns)

    def _check_timeouts(self, now: int) -> None:
        for connection in self._timers.expire(now):
            self.counters.timeouts += 1
            self._activate(connection)

    def _give_credits(self, now: int) -> None:
        """Receivers let their senders go on."""
        if self._credits is None:
            return
        for connection in self._answering.values():
            self._credits.want(connection)
        for connection in self._credits.give(now):
            self._answering[connection.number] = connection

    def _answer(self, now: int) -> None:
        """CNPs, ACKs and NAKs for what was delivered."""
        for connection in self._notifying:
            self._outbox.add_cnp(connection)
        self.counters.cnps += len(self._notifying)
        self.counters.control_sent += len(self._notifying)
        self._notifying.clear()
        for connection in self._answering.values():
            frames, naks = self._outbox.answer(connection, now)
            self.counters.naks += naks
            self.counters.control_sent += frames
        self._answering.clear()

    def _send_probes(self, now: int) -> None:
        for stream, psn in self._calendar.send(now):
            self._outbox.add(stream.src_port, stream.template, Opcode.SEND_ONLY, psn, 0)
            self.counters.probes_sent += 1

    def _fill(self, now: int) -> None:
        """Fills the queues of the NICs that have something to send, by port."""
        if not self._busy:
            return
        backlog, paused = self.medium.backlog(), self.medium.paused()
        horizon = now + self.plan.parameters.lookahead_ns
        for port in sorted(self._busy):
            nic = self.plan.nics[port]
            nic.sync(now, backlog.item(port), paused.item(port))
            for grant in nic.fill(now, horizon):
                self._outbox.add_burst(grant)
                self._timers.watch(grant.connection)
                self.counters.data_sent += grant.burst.count
                self.counters.retransmitted += grant.burst.again
            if not nic.busy:
                self._busy.discard(port)
