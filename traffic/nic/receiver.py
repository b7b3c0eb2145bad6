"""The receiving half of a reliable connection: order, acknowledgements, notifications. PURE.

In-order packets are acknowledged once per batch. A gap is answered by one NAK until the expected
packet arrives (IBTA 9.7.5.2.8); what follows the gap is discarded. So a lost NAK, or a packet that
is lost again when it is sent again, costs a timeout, as it does with adapters that go back N.
Duplicates are acknowledged again.
"""

from __future__ import annotations

from traffic.nic.sender import unwrap
from traffic.wire import Opcode

_LAST = (Opcode.SEND_LAST, Opcode.SEND_ONLY)


class Receiver:
    """State of the receiving end of one connection.

    Attributes:
        expected: sequence number of the next packet in order.
        completed: messages received whole, the MSN of acknowledgements.
        discarded: packets that arrived out of order and were thrown away.
        duplicates: packets that had arrived before.
    """

    __slots__ = (
        "_ack_due", "_nak_due", "_nak_sent_for", "completed", "discarded", "duplicates", "expected",
    )  # fmt: skip

    def __init__(self) -> None:
        self.expected = 0
        self.completed = 0
        self.discarded = 0
        self.duplicates = 0
        self._ack_due = self._nak_due = False
        self._nak_sent_for = -1

    def on_packet(self, psn24: int, opcode: int) -> bool:
        """A data packet arrived; True when it completes a message."""
        psn = unwrap(psn24, self.expected)
        if psn == self.expected:
            self.expected = psn + 1
            self._ack_due = True
            if opcode in _LAST:
                self.completed += 1
                return True
        elif psn > self.expected:
            self.discarded += 1
            if self._nak_sent_for != self.expected:
                self._nak_due = True
        else:
            self.duplicates += 1
            self._ack_due = True
        return False

    def pop_answer(self) -> tuple[bool, int] | None:
        """What to answer to the packets since the last call.

        Returns:
            (is_nak, psn): a NAK names the expected packet, an ACK the last one in order; None when
            there is nothing to say.
        """
        if self._nak_due:
            self._nak_due = self._ack_due = False
            self._nak_sent_for = self.expected
            return True, self.expected
        if self._ack_due:
            self._ack_due = False
            return False, self.expected - 1
        return None
