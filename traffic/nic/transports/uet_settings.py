"""What all connections of an Ultra-Ethernet-like transport have in common. PURE."""

from __future__ import annotations

from dataclasses import dataclass

from traffic.uet_params import UetParams

SPAN = 1 << 12
"""Most packets between the oldest unacknowledged one and the newest: what the other end keeps."""


@dataclass(frozen=True, slots=True)
class UetSettings:
    """What all connections of a run have in common.

    Attributes:
        params: the parameter set.
        payload_bytes: payload of a full packet.
        packet_bytes: wire bytes of a full packet.
        rto_ns: time after which an unacknowledged packet is sent again, doubled each time.
        tick_ns: period of the NICs.
        most_packets: most packets in flight; None = no such limit.
        credits: whether a packet needs a credit of the receiver.
        first_credits: packets that may be sent before there can be one.
    """

    params: UetParams
    payload_bytes: int
    packet_bytes: int
    rto_ns: int
    tick_ns: int
    most_packets: int | None
    credits: bool
    first_credits: int
