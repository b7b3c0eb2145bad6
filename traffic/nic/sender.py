"""The sending half of a reliable connection: messages, window, go-back-N, rate. PURE.

Packet sequence numbers are plain integers that never wrap here; the wire carries the low 24 bits
(IBTA 9.7.2). An acknowledgement or NAK names a 24-bit number, which is taken as the one nearest to
the oldest unacknowledged packet.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from traffic.dcqcn import Dcqcn
from traffic.wire import PSN_MASK

_HALF = (PSN_MASK + 1) // 2
_NEVER_NS = -1 << 63


@dataclass(slots=True)
class Message:
    """A flow's packets on its connection: first <= psn < end.

    Attributes:
        flow_id: the flow that it carries.
        first: sequence number of its first packet.
        end: one past its last packet.
        tail_bytes: payload of the last packet; the others are full.
        first_tx_ns: when its first packet was handed to the queue; -1 before.
        retransmitted: packets sent again.
        marked: packets that arrived with CE.
        arrived: packets that arrived, of transports that take them in any order.
        last_ns: when the last of those was due.
    """

    flow_id: int
    first: int
    end: int
    tail_bytes: int
    first_tx_ns: int = -1
    retransmitted: int = 0
    marked: int = 0
    arrived: int = 0
    last_ns: int = 0


@dataclass(slots=True)
class Burst:
    """Consecutive packets of one message to send now.

    Attributes:
        message: whose packets.
        first: sequence number of the first one.
        count: how many.
        again: how many of them had been sent before.
        start_ns: when the first one is on the line; the NIC says it.
        entropies: number of each one's entropy in the pool; empty where all take one path.
        word: what is in the first four bytes of their payloads.
    """

    message: Message
    first: int
    count: int
    again: int = 0
    start_ns: float = 0.0
    entropies: bytes = b""
    word: int = 0

    @property
    def ends_message(self) -> bool:
        """True when the message's last packet is among them."""
        return self.first + self.count == self.message.end


def unwrap(psn24: int, near: int) -> int:
    """The full sequence number nearest to `near` whose low 24 bits are `psn24`."""
    ahead = (psn24 - near) & PSN_MASK
    return near + (ahead if ahead < _HALF else ahead - PSN_MASK - 1)


