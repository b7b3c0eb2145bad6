"""RoCEv2's reliable connection: go-back-N, at line rate or with DCQCN. PURE."""

from __future__ import annotations

from traffic.dcqcn import CnpGate, Dcqcn
from traffic.nic.parameters import NicParameters
from traffic.nic.receiver import Receiver
from traffic.nic.sender import Sender
from traffic.nic.transports.base import Ends


def go_back_n(rate_bps: int, parameters: NicParameters, _number: int = 0) -> Ends:
    """The ends of a connection, with DCQCN where the parameters have a set of it."""
    dcqcn = parameters.dcqcn
    control = None if dcqcn is None else Dcqcn(dcqcn, rate_bps)
    gate = None if dcqcn is None else CnpGate(dcqcn.cnp_interval_ns)
    sender = Sender(parameters.payload_bytes, parameters.window_packets, parameters.rto_ns, control)
    return Ends(sender, Receiver(gate))
