"""Puts packets of one path back into the order in which its links carried them. PURE.

A link cannot reorder, but a kernel with several processors now and then hands over two packets of
one path in the wrong order. Both have arrived long before the receiving NIC may see them (it holds
them for the path's delay), so it can tell this from a loss: a packet that is missing while its
successor is due has arrived as well and is due within moments.
"""

from __future__ import annotations

from traffic.nic.lane import Lane
from traffic.wire import PSN_MASK

_HALF = (PSN_MASK + 1) // 2

Packet = tuple[int, int, bool]
"""(24-bit sequence number, opcode, whether it is marked CE)"""


class Reorderer:
    """The packets of one connection that were due before one that they had overtaken.

    Args:
        lane: what has arrived and is not due yet.
        window_ns: how much later than its successor a packet may become due and still count as
            overtaken rather than as sent again.

    Attributes:
        held: packets that wait for one that they overtook, by number; when there are none and
            `waits_for` says so, what is due can pass without asking `due`.
        overtaken: packets that had been overtaken and were put back in order.
    """

    __slots__ = ("_lane", "_window_ns", "held", "overtaken")

    def __init__(self, lane: Lane, window_ns: int) -> None:
        self._lane, self._window_ns = lane, window_ns
        self.held: dict[int, Packet] = {}
        self.overtaken = 0

    def waits_for(self, expected24: int, psn24: int) -> bool:
        """Whether a packet may have overtaken the expected one, which is then still in the lane."""
        ahead = (psn24 - expected24) & PSN_MASK
        return 0 < ahead < _HALF and self._lane.find_ns(expected24) is not None

    def due(self, packet: Packet, due_ns: int, expected24: int) -> list[Packet]:
        """The packets to deliver now that one is due, in order; none while it has to wait.

        Args:
            packet: the packet; it is not in the lane any more.
            due_ns: its time.
            expected24: the sequence number that the receiver expects next.
        """
        psn = packet[0]
        ahead = (psn - expected24) & PSN_MASK
        if 0 < ahead < _HALF and self._comes_soon(expected24, due_ns):
            self.held[psn] = packet
            return []
        if ahead or not self.held:
            return [packet]
        self.overtaken += 1
        return [packet, *self._follow((psn + 1) & PSN_MASK, due_ns)]

    def _comes_soon(self, psn24: int, now_ns: int) -> bool:
        due_ns = self._lane.find_ns(psn24)
        return due_ns is not None and due_ns - now_ns <= self._window_ns

    def _follow(self, psn24: int, now_ns: int) -> list[Packet]:
        """Held packets that can go now."""
        released = []
        while psn24 in self.held:
            released.append(self.held.pop(psn24))
            psn24 = (psn24 + 1) & PSN_MASK
        if self.held and not self._comes_soon(psn24, now_ns):
            released += sorted(self.held.values(), key=lambda held: (held[0] - psn24) & PSN_MASK)
            self.held.clear()
        return released
