"""What the NIC engine runs, what it counts, and whom it tells."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from traffic.nic.connection import Connection
from traffic.nic.pacing import NicQueue
from traffic.nic.parameters import NicParameters
from traffic.nic.probes import ProbeStream
from traffic.nic.sender import Message
from traffic.schedule import Schedule
from traffic.tasks import Compute, Flow
from traffic.template import FrameBank

PROBE_QP_BASE = 0x800000
"""Queue pair of probe stream 0; those of connections are below."""


class Recorder(Protocol):
    """Takes what happened, as it happens; all times are model ns."""

    def flow_done(self, flow: Flow, ready_ns: int, message: Message, done_ns: int) -> None:
        """The last byte of a flow arrived."""

    def compute_done(self, task: Compute, start_ns: int, done_ns: int) -> None:
        """A computation ended."""

    def probe(self, stream: ProbeStream, psn: int, sent_ns: int, latency_ns: int | None) -> None:
        """A probe arrived (or was lost: None)."""

    def tick(self, now_ns: int) -> None:
        """Called once per tick, for progress and for writing things down."""


@dataclass(slots=True)
class Counters:
    """What the engine did, in packets.

    Attributes:
        data_sent: data packets handed to the kernel, those sent again included.
        control_sent: ACKs, NAKs and CNPs.
        probes_sent: latency probes.
        received: frames of any kind that arrived.
        delivered: data packets and probes that were due.
        strangers: frames for a queue pair that does not exist, and probes that were not expected.
        timeouts: times that a connection went back because nothing was acknowledged.
        naks: NAKs among `control_sent`.
        cnps: CNPs among `control_sent`.
        refused: frames that the kernel did not take.
        retransmitted: data packets that had been sent before.
        marked: data packets that arrived with CE.
        trimmed: packets of which only the headers arrived.
        ticks: rounds of the loop.
        inside_switches_ns: time that all packets together spent inside switches, ns.
    """

    data_sent: int = 0
    control_sent: int = 0
    probes_sent: int = 0
    received: int = 0
    delivered: int = 0
    strangers: int = 0
    timeouts: int = 0
    naks: int = 0
    cnps: int = 0
    refused: int = 0
    retransmitted: int = 0
    marked: int = 0
    trimmed: int = 0
    ticks: int = 0
    inside_switches_ns: float = 0.0


@dataclass(slots=True)
class Plan:
    """Everything that an engine runs.

    Attributes:
        schedule: the tasks.
        connections: by number.
        connection_of: connection of each flow's key.
        nics: NIC of each host port.
        bank: frame templates.
        probes: probe streams by number.
        parameters: transport settings.
    """

    schedule: Schedule
    connections: Sequence[Connection]
    connection_of: dict[tuple[str, int, str, str, int], Connection]
    nics: dict[int, NicQueue]
    bank: FrameBank
    probes: Sequence[ProbeStream]
    parameters: NicParameters


def lateness_ns(nics: Iterable[NicQueue]) -> list[int]:
    """All lateness samples of all NICs, ns."""
    return [sample for nic in nics for sample in nic.lateness_ns]
