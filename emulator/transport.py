"""PURE: the transport settings that an experiment leaves to be computed from its paths."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from emulator.pairs import PairTimes
from emulator.spec.model import AUTO, UNLIMITED, Experiment
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
        window_packets: most unacknowledged packets of a connection; None = no limit.
        retransmit_timeout_ns: wait before sending again.
    """

    window_packets: int | None
    retransmit_timeout_ns: int


def transport_settings(experiment: Experiment, pairs: Iterable[PairTimes]) -> TransportSettings:
    """Window and timeout for the longest of the paths that an experiment uses."""
    times = list(pairs)
    return TransportSettings(_window_packets(experiment, times), _timeout_ns(experiment, times))


def _window_packets(experiment: Experiment, times: list[PairTimes]) -> int | None:
    window = experiment.transport.window
    if window == UNLIMITED:
        return None
    if window != AUTO:
        return int(window)
    packet = wire.wire_bytes(wire.data_frame_bytes(experiment.transport.payload_bytes))
    bdp_bytes = max((entry.bdp_bytes for entry in times), default=0.0)
    return max(MIN_WINDOW_PACKETS, math.ceil(WINDOW_BDP * bdp_bytes / packet))


def _timeout_ns(experiment: Experiment, times: list[PairTimes]) -> int:
    """As written; else no shorter than what a packet can spend behind a full buffer."""
    given = experiment.transport.retransmit_timeout_ns
    if given is not None:
        return given
    fabric = experiment.fabric
    slowest_bps = min(link.rate_bps for link in fabric.links)
    drain_ns = fabric.buffer_bytes * 8e9 / slowest_bps
    longest_ns = max((entry.round_trip_ns for entry in times), default=0.0)
    return math.ceil(TIMEOUT_ROUND_TRIPS * longest_ns + drain_ns)
