"""PURE: how many data packets per second an experiment asks for at its peak.

Pessimistic on purpose: every host that sends at any time is taken to send at once at its line
rate. Bounds are the uplinks of each leaf, and the receivers unless windows are unlimited. Packets
are counted in equivalents of a path over `REFERENCE_HOPS` switches, as capacity is measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from emulator.probing import probe_pairs
from emulator.spec.model import UNLIMITED, Experiment
from topologies.model import Fabric
from topologies.paths import uplink_bps
from traffic import wire
from traffic.tasks import Flow, Task
from traffic.workloads.base import host_rates

REFERENCE_HOPS = 3
"""Switches between two hosts on different leaves of a leaf-spine."""
LOCAL_HOPS = 1


@dataclass
class _Senders:
    """Hosts of one plane by what they do.

    Attributes:
        crossing: hosts that send to another leaf.
        local: hosts that send below their own leaf only.
        receiving: hosts that receive.
    """

    crossing: set[str] = field(default_factory=set)
    local: set[str] = field(default_factory=set)
    receiving: set[str] = field(default_factory=set)


def peak_packets_per_s(experiment: Experiment, tasks: Sequence[Task]) -> float:
    """Data packets and probes per second of model time, in `REFERENCE_HOPS` equivalents."""
    frame = wire.data_frame_bytes(experiment.transport.payload_bytes)
    packet_bits = wire.wire_bytes(frame) * 8
    bounded = experiment.transport.window != UNLIMITED
    total = sum(
        _plane_bps(experiment.fabric, plane, senders, bounded) / packet_bits
        for plane, senders in _by_plane(experiment.fabric, tasks).items()
    )
    return total + _probes_per_s(experiment)


def _by_plane(fabric: Fabric, tasks: Sequence[Task]) -> dict[int, _Senders]:
    planes: dict[int, _Senders] = {}
    pairs = {(t.plane, t.src, t.dst) for t in tasks if isinstance(t, Flow)}
    for plane, src, dst in pairs:
        senders = planes.setdefault(plane, _Senders())
        crosses = fabric.attachment[src, plane][0] != fabric.attachment[dst, plane][0]
        (senders.crossing if crosses else senders.local).add(src)
        senders.receiving.add(dst)
    for senders in planes.values():
        senders.local -= senders.crossing
    return planes


def _plane_bps(fabric: Fabric, plane: int, senders: _Senders, bounded: bool) -> float:
    """Bit/s on the wire of a plane, weighted by switches passed over `REFERENCE_HOPS`."""
    rates = host_rates(fabric, plane)
    local_share = LOCAL_HOPS / REFERENCE_HOPS
    uplinks = uplink_bps(fabric, plane)
    crossing_bps = local_bps = 0.0
    for leaf in (node for node in fabric.switches if node.name in uplinks):
        hosts = {
            h
            for (h, p), (index, _) in fabric.attachment.items()
            if (p, index) == (plane, leaf.index)
        }
        offered = sum(rates[host] for host in hosts & senders.crossing)
        carried = min(offered, sum(uplinks[leaf.name].values()))
        crossing_bps += carried
        local_bps += offered - carried + sum(rates[host] for host in hosts & senders.local)
    if bounded:
        received = sum(rates[host] for host in senders.receiving)
        crossing_bps = min(crossing_bps, received)
        local_bps = min(local_bps, received - crossing_bps)
    return crossing_bps + local_bps * local_share


def _probes_per_s(experiment: Experiment) -> float:
    probes = experiment.probes
    if probes is None:
        return 0.0
    return len(probe_pairs(experiment)) * len(probes.classes) * probes.rate_per_s
