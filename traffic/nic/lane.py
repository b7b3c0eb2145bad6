"""One direction of a connection's path at the receiving NIC: holds frames, keeps their order. PURE.

What has left the last queue waits here until the rest of the path's delay is over. Data waits as
runs: packets with consecutive sequence numbers and equal length and ToS byte, of one message. When
one of their packets is due follows from when it was seen and from how long its length is held, so
a run needs no more than its times, and any number of packets is taken off it at once.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable

from traffic.wire import CE, ECN_MASK, PSN_MASK, Opcode

ENDS_MESSAGE = (Opcode.SEND_LAST, Opcode.SEND_ONLY)
_MIDDLE = int(Opcode.SEND_MIDDLE)
_LONGEST = 512
_CLOSED = -1


class Holds:
    """How long frames are held.

    Args:
        hold_ns: says it for a frame of so many bytes; asked once for each length.
    """

    __slots__ = ("_hold_ns", "_known")

    def __init__(self, hold_ns: Callable[[int], int]) -> None:
        self._hold_ns = hold_ns
        self._known: dict[int, int] = {}

    def hold_ns(self, length: int) -> int:
        """For a frame of this length, bytes."""
        hold = self._known.get(length)
        if hold is None:
            hold = self._known[length] = self._hold_ns(length)
        return hold


class Line(Holds):
    """Says when single frames are due."""

    __slots__ = ("_last_due_ns",)

    def __init__(self, hold_ns: Callable[[int], int]) -> None:
        super().__init__(hold_ns)
        self._last_due_ns = 0

    def due_ns(self, arrived_ns: int, length: int) -> int:
        """When a frame that left the last queue at `arrived_ns` has arrived; keeps the order."""
        self._last_due_ns = max(arrived_ns + self.hold_ns(length), self._last_due_ns)
        return self._last_due_ns


class Run:
    """Packets that follow each other.

    Attributes:
        first: 24-bit sequence number of the first packet that is left.
        at: its index in `times`; what is before has been taken off.
        times: when each packet was seen, model ns, not falling.
        length: frame bytes.
        opcode: of the first packet; the others are SEND Middle.
        tos: the IPv4 type-of-service byte.
        next: the sequence number that continues it; -1 when nothing does.
        ends_message: whether it is the last packet of a message.
        marked: whether its packets carry CE.
    """

    __slots__ = (
        "_floor_ns", "_hold_ns", "at", "ends_message", "first", "length", "marked", "next",
        "opcode", "times", "tos",
    )  # fmt: skip

    def __init__(self, first: int, times: list[int], length: int, opcode: int, tos: int,
                 hold_ns: int, floor_ns: int) -> None:  # fmt: skip
        self.first, self.times, self.at = first, times, 0
        self.length, self.opcode, self.tos = length, opcode, tos
        self._hold_ns, self._floor_ns = hold_ns, floor_ns
        self.marked = tos & ECN_MASK == CE
        self.ends_message = opcode in ENDS_MESSAGE
        self.next = _CLOSED if self.ends_message else (first + len(times)) & PSN_MASK

    def due_ns(self, index: int) -> int:
        """When a packet is due, by its place in the run."""
        return max(self.times[index] + self._hold_ns, self._floor_ns)

    def due(self, limit_ns: int) -> int:
        """How many of the packets that are left are due."""
        if self._floor_ns > limit_ns:
            return 0
        return bisect_right(self.times, limit_ns - self._hold_ns, self.at) - self.at

    def find_ns(self, psn24: int) -> int | None:
        """When a packet that is left is due, by its number; None when it is not here."""
        index = self.at + ((psn24 - self.first) & PSN_MASK)
        return self.due_ns(index) if index < len(self.times) else None


class Lane(Holds):
    """The runs that wait, oldest first."""

    __slots__ = ("_tail", "runs")

    def __init__(self, hold_ns: Callable[[int], int]) -> None:
        super().__init__(hold_ns)
        self.runs: deque[Run] = deque()
        self._tail = Run(0, [0], 0, Opcode.SEND_ONLY, 0, 0, 0)

    def add(self, psn24: int, time_ns: int, length: int, opcode: int, tos: int) -> None:
        """A packet that arrived."""
        tail = self._tail
        if (
            psn24 == tail.next
            and opcode == _MIDDLE
            and length == tail.length
            and tos == tail.tos
            and time_ns >= tail.times[-1]
        ):
            tail.times.append(time_ns)
            tail.next = (psn24 + 1) & PSN_MASK
        else:
            self._open(psn24, [time_ns], length, opcode, tos)

    def add_run(self, psn24: int, times: list[int], length: int, opcode: int, tos: int) -> None:
        """Packets that arrived, as `traffic.nic.arrivals` joined them; the times are kept."""
        self.add(psn24, times[0], length, opcode, tos)
        tail = self._tail
        tail.times += times[1:]
        if tail.next != _CLOSED:
            tail.next = (psn24 + len(times)) & PSN_MASK

    def _open(self, psn24: int, times: list[int], length: int, opcode: int, tos: int) -> None:
        """A new run begins; it is not due before the last packet of the one before."""
        hold_ns, floor_ns = self.hold_ns(length), self._tail.due_ns(-1)
        self._tail = Run(psn24, times, length, opcode, tos, hold_ns, floor_ns)
        self.runs.append(self._tail)

    @property
    def next_ns(self) -> int:
        """When the next packet is due; there must be one."""
        run = self.runs[0]
        return run.due_ns(run.at)

    def take_off(self, count: int) -> None:
        """So many packets of the oldest run are gone."""
        run = self.runs[0]
        run.at += count
        run.first = (run.first + count) & PSN_MASK
        if run.at == len(run.times):
            run.next = _CLOSED
            self.runs.popleft()
        elif run.at > _LONGEST:
            del run.times[: run.at]
            run.at = 0

    def find_ns(self, psn24: int) -> int | None:
        """When a packet is due that waits; of two alike, the first one counts."""
        for run in self.runs:
            due_ns = run.find_ns(psn24)
            if due_ns is not None:
                return due_ns
        return None
