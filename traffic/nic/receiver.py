"""The receiving half of a reliable connection: order, acknowledgements, notifications. PURE.

In-order packets are acknowledged once per batch. A gap is answered by one NAK until the expected
packet arrives (IBTA 9.7.5.2.8); what follows the gap is discarded. So a lost NAK, or a packet that
is lost again when it is sent again, costs a timeout, as it does with adapters that go back N.
Duplicates are acknowledged again.

A packet that came cut to its headers is lost for certain: once it is the next one it is asked for,
as after a gap, without waiting for what follows it.
"""

from __future__ import annotations

from collections.abc import Iterable

from traffic.dcqcn import CnpGate
from traffic.nic.lane import ENDS_MESSAGE
from traffic.wire import MSN_MASK, PSN_MASK, SYNDROME_ACK, SYNDROME_NAK_SEQUENCE

_HALF = (PSN_MASK + 1) // 2


class Receiver:
    """State of the receiving end of one connection.

    Args:
        gate: how often marks are notified; None = never.

    Attributes:
        expected: sequence number of the next packet in order.
        completed: messages received whole, the MSN of acknowledgements.
        discarded: packets that arrived out of order and were thrown away.
        duplicates: packets that had arrived before.
    """

    __slots__ = (
        "_ack_due", "_cut", "_gate", "_nak_due", "_nak_sent_for", "completed", "discarded",
        "duplicates", "expected",
    )  # fmt: skip

    def __init__(self, gate: CnpGate | None = None) -> None:
        self._gate = gate
        self.expected = 0
        self.completed = 0
        self.discarded = 0
        self.duplicates = 0
        self._ack_due = self._nak_due = False
        self._nak_sent_for = -1
        self._cut: set[int] = set()

    def on_packet(self, psn24: int, opcode: int) -> bool:
        """A data packet arrived; True when it completes a message."""
        return self.on_run(psn24, 1, opcode in ENDS_MESSAGE)

    def on_run(self, psn24: int, count: int, ends_message: bool) -> bool:
        """Packets with consecutive numbers arrived, one after the other.

        Args:
            psn24: the first one's number.
            count: how many.
            ends_message: whether the last one is the last of a message; the others are not.

        Returns:
            True when they complete a message.
        """
        expected = self.expected
        ahead = (psn24 - expected) & PSN_MASK
        if 0 < ahead < _HALF:
            self.discarded += count
            self._nak_due = self._nak_due or self._nak_sent_for != expected
            return False
        self._ack_due = True
        if ahead:  # had been received before, maybe not all of them
            again = PSN_MASK + 1 - ahead
            self.duplicates += min(count, again)
            count -= again
        if count <= 0:
            return False
        self.expected = expected + count
        self.completed += ends_message
        if self._cut:
            self._look_for_cut()
        return ends_message

    def on_trimmed(self, psn24: int) -> None:
        """A packet came cut to its headers.

        Headers overtake what still waits in the queue that had no room, so the packets before it
        may be under way. Once the expected packet has been asked for, all after it is sent again.
        """
        ahead = (psn24 - self.expected) & PSN_MASK
        if ahead >= _HALF or self._nak_sent_for == self.expected:
            return
        if ahead:
            self._cut.add(psn24)
        else:
            self._nak_due = True

    def _look_for_cut(self) -> None:
        """Some packet after the expected one was cut: is it this one by now?"""
        psn24 = self.expected & PSN_MASK
        if psn24 in self._cut:
            self.on_trimmed(psn24)
        self._cut = {psn for psn in self._cut if 0 < (psn - psn24) & PSN_MASK < _HALF}

    def on_marks(self, times_ns: Iterable[int]) -> int:
        """Packets arrive with CE at these times; how many CNPs are due."""
        gate = self._gate
        return 0 if gate is None else sum(gate.marked(0, now_ns) for now_ns in times_ns)

    def pop_answer(self) -> tuple[bool, int] | None:
        """What to answer to the packets since the last call.

        Returns:
            (is_nak, psn): a NAK names the expected packet, an ACK the last one in order; None when
            there is nothing to say.
        """
        if self._nak_due:
            self._nak_due = self._ack_due = False
            self._nak_sent_for = self.expected
            self._cut.clear()
            return True, self.expected
        if self._ack_due:
            self._ack_due = False
            return False, self.expected - 1
        return None

    def aeth(self, is_nak: bool) -> int:
        """The AETH of an answer: its syndrome and how many messages were received whole."""
        syndrome = SYNDROME_NAK_SEQUENCE if is_nak else SYNDROME_ACK
        return syndrome << 24 | self.completed & MSN_MASK
