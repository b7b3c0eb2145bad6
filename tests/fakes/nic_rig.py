"""Hosts around one switch, and a NIC engine that sends between them over the fake medium."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tests.fakes.medium import FakeClock, FakeMedium, FakeQueue, Frame, Lose, Marking
from traffic import wire
from traffic.nic.connection import Connection, Endpoints, Path
from traffic.nic.engine import PROBE_QP_BASE, NicEngine, Plan
from traffic.nic.frames import book
from traffic.nic.pacing import NicQueue
from traffic.nic.parameters import NicParameters
from traffic.nic.probes import ProbeStream
from traffic.nic.sender import Message
from traffic.nic.transports import sprays
from traffic.schedule import Schedule
from traffic.tasks import Compute, Flow, Task

RATE_BPS = 100_000_000_000
FIXED_NS = 4_000
PAYLOAD = 4096
FRAME = wire.data_frame_bytes(PAYLOAD)
PACKET_NS = wire.wire_bytes(FRAME) * 8e9 / RATE_BPS
PATH = Path(FIXED_NS, 2 * 8e9 / RATE_BPS)
"""Two serialisations, at the host and at the switch, and 4 us."""
PARAMETERS = NicParameters(PAYLOAD, 64, 200_000, tick_ns=1_000, lookahead_ns=1_500)


def number_of(host: str) -> int:
    """The number, and port index, of a host: ``h3`` -> 3."""
    return int(host[1:])


def address(src: str, dst: str, dscp: int = 26, entropy: int = 0) -> wire.FlowAddress:
    """Headers from one host to another."""
    a, b = number_of(src), number_of(dst)
    macs = [f"02:00:00:00:00:{number:02x}" for number in (a, b)]
    return wire.FlowAddress(macs[0], macs[1], f"10.1.0.{a}", f"10.1.0.{b}", entropy, 0, dscp)


def endpoints(src: str = "h1", dst: str = "h2", rate_bps: int = RATE_BPS, path: Path = PATH,
              **keys: int) -> Endpoints:  # fmt: skip
    """Where a connection between two hosts runs."""
    headers = address(src, dst, **keys)
    return Endpoints(number_of(src), number_of(dst), headers, rate_bps, path, path)


def flow(number: int, size_bytes: int, src: str = "h1", dst: str = "h2", **keys: Any) -> Flow:
    """A flow of a job."""
    return Flow(number, "job", src, dst, size_bytes, keys.pop("dscp", 26), f"f{number}", **keys)


def probe_stream(
    number: int = 0,
    src: str = "h1",
    dst: str = "h2",
    tc: int = 3,
    interval_ns: float = 10_000,
    first_ns: float = 0,
    **keys: Any,
) -> ProbeStream:
    """A stream of small probes."""
    headers = replace(address(src, dst, wire.dscp_of(tc)), dest_qp=PROBE_QP_BASE + number)
    return ProbeStream(
        number, tc, src, dst, number_of(src), headers, PATH, interval_ns, first_ns, 16, **keys
    )


@dataclass(frozen=True)
class Done:
    """A flow that has arrived."""

    flow: Flow
    ready_ns: int
    message: Message
    done_ns: int

    @property
    def span_ns(self) -> int:
        """From being ready to its last byte."""
        return self.done_ns - self.ready_ns

    @property
    def goodput_bps(self) -> float:
        """Payload over time, bit/s."""
        return self.flow.size_bytes * 8e9 / self.span_ns


@dataclass
class Happenings:
    """A recorder that keeps everything."""

    flows: list[Done] = field(default_factory=list)
    computes: list[tuple[Compute, int, int]] = field(default_factory=list)
    probes: list[tuple[int, int, int, int | None]] = field(default_factory=list)
    ticks: list[int] = field(default_factory=list)

    def flow_done(self, flow: Flow, ready_ns: int, message: Message, done_ns: int) -> None:
        """A flow."""
        self.flows.append(Done(flow, ready_ns, message, done_ns))

    def compute_done(self, task: Compute, start_ns: int, done_ns: int) -> None:
        """A computation."""
        self.computes.append((task, start_ns, done_ns))

    def probe(self, stream: ProbeStream, psn: int, sent_ns: int, latency_ns: int | None) -> None:
        """A probe, by the number of its stream."""
        self.probes.append((stream.number, psn, sent_ns, latency_ns))

    def tick(self, now_ns: int) -> None:
        """A tick."""
        self.ticks.append(now_ns)

    def by_id(self) -> dict[int, Done]:
        """Flows by id; each must have arrived once."""
        rows = {row.flow.id: row for row in self.flows}
        assert len(rows) == len(self.flows), "a flow arrived twice"
        return rows


class Rig:
    """An engine, its plan and its network: hosts ``h1``... around one switch.

    Args:
        tasks: what runs.
        streams: probes.
        parameters: of all NICs.
        rate_bps: of every link, bit/s.
        buffer_bytes: of each egress queue of the switch; None = no limit.
        marking: at the switch.
        lose: frames that the network loses.
        late_ns: how late the engine wakes up.
        now_ns: model time at the beginning.
        trim_bytes: what has no room at the switch is cut to so many bytes; None = dropped.
        paths: queues before the switch, of which a frame takes one by its source port.
        medium: further arguments of the medium.
    """

    def __init__(
        self,
        tasks: Iterable[Task] = (),
        streams: Sequence[ProbeStream] = (),
        parameters: NicParameters = PARAMETERS,
        rate_bps: int = RATE_BPS,
        buffer_bytes: int | None = None,
        marking: Marking | None = None,
        lose: Lose = lambda frame: False,
        late_ns: Callable[[int], int] = lambda asked: 0,
        now_ns: int = 0,
        trim_bytes: int | None = None,
        paths: Sequence[FakeQueue] = (),
        **medium: Any,
    ) -> None:
        self.tasks = tuple(tasks)
        flows = [task for task in self.tasks if isinstance(task, Flow)]
        hosts = {name for flow in flows for name in (flow.src, flow.dst)}
        hosts |= {name for stream in streams for name in (stream.src, stream.dst)}
        self.ports = sorted(number_of(host) for host in hosts)
        self.clock, self.seen = FakeClock(now_ns, late_ns), Happenings()
        self.nics = {port: FakeQueue(rate_bps) for port in self.ports}
        self.switch = {
            port: FakeQueue(rate_bps, buffer_bytes, marking, seed=port, trim_bytes=trim_bytes)
            for port in self.ports
        }
        self.paths = list(paths)
        self.medium = FakeMedium(self.clock, self.nics, self._route, lose, way=self._way, **medium)
        self.plan = self._plan(flows, streams, parameters, rate_bps)
        self.engine = NicEngine(self.plan, self.medium, self.clock, self.seen)

    def _route(self, _port: int, dst_ip: str) -> list[FakeQueue]:
        return [self.switch[int(dst_ip.rpartition(".")[2])]]

    def _way(self, frame: Frame) -> list[FakeQueue]:
        last = self._route(frame.port, frame.dst_ip)
        return [self.paths[frame.sport % len(self.paths)], *last] if self.paths else last

    def _plan(
        self,
        flows: Sequence[Flow],
        streams: Sequence[ProbeStream],
        parameters: NicParameters,
        rate_bps: int,
    ) -> Plan:
        by_key: dict[tuple[str, int, str, str, int], Connection] = {}
        sizes: dict[int, set[int]] = {}
        for one in flows:
            if one.connection not in by_key:
                ends = endpoints(one.src, one.dst, rate_bps, dscp=one.dscp)
                by_key[one.connection] = Connection(len(by_key), ends, parameters)
            sizes.setdefault(by_key[one.connection].number, set()).add(one.size_bytes)
        connections = list(by_key.values())
        frames = book(connections, sizes, parameters.payload_bytes, parameters.control_dscp,
                      sprays(parameters.transport))  # fmt: skip
        for stream in streams:
            stream.template = frames.add_datagram(stream.address, stream.payload_bytes)
        nics = {port: NicQueue(port, rate_bps) for port in self.ports}
        schedule = Schedule(self.tasks)
        return Plan(schedule, connections, by_key, nics, frames.finish(), streams, parameters)

    def run(self, limit_ns: int | None = 1_000_000_000) -> bool:
        """Runs to the end; a limit keeps a mistake from running for ever."""
        return self.engine.run(lambda: False, limit_ns)

    def settle(self) -> bool:
        """Lets what is under way arrive."""
        return self.engine.drain(20_000, 10_000_000)

    @property
    def counters(self) -> Any:
        """The engine's."""
        return self.engine.counters


def unloaded_ns(size_bytes: int) -> float:
    """When the last byte of a message arrives that has the network for itself.

    A short last packet follows its full predecessor at once, for which the switch's line is busy.
    """
    full, tail = divmod(size_bytes - 1, PAYLOAD)
    last = full * PACKET_NS + PATH.hold_ns(wire.data_frame_bytes(tail + 1))
    return max(last, (full - 1) * PACKET_NS + PATH.hold_ns(FRAME)) if full else last
