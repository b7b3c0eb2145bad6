"""A network of queues in model time, as the medium of the NIC engine: no root, no waiting.

It behaves as the emulated fabric does: a queue lets its first frame leave at once and the next
one when the line is free again; control (class 6 and above) goes first; a full buffer drops, a
long queue marks; the receiving NIC makes up for serialisation and propagation by its holds. What
a frame is, it reads from the header bytes that the engine sends.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from random import Random

import numpy as np
import numpy.typing as npt

from traffic import wire
from traffic.icrc import icrc_of

CONTROL_CLASS = 6
_LONG = (1 << 64) - 1
RECORD = np.dtype(
    [
        ("time_ns", "<i8"), ("psn", "<u4"), ("dest_qp", "<u4"), ("aeth", "<u4"),
        ("length", "<u2"), ("opcode", "u1"), ("tos", "u1"), ("becn", "u1"),
        ("trimmed", "u1"), ("sack_word", ">u4"), ("sack_received", ">u8"), ("sack_marked", ">u8"),
    ]
)  # fmt: skip


class FakeClock:
    """Model time that passes only while somebody sleeps: a jump to the time that was asked for.

    Args:
        now_ns: the time at the beginning.
        late_ns: how much later than asked for a sleep ends, by the time that was asked for.
    """

    def __init__(self, now_ns: int = 0, late_ns: Callable[[int], int] = lambda asked: 0) -> None:
        self._now_ns, self._late_ns = now_ns, late_ns

    def now_ns(self) -> int:
        """The time now."""
        return self._now_ns

    def sleep_until(self, model_ns: int) -> int:
        """Jumps."""
        self._now_ns = max(self._now_ns, model_ns + self._late_ns(model_ns))
        return self._now_ns


@dataclass(slots=True)
class Frame:
    """What a frame's bytes say, and how far it is.

    Attributes:
        port: index of the port that sent it.
        src_ip, dst_ip, sport, tos, opcode, dest_qp, psn, ack_request, aeth, becn: its fields;
            `aeth` is 0 but for acknowledgements, and for data with a word of its own.
        behind: what follows the AETH of a selective acknowledgement, as a number.
        length: frame bytes, FCS not counted.
        icrc_ok: whether its ICRC is that of its bytes; None when nobody looked.
        trimmed: whether it has been cut to its headers.
        way: queues that it still has to pass.
    """

    port: int
    src_ip: str
    dst_ip: str
    sport: int
    tos: int
    opcode: int
    dest_qp: int
    psn: int
    ack_request: int
    aeth: int
    becn: int
    length: int
    icrc_ok: bool | None = None
    trimmed: bool = False
    behind: int = 0
    way: deque[FakeQueue] = field(default_factory=deque)

    @property
    def traffic_class(self) -> int:
        """Class 0-7."""
        return self.tos >> 5

    @property
    def is_data(self) -> bool:
        """True for packets of messages and probes."""
        return self.opcode in wire.SEND_OPCODES


def parse(port: int, header: bytes, header_bytes: int, body_bytes: int, icrc: bytes) -> Frame:
    """Reads the fields of a frame: header row, length of header and body, ICRC."""

    def number(at: int, size: int) -> int:
        return int.from_bytes(header[at : at + size], "big")

    assert number(wire.AT_ETHERTYPE, 2) == wire.ETHERTYPE_IPV4
    assert number(wire.AT_DPORT, 2) == wire.ROCE_PORT
    length = header_bytes + body_bytes + len(icrc)
    assert number(wire.AT_IP_LENGTH, 2) == length - wire.ETHERNET_BYTES
    return Frame(
        port=port,
        src_ip=".".join(map(str, header[wire.AT_SRC_IP : wire.AT_DST_IP])),
        dst_ip=".".join(map(str, header[wire.AT_DST_IP : wire.AT_UDP])),
        sport=number(wire.AT_SPORT, 2),
        tos=header[wire.AT_TOS],
        opcode=header[wire.AT_OPCODE],
        dest_qp=number(wire.AT_DEST_QP, 3),
        psn=number(wire.AT_PSN, 3),
        ack_request=header[wire.AT_ACK_REQUEST] >> 7,
        aeth=number(wire.AT_AETH, 4) if header_bytes >= wire.ACK_HEADER_BYTES else 0,
        behind=number(wire.AT_SACK, 20) if header_bytes == wire.SACK_HEADER_BYTES else 0,
        becn=header[wire.AT_FECN_BECN] >> 6 & 1,
        length=length,
    )


@dataclass(frozen=True)
class Marking:
    """ECN: nothing up to Kmin, rising to Pmax at Kmax, everything above (frame bytes)."""

    kmin_bytes: int
    kmax_bytes: int
    pmax: float = 1.0

    def chance(self, queued_bytes: int) -> float:
        """Probability of a mark at this queue length."""
        if queued_bytes <= self.kmin_bytes:
            return 0.0
        if queued_bytes > self.kmax_bytes:
            return 1.0
        span = self.kmax_bytes - self.kmin_bytes
        return (queued_bytes - self.kmin_bytes) / span * self.pmax


class FakeQueue:
    """An egress queue, control first, with what it counted.

    Args:
        rate_bps: of the line, bit/s.
        buffer_bytes: frames that would exceed this are dropped; None = no limit.
        marking: None = none.
        delay_ns: from the queue to the next one.
        seed: of the marking lottery.
        trim_bytes: what has no room is cut to so many bytes and goes on as control; None = dropped.
    """

    def __init__(
        self,
        rate_bps: int,
        buffer_bytes: int | None = None,
        marking: Marking | None = None,
        delay_ns: int = 0,
        seed: int = 1,
        trim_bytes: int | None = None,
    ) -> None:
        self.rate_bps, self.buffer_bytes = rate_bps, buffer_bytes
        self.trim_bytes, self.trimmed = trim_bytes, 0
        self.marking, self.delay_ns = marking, delay_ns
        self.free_ns = 0.0
        self.armed = False
        self.bytes = self.wire_bytes = self.peak_bytes = 0
        self.sent = self.dropped = self.marked = 0
        self._rng = Random(seed)
        self._waiting: tuple[deque[Frame], deque[Frame]] = (deque(), deque())

    def admit(self, frame: Frame) -> bool:
        """Takes a frame, marked where the queue is long; False when the buffer is full."""
        if self._is_full(frame) and not self._cut(frame):
            self.dropped += 1
            return False
        if self.marking and frame.tos & wire.ECN_MASK and self._wins(self.marking):
            frame.tos |= wire.CE
            self.marked += 1
        self._waiting[frame.traffic_class < CONTROL_CLASS].append(frame)
        self._count(frame, 1)
        self.peak_bytes = max(self.peak_bytes, self.bytes)
        return True

    def _is_full(self, frame: Frame) -> bool:
        return self.buffer_bytes is not None and self.bytes + frame.length > self.buffer_bytes

    def _cut(self, frame: Frame) -> bool:
        """Cuts a frame that has no room to its headers, for which there is always some."""
        if self.trim_bytes is None or frame.trimmed or frame.length <= self.trim_bytes:
            return False
        frame.length, frame.trimmed = self.trim_bytes, True
        frame.tos = CONTROL_CLASS << 5 | frame.tos & wire.ECN_MASK
        self.trimmed += 1
        return True

    def _wins(self, marking: Marking) -> bool:
        return self._rng.random() < marking.chance(self.bytes)

    def _count(self, frame: Frame, sign: int) -> None:
        self.bytes += sign * frame.length
        self.wire_bytes += sign * wire.wire_bytes(frame.length)

    @property
    def is_empty(self) -> bool:
        """True when no frame waits."""
        return not any(self._waiting)

    def serve(self, time_ns: float) -> Frame:
        """The next frame leaves now; the line is busy for as long as it takes."""
        frame = (self._waiting[0] or self._waiting[1]).popleft()
        self._count(frame, -1)
        self.sent += 1
        self.free_ns = time_ns + wire.wire_bytes(frame.length) * 8e9 / self.rate_bps
        return frame


Row = tuple[int, int, int, int, int, int, int, int, int, int, int, int]
Lose = Callable[[Frame], bool]


class FakeMedium:
    """Carries frames over queues; everything happens in model time.

    Args:
        clock: model time.
        nics: egress queue of each host port, by port index.
        route: queues of the network between a sending port and an IPv4 address.
        lose: asked for each frame that leaves a NIC; True loses it.
        refuse: asked for each frame that is sent; True is a full socket buffer, which ends the
            batch of that port.
        hand_over: may reorder what arrived, as a kernel with several processors does.
        check_icrc: computes each frame's ICRC and compares (slow).
        way: queues of the network that a frame takes, instead of `route`.

    Attributes:
        sent: every frame that was taken, in order.
        lost: those that `lose` chose.
    """

    def __init__(
        self,
        clock: FakeClock,
        nics: dict[int, FakeQueue],
        route: Callable[[int, str], Sequence[FakeQueue]],
        lose: Lose = lambda frame: False,
        refuse: Lose = lambda frame: False,
        hand_over: Callable[[list[Row]], list[Row]] = lambda rows: rows,
        check_icrc: bool = False,
        way: Callable[[Frame], Sequence[FakeQueue]] | None = None,
    ) -> None:
        self._way = way or (lambda frame: route(frame.port, frame.dst_ip))
        self._clock, self._nics = clock, nics
        self.lose, self.refuse, self._hand_over = lose, refuse, hand_over
        self._check_icrc = check_icrc
        self._events: list[tuple[float, int, FakeQueue, Frame | None]] = []
        self._number = 0
        self._rows: list[Row] = []
        self.sent: list[Frame] = []
        self.lost: list[Frame] = []
        self.inside = 0

    def receive(self) -> npt.NDArray[np.void]:
        """Frames that arrived since the last call."""
        self._advance()
        rows, self._rows = self._hand_over(self._rows), []
        return np.array(rows, RECORD)

    def backlog(self) -> npt.NDArray[np.int64]:
        """Wire bytes that wait at each host port."""
        self._advance()
        backlog = np.zeros(max(self._nics) + 1, np.int64)
        for port, queue in self._nics.items():
            backlog[port] = queue.wire_bytes
        return backlog

    def paused(self) -> npt.NDArray[np.int64]:
        """Nothing is ever paused."""
        return np.zeros(max(self._nics) + 1, np.int64)

    def inside_switches(self) -> int:
        """What a test says."""
        return self.inside

    def send(
        self,
        ports: npt.NDArray[np.intp],
        headers: npt.NDArray[np.uint8],
        header_bytes: npt.NDArray[np.intp],
        body_bytes: npt.NDArray[np.intp],
        icrc: npt.NDArray[np.uint8],
    ) -> int:
        """Takes frames grouped by port."""
        self._advance()
        changes = np.flatnonzero(np.diff(ports))
        assert len(changes) + 1 == len(np.unique(ports)), "frames are not grouped by port"
        full: set[int] = set()
        taken = 0
        for n, port in enumerate(ports.tolist()):
            frame = self._parse(port, headers[n], header_bytes[n], body_bytes[n], icrc[n])
            if port in full or self.refuse(frame):
                full.add(port)
                continue
            taken += 1
            self.sent.append(frame)
            frame.way = deque([self._nics[port], *self._way(frame)])
            self._enter(float(self._clock.now_ns()), frame)
        return taken

    def inject(self, dest_qp: int, psn: int = 0, opcode: int = wire.Opcode.SEND_ONLY,
               trimmed: bool = False) -> None:  # fmt: skip
        """A frame that nobody sent arrives now."""
        row = self._clock.now_ns(), psn, dest_qp, 0, wire.MIN_FRAME_BYTES, opcode, 0, 0, trimmed
        self._rows.append((*row, 0, 0, 0))

    def _parse(self, port: int, row: npt.NDArray[np.uint8], header_bytes: np.intp,
               body_bytes: np.intp, icrc: npt.NDArray[np.uint8]) -> Frame:  # fmt: skip
        head, tail = row.tobytes(), icrc.tobytes()
        frame = parse(port, head, int(header_bytes), int(body_bytes), tail)
        if self._check_icrc:
            packet = head[: int(header_bytes)] + bytes(int(body_bytes))
            frame.icrc_ok = icrc_of(packet) == int.from_bytes(tail, "little")
        return frame

    def _advance(self) -> None:
        """Lets everything happen that is due."""
        now_ns = self._clock.now_ns()
        while self._events and self._events[0][0] <= now_ns:
            time_ns, _, queue, frame = heapq.heappop(self._events)
            if frame is None:
                queue.armed = False
                self._serve(time_ns, queue)
            elif frame.way:
                self._enter(time_ns, frame)
            else:
                self._arrive(time_ns, frame)

    def _at(self, time_ns: float, queue: FakeQueue, frame: Frame | None) -> None:
        self._number += 1
        heapq.heappush(self._events, (time_ns, self._number, queue, frame))

    def _enter(self, time_ns: float, frame: Frame) -> None:
        queue = frame.way[0]
        if queue.admit(frame) and not queue.armed:
            self._serve(time_ns, queue)

    def _serve(self, time_ns: float, queue: FakeQueue) -> None:
        """Lets the next frame leave, if the line is free, and comes back when it is again."""
        if time_ns >= queue.free_ns and not queue.is_empty:
            self._leave(time_ns, queue, queue.serve(time_ns))
        if not queue.is_empty:
            queue.armed = True
            self._at(queue.free_ns, queue, None)

    def _leave(self, time_ns: float, queue: FakeQueue, frame: Frame) -> None:
        frame.way.popleft()
        if queue is self._nics[frame.port] and self.lose(frame):
            self.lost.append(frame)
        else:
            self._at(time_ns + queue.delay_ns, queue, frame)

    def _arrive(self, time_ns: float, frame: Frame) -> None:
        self._rows.append(
            (int(time_ns), frame.psn, frame.dest_qp, frame.aeth, frame.length, frame.opcode,
             frame.tos, frame.becn, frame.trimmed, frame.behind >> 128,
             frame.behind >> 64 & _LONG, frame.behind & _LONG)
        )  # fmt: skip


def is_data(frame: Frame) -> bool:
    """True for packets of messages and probes."""
    return frame.is_data


def drop_numbers(numbers: Iterable[int], among: Lose = is_data) -> Lose:
    """Loses the n-th frames (the first is 1) of those that `among` chooses."""
    chosen, seen = set(numbers), 0

    def lose(frame: Frame) -> bool:
        nonlocal seen
        seen += among(frame)
        return among(frame) and seen in chosen

    return lose


def drop_randomly(probability: float, seed: int, among: Lose = lambda frame: True) -> Lose:
    """Loses each frame of those that `among` chooses with a probability."""
    rng = Random(seed)
    return lambda frame: among(frame) and rng.random() < probability
