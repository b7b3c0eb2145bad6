"""Turns tasks into what the NIC engine runs: connections, paths, frames, probes.

Every connection gets its entropy (UDP source port) from the seed and its key, its path from the
controller's own routing, and its delay from the same prediction that `fabriclab plan` prints.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from emulator import timing
from emulator.probing import probe_pairs
from emulator.spec.model import CREDIT, GO_BACK_N, Experiment, ProbeSpec
from emulator.transport import TransportSettings
from topologies.addressing import host_ip, host_mac
from topologies.model import Fabric, Link, Port
from traffic import wire
from traffic.nic.connection import Connection, Endpoints, Path
from traffic.nic.engine import PROBE_QP_BASE, Plan
from traffic.nic.frames import book
from traffic.nic.pacing import NicQueue
from traffic.nic.parameters import NicParameters
from traffic.nic.probes import ProbeStream
from traffic.nic.transports import sprays
from traffic.schedule import Schedule
from traffic.tasks import Flow, Task

Key = tuple[str, int, str, str, int]
Route = Callable[[str, str, int, int], Sequence[Link]]
"""(source, destination, plane, UDP source port) -> links in travelling order."""

CONTROL_DSCP = wire.CONTROL_DSCP
ENGINE = {CREDIT: GO_BACK_N}
"""Kinds of transport that the NIC engine knows by another name: credits are in the switches."""
_SMALL_BYTES, _LARGE_BYTES = 128, 4096


@dataclass(frozen=True)
class Pace:
    """The engine's rhythm, in model ns.

    Attributes:
        tick_ns: period.
        lookahead_ns: how far NIC queues are filled ahead.
        software_ns: what an idle switch hop of the emulation takes by itself; taken off the holds.
    """

    tick_ns: int
    lookahead_ns: int
    software_ns: float = 0.0


def entropy(seed: int, *key: object) -> int:
    """A 14-bit number from seed and key, equal in every run."""
    text = "/".join(str(part) for part in (seed, *key))
    digest = hashlib.blake2b(text.encode(), digest_size=2).digest()
    return int.from_bytes(digest, "big") & wire.ENTROPY_MASK


def port_of(fabric: Fabric, host: str, plane: int) -> Port:
    """A host's port in a plane; KeyError when it has none."""
    for port in fabric.ports_of[host]:
        if fabric.link_of(port).plane == plane:
            return port
    raise KeyError((host, plane))


def delay_of(links: Sequence[Link], experiment: Experiment, software_ns: float) -> Path:
    """The hold of a path: all of its unloaded one-way time less what the emulation takes."""
    small = timing.one_way_ns(links, experiment.switch, _SMALL_BYTES)
    large = timing.one_way_ns(links, experiment.switch, _LARGE_BYTES)
    slope = (large - small) / (_LARGE_BYTES - _SMALL_BYTES)
    fixed = small - slope * wire.wire_bytes(_SMALL_BYTES)
    return Path(fixed - software_ns * (len(links) - 1), slope)


