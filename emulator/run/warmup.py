"""Before a run: every flow's path is taught to the switches, and the idle fabric is measured.

A userspace switch needs milliseconds for the first packet of a flow, which no ASIC does. So one
small packet goes ahead on every connection, both ways, before model time begins. Then probes on
the idle fabric say how long the emulation itself takes per hop; the receiving NICs wait that much
less, and a second set of probes says how well the sum meets the prediction.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from topologies.errors import MachineError
from traffic.nic.connection import Connection, Path
from traffic.nic.engine import PROBE_QP_BASE, NicEngine, Plan
from traffic.nic.frames import FrameBook
from traffic.nic.medium import Clock, Medium
from traffic.nic.parameters import NicParameters
from traffic.nic.probes import ProbeStream
from traffic.schedule import Schedule
from traffic.wire import FlowAddress

SMALL_BYTES = 4
_SPACING_NS = 2_000_000
_TEACHING_NS = 100_000
_ROUNDS = 40
_PATIENCE_NS = 5_000_000_000
_NO_HOLD = Path(0.0, 0.0)


@dataclass(frozen=True)
class Way:
    """One direction of something that will be sent: where from, its headers, its number of hops.

    Attributes:
        src_port: index of the sending host's port.
        address: headers.
        hops: switches on the path.
    """

    src_port: int
    address: FlowAddress
    hops: int


class _Latencies:
    """A recorder that keeps raw latencies by stream number, wall ns."""

    def __init__(self) -> None:
        self.by_stream: dict[int, list[int]] = {}

    def flow_done(self, *_: object) -> None:
        """No flows here."""

    def compute_done(self, *_: object) -> None:
        """No computations here."""

    def probe(self, stream: ProbeStream, _psn: int, _sent: int, latency_ns: int | None) -> None:
        """One latency."""
        if latency_ns is not None:
            self.by_stream.setdefault(stream.number, []).append(latency_ns)

    def tick(self, *_: object) -> None:
        """Nothing."""


def ways_of(connections: Sequence[Connection], hops: Sequence[int], dscp: int) -> list[Way]:
    """Both directions of all connections: data there, control back."""
    ways = []
    for connection, count in zip(connections, hops, strict=True):
        ends = connection.ends
        ways.append(Way(ends.src_port, ends.address, count))
        ways.append(Way(ends.dst_port, ends.address.reverse(0, dscp), count))
    return ways


def _run(medium: Medium, clock: Clock, ways: Sequence[Way], spacing_ns: int,
         rounds: int, payload_bytes: int = SMALL_BYTES) -> _Latencies:  # fmt: skip
    """Sends packets on all ways, one after the other, and waits for them."""
    frames, latencies = FrameBook(), _Latencies()
    start = clock.now_ns() + spacing_ns
    streams = []
    for number, way in enumerate(ways):
        address = replace(way.address, dest_qp=PROBE_QP_BASE + number)
        stream = ProbeStream(
            number, 0, "", "", way.src_port, address, _NO_HOLD, spacing_ns * len(ways),
            start + number * spacing_ns, payload_bytes, total=rounds,
        )  # fmt: skip
        stream.template = frames.add_datagram(address, payload_bytes)
        streams.append(stream)
    parameters = NicParameters(payload_bytes, 1, _PATIENCE_NS, tick_ns=spacing_ns // 2)
    plan = Plan(Schedule(()), (), {}, {}, frames.finish(), streams, parameters)
    engine = NicEngine(plan, medium, clock, latencies)
    end = start + spacing_ns * len(ways) * rounds + _PATIENCE_NS
    while any(stream.arrived < rounds for stream in streams) and clock.now_ns() < end:
        engine.tick(clock.now_ns())
        clock.sleep_until(clock.now_ns() + spacing_ns // 2)
    return latencies


def teach(medium: Medium, clock: Clock, ways: Sequence[Way]) -> None:
    """One packet on every way; MachineError names the first that did not arrive.

    Args:
        medium: sends and receives.
        clock: of dilation 1.
        ways: all that will be used.
    """
    unique = {(way.src_port, _path_key(way.address)): way for way in ways}
    heard = _run(medium, clock, list(unique.values()), _TEACHING_NS, 1).by_stream
    for number, way in enumerate(unique.values()):
        if number not in heard:
            where = f"{way.address.src_ip} to {way.address.dst_ip}"
            raise MachineError(f"the fabric does not carry packets from {where}")


def _path_key(address: FlowAddress) -> tuple[str, str, int, int]:
    return address.src_ip, address.dst_ip, address.entropy, address.dscp


def hop_latency_ns(medium: Medium, clock: Clock, ways: Iterable[Way]) -> float:
    """Median wall time that the idle emulation needs per switch hop, ns; 0 without any ways."""
    chosen = list(ways)
    if not chosen:
        return 0.0
    heard = _run(medium, clock, chosen, _SPACING_NS, max(4, _ROUNDS // len(chosen))).by_stream
    return statistics.median(
        latency / max(1, chosen[number].hops)
        for number, samples in heard.items()
        for latency in samples
    )


def idle_round_trips_ns(
    medium: Medium,
    clock: Clock,
    pairs: Sequence[tuple[Way, Way]],
    payload_bytes: int = SMALL_BYTES,
) -> list[float]:
    """Median wall time there and back without any hold, ns, of each pair of ways."""
    flat = [way for pair in pairs for way in pair]
    rounds = max(4, _ROUNDS // len(flat))
    heard = _run(medium, clock, flat, _SPACING_NS, rounds, payload_bytes).by_stream
    medians = {number: statistics.median(samples) for number, samples in heard.items()}
    return [medians[2 * n] + medians[2 * n + 1] for n in range(len(pairs))]
