"""PURE: the transport settings that an experiment leaves to be computed from its paths."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from emulator.pairs import PairTimes
from emulator.spec.model import AUTO, GO_BACK_N, NO_CONTROL, UET, UNLIMITED, Experiment
from traffic import wire

WINDOW_BDP = 2
"""Bandwidth-delay products of a window of ``auto``: the line stays full while ACKs queue."""
MIN_WINDOW_PACKETS = 2
TIMEOUT_ROUND_TRIPS = 16
"""Round trips of a timeout of ``auto``, beside the time that a full buffer takes to drain."""


@dataclass(frozen=True)
class TransportSettings:
    """What the NICs are set to, model units.

    Attributes:
        window_packets: most unacknowledged packets of a connection; None = no limit, but for
            what a congestion window says.
        retransmit_timeout_ns: wait before sending again.
        round_trip_ns: unloaded round trip of a full packet and its acknowledgement.
    """

    window_packets: int | None
    retransmit_timeout_ns: int
    round_trip_ns: int = 0


def transport_settings(experiment: Experiment, pairs: Iterable[PairTimes]) -> TransportSettings:
    """Window and timeout for the longest of the paths that an experiment uses."""
    times = list(pairs)
    longest_ns = max((entry.round_trip_ns for entry in times), default=0.0)
    return TransportSettings(
        _window_packets(experiment, times),
        _timeout_ns(experiment, longest_ns),
        math.ceil(longest_ns),
    )


def _window_packets(experiment: Experiment, times: list[PairTimes]) -> int | None:
    window = experiment.transport.window
    if window == UNLIMITED or (window == AUTO and not _is_windowed(experiment)):
        return None
    if window != AUTO:
        return int(window)
    packet = wire.wire_bytes(wire.data_frame_bytes(experiment.transport.payload_bytes))
    bdp_bytes = max((entry.bdp_bytes for entry in times), default=0.0)
    return max(MIN_WINDOW_PACKETS, math.ceil(WINDOW_BDP * bdp_bytes / packet))


def _is_windowed(experiment: Experiment) -> bool:
    """Whether nothing but a fixed window holds a sender back."""
    transport = experiment.transport
    return transport.kind == GO_BACK_N or (
        transport.kind == UET and transport.control == NO_CONTROL
    )


def _timeout_ns(experiment: Experiment, longest_ns: float) -> int:
    """As written; else no shorter than what a packet can spend behind a full buffer."""
    given = experiment.transport.retransmit_timeout_ns
    if given is not None:
        return given
    fabric = experiment.fabric
    slowest_bps = min(link.rate_bps for link in fabric.links)
    drain_ns = fabric.buffer_bytes * 8e9 / slowest_bps
    return math.ceil(TIMEOUT_ROUND_TRIPS * longest_ns + drain_ns)
