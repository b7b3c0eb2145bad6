"""One reliable connection: its two ends, the delay of its path, its frames. PURE."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from traffic.dcqcn import CnpGate, Dcqcn
from traffic.nic.ordering import Packet, Reorderer
from traffic.nic.parameters import NicParameters
from traffic.nic.receiver import Receiver
from traffic.nic.sender import Burst, Message, Sender, unwrap
from traffic.tasks import Flow
from traffic.wire import PSN_MASK, FlowAddress, data_frame_bytes, wire_bytes

QP_BASE = 0x100
_REORDER_TICKS = 4


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


class Connection:
    """A queue pair on each of two hosts.

    Args:
        number: position among all connections of the run; makes the queue pair numbers.
        ends: where it runs.
        parameters: transport settings.
    """

    __slots__ = (
        "_gate", "_holds", "arriving", "ends", "frame_bytes", "last_due_ns", "line_gap_ns",
        "number", "order", "queued", "receiver", "sender", "templates", "wire_bytes",
    )  # fmt: skip

    def __init__(self, number: int, ends: Endpoints, parameters: NicParameters) -> None:
        self.number, self.ends = number, ends
        dcqcn = parameters.dcqcn
        control = None if dcqcn is None else Dcqcn(dcqcn, ends.rate_bps)
        self.sender = Sender(
            parameters.payload_bytes, parameters.window_packets, parameters.rto_ns, control
        )
        self.receiver = Receiver()
        self.order = Reorderer(_REORDER_TICKS * parameters.tick_ns)
        self._gate = None if dcqcn is None else CnpGate(dcqcn.cnp_interval_ns)
        self.arriving: deque[Message] = deque()
        self.templates = Templates()
        self.frame_bytes = data_frame_bytes(parameters.payload_bytes)
        self.wire_bytes = wire_bytes(self.frame_bytes)
        self.line_gap_ns = self.wire_bytes * 8e9 / ends.rate_bps
        self.queued = False
        self.last_due_ns = [0, 0]
        self._holds: tuple[dict[int, int], ...] = {}, {}

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
        if burst.ends_message:
            total += wire_bytes(data_frame_bytes(burst.message.tail_bytes)) - self.wire_bytes
        return total

    def due_ns(self, arrived_ns: int, length: int, direction: int) -> int:
        """When a frame that left the last queue at `arrived_ns` has arrived; keeps the order.

        Args:
            arrived_ns: model time at which the kernel saw it.
            length: frame bytes without FCS.
            direction: 1 for data, 0 for what comes back.
        """
        hold = self._holds[direction].get(length)
        if hold is None:
            path = self.ends.path if direction else self.ends.back
            hold = self._holds[direction][length] = path.hold_ns(length)
        due = max(arrived_ns + hold, self.last_due_ns[direction])
        self.last_due_ns[direction] = due
        return due

    def in_order(self, packet: Packet, due_ns: int) -> list[Packet]:
        """The data packets to deliver when one is due."""
        return self.order.due(packet, due_ns, self.receiver.expected & PSN_MASK)

    def on_data(
        self, psn24: int, opcode: int, ce: bool, now_ns: int
    ) -> tuple[Message | None, bool]:
        """A data packet arrived.

        Returns:
            (the message that it completes or None, whether a CNP is due)
        """
        if ce:
            self._count_mark(psn24)
        done = self.arriving.popleft() if self.receiver.on_packet(psn24, opcode) else None
        notify = ce and self._gate is not None and self._gate.marked(self.number, now_ns)
        return done, notify

    def _count_mark(self, psn24: int) -> None:
        """Marks count for the message that they arrived in; those of messages long done do not."""
        psn = unwrap(psn24, self.receiver.expected)
        for message in self.arriving:
            if psn < message.end:
                message.marked += psn >= message.first
                return

    @property
    def idle(self) -> bool:
        """True when everything was sent and acknowledged."""
        return self.sender.oldest == self.sender.end
