"""Ultra-Ethernet-like transport: what its two ends are made of. PURE."""

from __future__ import annotations

import math

from traffic.entropies import EntropyPool
from traffic.nic.parameters import NicParameters
from traffic.nic.transports.base import Ends
from traffic.nic.transports.uet_receiver import UetReceiver
from traffic.nic.transports.uet_sender import UetSender
from traffic.nic.transports.uet_settings import UetSettings
from traffic.nscc import Nscc
from traffic.uet_params import NSCC, RCCC, UEC
from traffic.wire import data_frame_bytes, wire_bytes


def uet(rate_bps: int, parameters: NicParameters, number: int) -> Ends:
    """The ends of a connection; without a parameter set, that of the Ultra Ethernet Consortium."""
    params = UEC if parameters.uet is None else parameters.uet
    packet_bytes = wire_bytes(data_frame_bytes(parameters.payload_bytes))
    most_bytes = params.window_times * parameters.round_trip_ns * rate_bps / 8e9
    controls = parameters.control.split("+")
    settings = UetSettings(
        params,
        parameters.payload_bytes,
        packet_bytes,
        parameters.rto_ns,
        parameters.tick_ns,
        parameters.window_packets,
        RCCC in controls,
        max(1, math.ceil(most_bytes / packet_bytes)),
    )
    window = None
    if NSCC in controls:
        window = Nscc(params, packet_bytes, rate_bps, parameters.round_trip_ns, parameters.trims)
    pool = EntropyPool(params.entropies, params.spray, f"{parameters.seed}/entropies/{number}")
    sender = UetSender(settings, window, pool, packet_bytes * 8e9 / rate_bps)
    return Ends(sender, UetReceiver(parameters.tick_ns))
