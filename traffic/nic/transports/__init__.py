"""Transports: what the two ends of a connection do, behind one small interface. PURE.

The NIC asks a sending end how many packets may go and when, takes them in bursts, and tells it what
came back. It hands a receiving end whole runs of packets and asks once a tick what to answer. Both
ends of a connection are made by the factory that `NicParameters.transport` names, so a transport is
a module that registers one; nothing else of the engine changes for it.

What is there serves transports whose packets take one path. One that sprays them needs, besides:
- a UDP source port for each packet: a field of `Burst` that the outbox passes on to the stamper,
  which stamps two more bytes (`FrameBank.patch` takes them as `sport`);
- packets as they come: no `Lane` (it keeps the order of a path), but for each an event of the inbox
  with its port, mark and length; messages are reported complete in their order all the same;
- acknowledgements that say more than the AETH's 24 bits: a bitmap behind it makes the header longer
  (`traffic.template.HEADER_COLUMNS`) and the medium's records wider;
- trimmed packets: an arriving frame as short as its headers and of a higher class, which the
  receiving end answers by asking for the packet at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple, Protocol

from topologies.errors import UnknownNameError
from traffic.dcqcn import CnpGate, Dcqcn
from traffic.nic.parameters import NicParameters
from traffic.nic.receiver import Receiver
from traffic.nic.sender import Burst, Message, Sender


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

    def on_marks(self, times_ns: Iterable[int]) -> int:
        """Packets arrive with CE at these times (before `on_run`); how many CNPs are due."""

    def pop_answer(self) -> tuple[bool, int] | None:
        """What to answer now: (whether it is a NAK, sequence number); None for nothing."""

    def aeth(self, is_nak: bool) -> int:
        """The AETH of that answer: syndrome (8 bits) and 24 bits of the transport's own."""


class Ends(NamedTuple):
    """Both ends of a connection."""

    sender: SenderSide
    receiver: ReceiverSide


Factory = Callable[[int, NicParameters], Ends]
"""Makes the ends of a connection, given the line rate in bit/s."""

_FACTORIES: dict[str, Factory] = {}


def register(name: str, factory: Factory) -> None:
    """Adds a transport; a second one of the same name is an error."""
    if name in _FACTORIES:
        raise ValueError(f"two transports are named {name}")
    _FACTORIES[name] = factory


def names() -> list[str]:
    """Names of all transports."""
    return sorted(_FACTORIES)


def build(rate_bps: int, parameters: NicParameters) -> Ends:
    """The ends of a connection, of the transport that the parameters name.

    Raises:
        UnknownNameError: there is no such transport.
    """
    name = parameters.transport
    if name not in _FACTORIES:
        raise UnknownNameError("transport", "transport", name, _FACTORIES)
    return _FACTORIES[name](rate_bps, parameters)


def go_back_n(rate_bps: int, parameters: NicParameters) -> Ends:
    """RoCEv2's reliable connection, with DCQCN where the parameters have a set of it."""
    dcqcn = parameters.dcqcn
    control = None if dcqcn is None else Dcqcn(dcqcn, rate_bps)
    gate = None if dcqcn is None else CnpGate(dcqcn.cnp_interval_ns)
    sender = Sender(parameters.payload_bytes, parameters.window_packets, parameters.rto_ns, control)
    return Ends(sender, Receiver(gate))


register("go-back-n", go_back_n)
