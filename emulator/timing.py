"""PURE: how long a lone packet takes through an idle fabric.

All times are model ns, sizes bytes, rates bit/s. A link takes ``wire_bytes * 8 / rate`` to
serialise a frame and then its delay. A store-and-forward switch begins to send when the whole
frame is in; a cut-through switch when the header is in, provided that its egress is not faster than
its ingress (a faster one would run out of bytes). Both add their latency.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from emulator.spec.model import CUT_THROUGH, SwitchSpec
from topologies.model import Link
from traffic import wire

BITS = 8
NS_PER_S = 1_000_000_000
CUT_THROUGH_HEADER_BYTES = 64
"""What a cut-through switch reads before it forwards: the shortest frame of IEEE 802.3."""


def serialisation_ns(frame_bytes: int, rate_bps: int) -> float:
    """Line time of a frame (FCS not counted in `frame_bytes`), with FCS, preamble and gap."""
    return wire.wire_bytes(frame_bytes) * BITS * NS_PER_S / rate_bps


def propagation_ns(path: Sequence[Link]) -> int:
    """Sum of the links' delays."""
    return sum(link.delay_ns for link in path)


def one_way_ns(path: Sequence[Link], switch: SwitchSpec, frame_bytes: int) -> float:
    """From the sender's first bit to the receiver's last bit over an idle path.

    Args:
        path: the links from sender to receiver; one switch stands between each two.
        switch: forwarding mode and latency of every switch.
        frame_bytes: Ethernet header to ICRC, without FCS.
    """
    total = serialisation_ns(frame_bytes, path[0].rate_bps) + propagation_ns(path)
    for before, after in pairwise(path):
        total += switch.latency_ns + _forwarding_ns(before, after, switch, frame_bytes)
    return total


def _forwarding_ns(before: Link, after: Link, switch: SwitchSpec, frame_bytes: int) -> float:
    """How much later the last bit leaves a switch than it came in, latency aside (facts 4.2).

    With cut-through the frame's first bit leaves when the header is in, so the last bit is late by
    the header's time plus the difference of the two serialisation times.
    """
    whole = serialisation_ns(frame_bytes, after.rate_bps)
    if switch.mode != CUT_THROUGH or after.rate_bps > before.rate_bps:
        return whole
    header = min(CUT_THROUGH_HEADER_BYTES, wire.wire_bytes(frame_bytes))
    started = header * BITS * NS_PER_S / before.rate_bps
    return started + whole - serialisation_ns(frame_bytes, before.rate_bps)


def round_trip_ns(
    path: Sequence[Link], switch: SwitchSpec, frame_bytes: int, reply_bytes: int
) -> float:
    """A frame there and its reply back over the same idle path."""
    back = tuple(reversed(path))
    return one_way_ns(path, switch, frame_bytes) + one_way_ns(back, switch, reply_bytes)


def bottleneck_bps(path: Sequence[Link]) -> int:
    """The slowest rate of a path."""
    return min(link.rate_bps for link in path)


def bdp_bytes(path: Sequence[Link], switch: SwitchSpec, frame_bytes: int) -> float:
    """Bandwidth-delay product: bottleneck rate times the round trip of a full frame and its ACK."""
    rtt = round_trip_ns(path, switch, frame_bytes, wire.ACK_FRAME_BYTES)
    return bottleneck_bps(path) * rtt / (BITS * NS_PER_S)