class Assembler:
    """Makes connections and probes of one experiment.

    Args:
        experiment: what runs.
        route: the path of a flow.
        pace: the engine's rhythm.
        settings: window and timeout.
        delays_in_path: all links but the last delay packets themselves, and so do the switches.
    """

    def __init__(
        self,
        experiment: Experiment,
        route: Route,
        pace: Pace,
        settings: TransportSettings,
        delays_in_path: bool = False,
    ) -> None:
        self.experiment, self._route, self._pace = experiment, route, pace
        self._settings, self._delays_in_path = settings, delays_in_path
        self.fabric = experiment.fabric

    def _hold(self, links: Sequence[Link]) -> Path:
        """What the receiving NIC adds to a path: what nothing before it has."""
        if self._delays_in_path:
            return delay_of(links[-1:], self.experiment, 0.0)
        return delay_of(links, self.experiment, self._pace.software_ns)

    def _address(self, src: str, dst: str, plane: int, number: int, dscp: int) -> wire.FlowAddress:
        fabric = self.fabric
        return wire.FlowAddress(
            host_mac(fabric, src, plane), host_mac(fabric, dst, plane),
            host_ip(fabric, src, plane), host_ip(fabric, dst, plane), number, 0, dscp,
        )  # fmt: skip

    def endpoints(self, key: Key, dscp: int) -> Endpoints:
        """Where a connection runs."""
        job, plane, src, dst, qp = key
        number = entropy(self.experiment.seed, job, plane, src, dst, qp)
        address = self._address(src, dst, plane, number, dscp)
        source, target = port_of(self.fabric, src, plane), port_of(self.fabric, dst, plane)
        links = self._route(src, dst, plane, address.sport)
        there, back = self._hold(links), self._hold(links[::-1])
        rate_bps = self.fabric.link_of(source).rate_bps
        return Endpoints(source.index, target.index, address, rate_bps, there, back)

    def parameters(self) -> NicParameters:
        """Transport settings of all NICs."""
        transport, settings = self.experiment.transport, self._settings
        return NicParameters(
            transport.payload_bytes, settings.window_packets, settings.retransmit_timeout_ns,
            transport.dcqcn, CONTROL_DSCP, self._pace.tick_ns, self._pace.lookahead_ns,
            transport=ENGINE.get(transport.kind, transport.kind), dctcp=transport.dctcp,
            round_trip_ns=settings.round_trip_ns, uet=transport.uet, control=transport.control,
            trims=bool(self.experiment.trim), seed=self.experiment.seed,
            overtaking=not self._delays_in_path,
        )  # fmt: skip

    def nics(self) -> dict[int, NicQueue]:
        """The NIC of each host port."""
        return {
            port.index: NicQueue(port.index, self.fabric.link_of(port).rate_bps)
            for port in self.fabric.ports
            if not self.fabric.by_name[port.node].is_switch
        }

    def streams(self, spec: ProbeSpec) -> list[ProbeStream]:
        """Probe streams of all pairs and classes, their phases (and random gaps) by the seed."""
        rng = random.Random(f"{self.experiment.seed}/probes")
        interval_ns = 1e9 / spec.rate_per_s
        payload = spec.size_bytes - wire.data_frame_bytes(0)
        streams: list[ProbeStream] = []
        for src, dst, plane in probe_pairs(self.experiment):
            for tc in spec.classes:
                stream = self._stream(len(streams), src, dst, plane, tc, interval_ns, payload)
                stream.rng = random.Random(f"{self.experiment.seed}/probe/{len(streams)}")
                stream.poisson, first_ns = spec.poisson, rng.uniform(0, interval_ns)
                if stream.poisson:
                    first_ns = stream.rng.expovariate(1 / interval_ns)
                stream.next_ns = stream.first_ns = first_ns
                streams.append(stream)
        return streams

    def _stream(
        self, number: int, src: str, dst: str, plane: int, tc: int, interval_ns: float, payload: int
    ) -> ProbeStream:
        port = port_of(self.fabric, src, plane)
        spread = entropy(self.experiment.seed, "probe", plane, src, dst, tc)
        address = self._address(src, dst, plane, spread, wire.dscp_of(tc))
        address = replace(address, dest_qp=PROBE_QP_BASE + number)
        links = self._route(src, dst, plane, address.sport)
        return ProbeStream(
            number, tc, src, dst, port.index, address, self._hold(links), interval_ns, 0.0, payload
        )

    def plan(self, tasks: Sequence[Task], streams: Sequence[ProbeStream] = ()) -> Plan:
        """Everything that the engine needs to run these tasks and probes."""
        flows = [task for task in tasks if isinstance(task, Flow)]
        ends: dict[Key, Endpoints] = {}
        sizes: dict[Key, set[int]] = {}
        for flow in flows:
            if flow.connection not in ends:
                ends[flow.connection] = self.endpoints(flow.connection, flow.dscp)
            sizes.setdefault(flow.connection, set()).add(flow.size_bytes)
        parameters = self.parameters()
        connections = [Connection(n, end, parameters) for n, end in enumerate(ends.values())]
        by_number = {n: sizes[key] for n, key in enumerate(ends)}
        frames = book(connections, by_number, parameters.payload_bytes, parameters.control_dscp,
                      sprays(parameters.transport))  # fmt: skip
        for stream in streams:
            stream.template = frames.add_datagram(stream.address, stream.payload_bytes)
        return Plan(
            Schedule(tasks), connections, dict(zip(ends, connections, strict=True)), self.nics(),
            frames.finish(), streams, parameters,
        )  # fmt: skip
