"""What can happen to the network, as frozen dataclasses; the core's only input besides time."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PortState:
    """A port as its switch reports it.

    Attributes:
        number: OpenFlow port number.
        name: name of the interface.
        up: neither set down nor without carrier.
    """

    number: int
    name: str
    up: bool


@dataclass(frozen=True, slots=True)
class SwitchConnected:
    """A switch has finished its handshake, for the first time or again."""

    dpid: int
    ports: tuple[PortState, ...]


@dataclass(frozen=True, slots=True)
class SwitchGone:
    """The connection of a switch has ended; its rules stay and go on forwarding."""

    dpid: int


@dataclass(frozen=True, slots=True)
class PortChanged:
    """A port was added, changed or (``up`` is False) removed."""

    dpid: int
    port: PortState


@dataclass(frozen=True, slots=True)
class BarrierDone:
    """A switch has finished everything before the barrier with this token."""

    dpid: int
    token: int


Event = SwitchConnected | SwitchGone | PortChanged | BarrierDone
