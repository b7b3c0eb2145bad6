"""Settings of the NIC engine, all in target units."""

from __future__ import annotations

from dataclasses import dataclass

from traffic.dcqcn import DcqcnParams
from traffic.dctcp_params import DctcpParams
from traffic.uet_params import UetParams


@dataclass(frozen=True, slots=True)
class NicParameters:
    """How the NICs of a run behave.

    Attributes:
        payload_bytes: path MTU of RDMA, payload bytes of a full packet.
        window_packets: most unacknowledged packets of a connection; None = no limit.
        rto_ns: retransmission timeout.
        dcqcn: parameters of the rate control; None = every flow sends at line rate.
        control_dscp: code point of ACK, NAK and CNP.
        tick_ns: the engine's period.
        lookahead_ns: how far ahead of the wire a NIC's queue is filled.
        transport: name of the transport (`traffic.nic.transports`).
        round_trip_ns: unloaded round trip of a full packet and its acknowledgement, longest path.
        dctcp: parameters of DCTCP's window.
        uet: parameters of Ultra-Ethernet-like transport.
        control: its control: ``nscc``, ``rccc``, both joined by ``+``, or ``none``.
        trims: whether switches cut to its headers what they cannot take.
        seed: of what is drawn at random.
        overtaking: whether the network below may swap packets of one path, as a kernel with several
            processors does; without it whatever is missing is lost.
    """

    payload_bytes: int
    window_packets: int | None
    rto_ns: int
    dcqcn: DcqcnParams | None = None
    control_dscp: int = 48
    tick_ns: int = 1000
    lookahead_ns: int = 1500
    transport: str = "go-back-n"
    round_trip_ns: int = 0
    dctcp: DctcpParams | None = None
    uet: UetParams | None = None
    control: str = "nscc"
    trims: bool = False
    seed: int = 0
    overtaking: bool = True