class Sender:
    """Decides which packets of a connection may be sent.

    Args:
        payload_bytes: payload of a full packet.
        window_packets: most packets in flight; None = no limit.
        rto_ns: time without progress after which everything unacknowledged is sent again.
        control: rate control, None for line rate.
    """

    __slots__ = (
        "_control", "_deadline_ns", "_paced_bytes", "_paced_from_ns", "_payload", "_pending",
        "_rate_at_ns", "_rate_bps", "_rto_ns", "_sent_end", "_window", "end", "messages", "next",
        "oldest",
    )  # fmt: skip

    def __init__(
        self,
        payload_bytes: int,
        window_packets: int | None,
        rto_ns: int,
        control: Dcqcn | None,
    ) -> None:
        self._payload, self._window, self._rto_ns = payload_bytes, window_packets, rto_ns
        self._control = control
        self.messages: deque[Message] = deque()
        self._pending: deque[Message] = deque()
        self.oldest = self.next = self.end = self._sent_end = 0
        self._paced_from_ns, self._paced_bytes = 0.0, 0
        self._rate_bps, self._rate_at_ns = 0, _NEVER_NS
        self._deadline_ns: int | None = None

    @property
    def has_more(self) -> bool:
        """True when packets wait to be sent, for the first time or again."""
        return self.next < self.end

    @property
    def idle(self) -> bool:
        """True when everything was sent and acknowledged."""
        return self.oldest == self.end

    @property
    def in_flight(self) -> int:
        """Packets sent and not yet acknowledged."""
        return self.next - self.oldest

    def enqueue(self, flow_id: int, size_bytes: int) -> Message:
        """Appends a flow's bytes to the connection."""
        packets = max(1, -(-size_bytes // self._payload))
        tail = size_bytes - (packets - 1) * self._payload
        message = Message(flow_id, self.end, self.end + packets, tail)
        self.end += packets
        self.messages.append(message)
        self._pending.append(message)
        return message

    def allowed(self) -> int:
        """Packets that backlog and window permit, within the message at hand."""
        if self.next == self.end:
            return 0
        limit = self._pending[0].end - self.next
        if self._window is None:
            return limit
        return min(limit, self._window - self.in_flight)

    def take(self, count: int, now_ns: int) -> Burst:
        """The next `count` packets (at most `allowed()`), now considered sent."""
        message, first = self._pending[0], self.next
        self.next = first + count
        if message.first_tx_ns < 0:
            message.first_tx_ns = now_ns
        again = max(0, min(self._sent_end, self.next) - first)
        message.retransmitted += again
        self._sent_end = max(self._sent_end, self.next)
        if self.next == message.end:
            self._pending.popleft()
        if self._deadline_ns is None:
            self._deadline_ns = now_ns + self._rto_ns
        return Burst(message, first, count, again)

    def rate_bps(self, now_ns: int) -> int | None:
        """The rate that spaces this connection's packets; None = line rate."""
        if self._control is None:
            return None
        if now_ns != self._rate_at_ns:
            self._rate_bps, self._rate_at_ns = self._control.rate_bps(now_ns), now_ns
        return self._rate_bps

    def due_ns(self, now_ns: int) -> float:
        """When the rate control lets the next packet go; never later than now at line rate.

        The rate of now counts, also for packets sent at another one: a long wait ends sooner when
        the rate recovers meanwhile.
        """
        rate_bps = self.rate_bps(now_ns)
        if rate_bps is None:
            return 0.0
        return self._paced_from_ns + self._paced_bytes * 8e9 / rate_bps

    def on_sent(self, now_ns: int, nbytes: int) -> None:
        """So many bytes of line time left now, or will leave when they are due."""
        if self._control is not None:
            self._paced_from_ns = max(self.due_ns(now_ns), now_ns)
            self._paced_bytes = nbytes
            self._control.on_sent(now_ns, nbytes)
            self._rate_at_ns = _NEVER_NS

    def on_ack(self, psn24: int, now_ns: int, aeth: int = 0) -> None:
        """All packets up to and including this one have arrived."""
        self._progress(unwrap(psn24, self.oldest) + 1, now_ns)

    def on_nak(self, psn24: int, now_ns: int, aeth: int = 0) -> None:
        """The receiver expects this packet: everything from it on is sent again (go-back-N)."""
        expected = unwrap(psn24, self.oldest)
        if self.oldest <= expected < self._sent_end:
            self._progress(expected, now_ns)
            self._go_back()

    def on_cnp(self, now_ns: int) -> None:
        """A congestion notification arrived."""
        if self._control is not None:
            self._control.on_cnp(now_ns)
            self._rate_at_ns = _NEVER_NS

    def check_timeout(self, now_ns: int) -> bool:
        """Goes back when nothing was acknowledged for too long; True when it did."""
        if self._deadline_ns is None or now_ns < self._deadline_ns:
            return False
        self._go_back()
        return True

    @property
    def deadline_ns(self) -> int | None:
        """When the timeout fires unless something is acknowledged; None with nothing in flight."""
        return self._deadline_ns

    def _progress(self, acknowledged: int, now_ns: int) -> None:
        if not self.oldest < acknowledged <= self._sent_end:
            return
        self.oldest = acknowledged
        if self.next < acknowledged:
            self._skip_to(acknowledged)
        while self.messages and self.messages[0].end <= acknowledged:
            self.messages.popleft()
        self._deadline_ns = now_ns + self._rto_ns if self.next > acknowledged else None

    def _skip_to(self, psn: int) -> None:
        self.next = psn
        while self._pending and self._pending[0].end <= psn:
            self._pending.popleft()

    def _go_back(self) -> None:
        """Nothing counts as in flight any more; the timer starts with the next packet sent."""
        self.next = self.oldest
        self._pending = deque(self.messages)
        self._deadline_ns = None
