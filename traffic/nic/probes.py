"""Latency probes: small unacknowledged packets between pairs of hosts, per traffic class. PURE."""

from __future__ import annotations

import heapq
import math
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from operator import attrgetter

from traffic.nic.connection import Path
from traffic.wire import PSN_MASK, FlowAddress


@dataclass(slots=True)
class ProbeStream:
    """Probes from one host to another in one traffic class.

    Attributes:
        number: position among the run's streams; makes the queue pair number.
        traffic_class: 0-7.
        src: name of the sending host.
        dst: name of the receiving host.
        src_port: index of the sending host's port.
        address: headers; `dest_qp` is the stream's.
        path: delay of the path.
        interval_ns: mean time between two probes.
        first_ns: when the first one is sent.
        payload_bytes: size.
        poisson: exponential instead of constant intervals (for queueing checks).
        rng: random source of the intervals.
        total: how many probes it sends; None = as many as the run has time for.
    """

    number: int
    traffic_class: int
    src: str
    dst: str
    src_port: int
    address: FlowAddress
    path: Path
    interval_ns: float
    first_ns: float
    payload_bytes: int
    poisson: bool = False
    rng: random.Random = field(default_factory=lambda: random.Random(0))
    total: int | None = None
    template: int = -1
    sent: int = 0
    arrived: int = 0
    next_ns: float = 0.0
    outstanding: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.next_ns = self.first_ns

    def due(self, now_ns: int) -> bool:
        """True when a probe should be sent."""
        return self.next_ns <= now_ns

    def send(self, now_ns: int) -> int:
        """Notes a probe as sent now and returns its sequence number."""
        psn = self.sent
        self.sent += 1
        self.outstanding[psn & PSN_MASK] = now_ns
        if self.total is not None and self.sent >= self.total:
            self.next_ns = math.inf
        elif self.poisson:
            self.next_ns += self.rng.expovariate(1 / self.interval_ns)
        else:
            self.next_ns += self.interval_ns
        return psn

    def arrive(self, psn24: int, due_ns: int) -> tuple[int, int] | None:
        """(sent_ns, latency_ns) of a probe that arrived; None for a duplicate or stranger."""
        sent_ns = self.outstanding.pop(psn24, None)
        if sent_ns is None:
            return None
        self.arrived += 1
        return sent_ns, due_ns - sent_ns

    def lost(self) -> list[tuple[int, int]]:
        """(sequence number, sent_ns) of those that have not arrived."""
        return sorted(self.outstanding.items())


class Calendar:
    """When which stream sends its next probe; a tick looks only at those that do.

    Args:
        streams: all of the run.
    """

    def __init__(self, streams: Iterable[ProbeStream]) -> None:
        self._heap: list[tuple[float, int, ProbeStream]] = []
        for stream in streams:
            self._note(stream)

    def _note(self, stream: ProbeStream) -> None:
        if stream.next_ns < math.inf:
            heapq.heappush(self._heap, (stream.next_ns, stream.number, stream))

    @property
    def next_ns(self) -> int | None:
        """Model time from which the next probe is due; None when all have been sent."""
        return math.ceil(self._heap[0][0]) if self._heap else None

    def send(self, now_ns: int) -> Iterator[tuple[ProbeStream, int]]:
        """Notes all probes that are due as sent now: (stream, sequence number), by stream."""
        due = []
        while self._heap and self._heap[0][0] <= now_ns:
            due.append(heapq.heappop(self._heap)[2])
        for stream in sorted(due, key=attrgetter("number")):
            while stream.due(now_ns):
                yield stream, stream.send(now_ns)
            self._note(stream)
