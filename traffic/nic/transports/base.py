"""The interface between the NIC engine and a transport: the two ends of a connection. PURE.

The NIC asks a sending end how many packets may go and when, takes them in bursts, and tells it what
came back. It hands a receiving end whole runs of packets and asks once a tick what to answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, Protocol

from traffic.nic.parameters import NicParameters
from traffic.nic.sender import Burst, Message


class SenderSide(Protocol):
    """The sending end of a connection. All times are model ns, sequence numbers do not wrap."""

    @property
    def has_more(self) -> bool:
        """True when packets wait to be sent, now or later, for the first time or again."""

    @property
    def idle(self) -> bool:
        """True when everything was sent and acknowledged."""

    @property
    def deadline_ns(self) -> int | None:
        """When `check_timeout` has something to do unless something comes back; None for never."""

    def enqueue(self, flow_id: int, size_bytes: int) -> Message:
        """Appends a flow's bytes to the connection."""

    def allowed(self) -> int:
        """Packets that backlog and window permit, within the message at hand."""

    def take(self, count: int, now_ns: int) -> Burst:
        """The next `count` packets (at most `allowed()`), now considered sent."""

    def rate_bps(self, now_ns: int) -> int | None:
        """The rate that spaces the packets; None = line rate."""

    def due_ns(self, now_ns: int) -> float:
        """When that rate lets the next packet go."""

    def on_sent(self, now_ns: int, nbytes: int) -> None:
        """So many bytes of line time leave now, or when they are due."""

    def on_ack(self, psn24: int, now_ns: int, aeth: int = 0) -> None:
        """An acknowledgement came back: its PSN, and its AETH as `ReceiverSide.aeth` made it."""

    def on_nak(self, psn24: int, now_ns: int, aeth: int = 0) -> None:
        """The other end asks for this packet."""

    def on_cnp(self, now_ns: int) -> None:
        """A congestion notification came back."""

    def check_timeout(self, now_ns: int) -> bool:
        """Does what waiting for too long asks for; True when there was such a thing."""


class ReceiverSide(Protocol):
    """The receiving end of a connection.

    Attributes:
        expected: the next packet in order; the NIC puts packets that the kernel handed over in the
            wrong order back into theirs while this one is known to come.
    """

    expected: int

    def on_run(self, psn24: int, count: int, ends_message: bool) -> int:
        """Packets with consecutive numbers arrived, one after the other.

        Args:
            psn24: the first one's number.
            count: how many.
            ends_message: whether the last one is the last of a message; the others are not.

        Returns:
            How many messages are complete now, oldest first.
        """

    def on_trimmed(self, psn24: int) -> None:
        """A packet came cut to its headers: it is lost, and the network says so at once."""

    def on_marks(self, times_ns: Iterable[int]) -> int:
        """Packets arrive with CE at these times (before `on_run`); how many CNPs are due."""

    def pop_answer(self) -> tuple[bool, int] | None:
        """What to answer now: (whether it is a NAK, sequence number); None for nothing."""

    def aeth(self, is_nak: bool) -> int:
        """The AETH of that answer: syndrome (8 bits) and 24 bits of the transport's own."""


class Ends(NamedTuple):
    """Both ends of a connection."""

    sender: SenderSide
    receiver: Any
    """A `ReceiverSide`; of transports that spray, what `traffic.nic.scatter` tells packets to."""


Factory = Callable[[int, NicParameters, int], Ends]
"""Makes the ends of a connection, given the line rate in bit/s, and the connection's number."""
