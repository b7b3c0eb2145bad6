"""One reliable connection: its two ends, the delay of its path, its frames. PURE."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from traffic.nic import transports
from traffic.nic.lane import ENDS_MESSAGE, Lane, Line, Run
from traffic.nic.ordering import Reorderer
from traffic.nic.parameters import NicParameters
from traffic.nic.sender import Burst, Message, unwrap
from traffic.tasks import Flow
from traffic.wire import PSN_MASK, FlowAddress, data_frame_bytes, traffic_class, wire_bytes

QP_BASE = 0x100
_REORDER_TICKS = 4
_NEVER = -1


@dataclass(frozen=True, slots=True)
class Path:
    """Delay of a path in an idle fabric, as an affine function of the frame's wire bytes.

    Attributes:
        fixed_ns: propagation and switch latency that the receiving NIC still has to wait for.
        ns_per_byte: serialisation on all links that the receiving NIC still has to wait for.
    """

    fixed_ns: float
    ns_per_byte: float

    def hold_ns(self, frame_bytes: int) -> int:
        """How long the receiving NIC keeps a frame so that it arrives on time."""
        return max(0, round(self.fixed_ns + self.ns_per_byte * wire_bytes(frame_bytes)))


@dataclass(frozen=True, slots=True)
class Endpoints:
    """Where a connection runs.

    Attributes:
        src_port: index of the sending host's port in `Fabric.ports`.
        dst_port: index of the receiving host's port.
        address: headers of the forward direction; `dest_qp` is set by the connection.
        rate_bps: line rate of the sending port, bit/s.
        path: delay of the path of data.
        back: delay of the way back.
    """

    src_port: int
    dst_port: int
    address: FlowAddress
    rate_bps: int
    path: Path
    back: Path


@dataclass(slots=True)
class Templates:
    """Numbers of a connection's frames in the run's `FrameBank`."""

    full: int = -1
    tails: dict[int, int] = field(default_factory=dict)
    ack: int = -1
    cnp: int = -1


@dataclass(slots=True)
class Tally:
    """What the delivery of what was due amounts to.

    Attributes:
        packets: how many were handed to their receiving ends.
        marked: how many of them with CE.
        last_due_ns: when the last of those that were due was.
        done: when each message that is complete was, and which.
        notify: connections whose sender is to get a CNP, as often as it is.
    """

    packets: int = 0
    marked: int = 0
    last_due_ns: int = -1 << 63
    done: list[tuple[int, Message]] = field(default_factory=list)
    notify: list[Connection] = field(default_factory=list)


class Connection:
    """A queue pair on each of two hosts.

    Args:
        number: position among all connections of the run; makes the queue pair numbers.
        ends: where it runs.
        parameters: transport settings.
    """

    __slots__ = (
        "arriving", "back", "ends", "frame_bytes", "lane", "line_gap_ns", "number",
        "order", "queued", "receiver", "sender", "templates", "traffic_class", "wire_bytes",
    )  # fmt: skip

    def __init__(self, number: int, ends: Endpoints, parameters: NicParameters) -> None:
        self.number, self.ends = number, ends
        self.sender, self.receiver = transports.build(ends.rate_bps, parameters, number)
        self.lane, self.back = Lane(ends.path.hold_ns), Line(ends.back.hold_ns)
        window_ns = _REORDER_TICKS * parameters.tick_ns if parameters.overtaking else _NEVER
        self.order = Reorderer(self.lane, window_ns)
        self.arriving: deque[Message] = deque()
        self.templates = Templates()
        self.frame_bytes = data_frame_bytes(parameters.payload_bytes)
        self.wire_bytes = wire_bytes(self.frame_bytes)
        self.line_gap_ns = self.wire_bytes * 8e9 / ends.rate_bps
        self.queued = False
        self.traffic_class = traffic_class(ends.address.dscp)

    @property
    def sender_qp(self) -> int:
        """Queue pair number at the sending host, the target of ACK and CNP."""
        return QP_BASE + 2 * self.number

    @property
    def receiver_qp(self) -> int:
        """Queue pair number at the receiving host, the target of data."""
        return QP_BASE + 2 * self.number + 1

    def enqueue(self, flow: Flow) -> None:
        """Gives a flow to the sending end."""
        self.arriving.append(self.sender.enqueue(flow.id, flow.size_bytes))

    def line_bytes(self, burst: Burst) -> int:
        """Line time of a burst, as bytes; the last packet of a message may be short."""
        total = burst.count * self.wire_bytes
        if burst.first + burst.count == burst.message.end:
            total += wire_bytes(data_frame_bytes(burst.message.tail_bytes)) - self.wire_bytes
        return total

    def deliver(self, limit_ns: int, tally: Tally) -> None:
        """Hands the data that is due over to the receiving end, whole runs where that is the same.

        Args:
            limit_ns: what is due until then.
            tally: where what happens is added up.
        """
        runs, order, receiver = self.lane.runs, self.order, self.receiver
        while runs and (count := runs[0].due(limit_ns)):
            run, expected24 = runs[0], receiver.expected & PSN_MASK
            overtaking = run.first != expected24 and order.waits_for(expected24, run.first)
            if order.held or overtaking:
                self._one_by_one(run, count, tally)
            else:
                self._together(run, count, tally)

    def _together(self, run: Run, count: int, tally: Tally) -> None:
        """The next packets of a run, none of which has to wait for another one."""
        first, due_ns = run.first, run.due_ns(run.at + count - 1)
        if run.marked:
            self._mark(run, count, tally)
        self.lane.take_off(count)
        tally.packets += count
        if due_ns > tally.last_due_ns:
            tally.last_due_ns = due_ns
        done = self.receiver.on_run(first, count, run.ends_message)
        while done:
            tally.done.append((due_ns, self.arriving.popleft()))
            done -= 1

    def _mark(self, run: Run, count: int, tally: Tally) -> None:
        """The next packets of a run carry CE."""
        tally.marked += count
        self._count_marks(run.first, count)
        cnps = self.receiver.on_marks(map(run.due_ns, range(run.at, run.at + count)))
        tally.notify += [self] * cnps

    def _one_by_one(self, run: Run, count: int, tally: Tally) -> None:
        """The next packets of a run, each of which may have to wait for one that it overtook."""
        for _ in range(count):
            psn24, due_ns = run.first, run.due_ns(run.at)
            self.lane.take_off(1)
            tally.last_due_ns = max(tally.last_due_ns, due_ns)
            expected24 = self.receiver.expected & PSN_MASK
            for packet in self.order.due((psn24, run.opcode, run.marked), due_ns, expected24):
                tally.packets += 1
                tally.marked += packet[2]
                done, cnps = self.on_data(*packet, due_ns)
                tally.notify += [self] * cnps
                tally.done += [(due_ns, message) for message in done]

    def on_data(self, psn24: int, opcode: int, ce: bool, now_ns: int) -> tuple[list[Message], int]:
        """A data packet arrived.

        Returns:
            (the messages that it completes, how many CNPs are due)
        """
        cnps = 0
        if ce:
            self._count_marks(psn24, 1)
            cnps = self.receiver.on_marks((now_ns,))
        done = self.receiver.on_run(psn24, 1, opcode in ENDS_MESSAGE)
        return [self.arriving.popleft() for _ in range(done)], cnps

    def _count_marks(self, psn24: int, count: int) -> None:
        """Marks count for the message that they arrived in; those of messages long done do not."""
        psn = unwrap(psn24, self.receiver.expected)
        for message in self.arriving:
            if psn < message.end:
                message.marked += count if psn >= message.first else 0
                return

    @property
    def idle(self) -> bool:
        """True when everything was sent and acknowledged."""
        return self.sender.idle
