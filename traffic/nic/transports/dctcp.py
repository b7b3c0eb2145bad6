"""DCTCP over RoCEv2-shaped packets: a window of packets, every mark echoed, go-back-N. PURE.

The receiving end counts the packets that it took with CE and puts the count, modulo 2**24, into
the 24 bits of the AETH where RoCEv2 has the number of messages. It is a running total, so an
acknowledgement that is lost takes no mark with it, and one that stands for many packets says
exactly how many of them were marked. Losses are recovered as in RoCEv2.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from traffic.dctcp import DctcpWindow
from traffic.dctcp_params import RFC8257
from traffic.nic.parameters import NicParameters
from traffic.nic.receiver import Receiver
from traffic.nic.sender import Burst, Sender
from traffic.nic.transports.base import Ends
from traffic.wire import (
    MSN_MASK,
    SYNDROME_ACK,
    SYNDROME_NAK_SEQUENCE,
    data_frame_bytes,
    wire_bytes,
)


class DctcpSender(Sender):
    """Sends as much as the window permits.

    Args:
        payload_bytes: payload of a full packet.
        most_packets: the window never permits more; None = no such limit.
        rto_ns: time without progress after which everything unacknowledged is sent again.
        window: the congestion window.
    """

    __slots__ = ("_marks", "_most", "control")

    def __init__(
        self, payload_bytes: int, most_packets: int | None, rto_ns: int, window: DctcpWindow
    ) -> None:
        super().__init__(payload_bytes, None, rto_ns, None)
        self.control, self._most = window, most_packets
        self._marks = 0
        self._apply()

    def take(self, count: int, now_ns: int) -> Burst:
        """The next `count` packets (at most `allowed()`), now considered sent."""
        burst = super().take(count, now_ns)
        self.control.on_sent(self.in_flight)
        return burst

    def on_ack(self, psn24: int, now_ns: int, aeth: int = 0) -> None:
        """All packets up to and including this one have arrived; the AETH says how many marked."""
        before = self.oldest
        super().on_ack(psn24, now_ns, aeth)
        self._acknowledged(before, aeth)

    def on_nak(self, psn24: int, now_ns: int, aeth: int = 0) -> None:
        """The receiver expects this packet; those before it have arrived."""
        before = self.oldest
        super().on_nak(psn24, now_ns, aeth)
        self._acknowledged(before, aeth)
        self.control.on_loss(self.oldest, self._sent_end)
        self._apply()

    def check_timeout(self, now_ns: int) -> bool:
        """Goes back, with the least window, when nothing was acknowledged for too long."""
        late = super().check_timeout(now_ns)
        if late:
            self.control.on_timeout()
            self._apply()
        return late

    def _acknowledged(self, before: int, aeth: int) -> None:
        acked = self.oldest - before
        if acked > 0:
            marks = aeth & MSN_MASK
            marked, self._marks = (marks - self._marks) & MSN_MASK, marks
            self.control.on_ack(self.oldest, self.next, acked, marked)
            self._apply()

    def _apply(self) -> None:
        """Fractions of a packet count towards later ones."""
        window = int(self.control.window)
        self._window = window if self._most is None else min(window, self._most)


class DctcpReceiver(Receiver):
    """Takes what is in order, as RoCEv2 does, and counts marks.

    Attributes:
        marks: packets that were taken with CE.
    """

    __slots__ = ("_arriving", "marks")

    def __init__(self) -> None:
        super().__init__()
        self.marks = self._arriving = 0

    def on_marks(self, times_ns: Iterable[int]) -> int:
        """The packets of the next run carry CE; no CNP is due, ever."""
        self._arriving = sum(1 for _ in times_ns)
        return 0

    def on_run(self, psn24: int, count: int, ends_message: bool) -> bool:
        """Packets with consecutive numbers arrived; True when they complete a message."""
        before = self.expected
        done = super().on_run(psn24, count, ends_message)
        if self._arriving:
            self.marks += self.expected - before
            self._arriving = 0
        return done

    def aeth(self, is_nak: bool) -> int:
        """The AETH of an answer: its syndrome and how many packets were marked."""
        syndrome = SYNDROME_NAK_SEQUENCE if is_nak else SYNDROME_ACK
        return syndrome << 24 | self.marks & MSN_MASK


def dctcp(rate_bps: int, parameters: NicParameters, _number: int = 0) -> Ends:
    """The ends of a connection; without a parameter set, that of RFC 8257."""
    params = RFC8257 if parameters.dctcp is None else parameters.dctcp
    packet_bytes = wire_bytes(data_frame_bytes(parameters.payload_bytes))
    bdp_bytes = parameters.round_trip_ns * rate_bps / 8e9
    window = DctcpWindow(params, max(1, math.ceil(bdp_bytes / packet_bytes)))
    sender = DctcpSender(
        parameters.payload_bytes, parameters.window_packets, parameters.rto_ns, window
    )
    return Ends(sender, DctcpReceiver())
