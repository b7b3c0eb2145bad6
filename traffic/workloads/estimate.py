"""What a list of tasks will take, before it runs: bytes, packets, least model duration.

The least duration is a bound, not a prediction: no run can be faster, whatever the fabric does
between the hosts. It is the longest of three: the line time of the busiest host link, the work of
the busiest resource, and the longest chain of dependent tasks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from topologies.model import Fabric
from traffic import wire
from traffic.tasks import Compute, Flow, Task
from traffic.workloads.base import WorkloadSpec, host_rates
from traffic.workloads.registry import build_all
from traffic.workloads.volume import message_wire_bytes, packets

Pair = tuple[str, str]


@dataclass(frozen=True)
class Estimate:
    """Totals over a list of tasks, in model time and target units.

    Attributes:
        flows: number of messages.
        payload_bytes: payload of all messages.
        data_packets: data packets of all messages, none retransmitted.
        pair_bytes: payload by (sender, receiver).
        link_bound_ns: line time of the busiest direction of a host link.
        resource_bound_ns: work of the busiest resource.
        chain_bound_ns: length of the longest chain of dependent tasks.
    """

    flows: int
    payload_bytes: int
    data_packets: int
    pair_bytes: Mapping[Pair, int]
    link_bound_ns: int
    resource_bound_ns: int
    chain_bound_ns: int

    @property
    def least_duration_ns(self) -> int:
        """Model time that no run of these tasks can undercut, from the run's start."""
        return max(self.link_bound_ns, self.resource_bound_ns, self.chain_bound_ns)


def estimate(tasks: Sequence[Task], fabric: Fabric, path_delay_ns: int = 0) -> Estimate:
    """Totals and bounds of tasks in a fabric.

    Args:
        tasks: all tasks of a run.
        fabric: gives the rates of the host links and the MTU.
        path_delay_ns: time from sender to receiver that every message takes besides its line time.
    """
    flows = [task for task in tasks if isinstance(task, Flow)]
    payload_bytes = wire.max_payload_bytes(fabric.mtu_bytes)
    rates = {
        (host, plane): rate
        for plane in fabric.planes
        for host, rate in host_rates(fabric, plane).items()
    }
    times = {flow.id: _flow_ns(flow, rates, payload_bytes) + path_delay_ns for flow in flows}
    return Estimate(
        flows=len(flows),
        payload_bytes=sum(flow.size_bytes for flow in flows),
        data_packets=sum(packets(flow.size_bytes, payload_bytes) for flow in flows),
        pair_bytes=pair_bytes(flows),
        link_bound_ns=_link_bound_ns(flows, rates, payload_bytes),
        resource_bound_ns=_resource_bound_ns(tasks),
        chain_bound_ns=_chain_bound_ns(tasks, times),
    )


def estimate_workloads(
    specs: Iterable[WorkloadSpec],
    fabric: Fabric,
    seed: int,
    shrink: float = 1.0,
    path_delay_ns: int = 0,
) -> Estimate:
    """Build workloads at a shrink and estimate them together."""
    workloads = build_all(specs, fabric, seed, shrink)
    tasks = [task for workload in workloads for task in workload.tasks]
    return estimate(tasks, fabric, path_delay_ns)


def pair_bytes(flows: Iterable[Flow]) -> dict[Pair, int]:
    """Payload between each two hosts, bytes."""
    totals: dict[Pair, int] = {}
    for flow in flows:
        totals[flow.src, flow.dst] = totals.get((flow.src, flow.dst), 0) + flow.size_bytes
    return totals


def _line_ns(size_bytes: int, payload_bytes: int, rate_bps: int) -> int:
    return message_wire_bytes(size_bytes, payload_bytes) * 8_000_000_000 // rate_bps


def _flow_ns(flow: Flow, rates: Mapping[tuple[str, int], int], payload_bytes: int) -> int:
    slowest = min(rates[flow.src, flow.plane], rates[flow.dst, flow.plane])
    return _line_ns(flow.size_bytes, payload_bytes, slowest)


def _link_bound_ns(
    flows: Iterable[Flow], rates: Mapping[tuple[str, int], int], payload_bytes: int
) -> int:
    busy: dict[tuple[str, int, str], int] = {}
    for flow in flows:
        for host, way in ((flow.src, "out"), (flow.dst, "in")):
            line_ns = _line_ns(flow.size_bytes, payload_bytes, rates[host, flow.plane])
            key = (host, flow.plane, way)
            busy[key] = busy.get(key, 0) + line_ns
    return max(busy.values(), default=0)


def _resource_bound_ns(tasks: Iterable[Task]) -> int:
    busy: dict[str, int] = {}
    for task in tasks:
        if isinstance(task, Compute) and task.resource:
            busy[task.resource] = busy.get(task.resource, 0) + task.duration_ns
    return max(busy.values(), default=0)


def _chain_bound_ns(tasks: Sequence[Task], flow_ns: Mapping[int, int]) -> int:
    """Longest chain; builders list a task after those that it waits for."""
    done: dict[int, int] = {}
    for task in tasks:
        met = max((done[parent] for parent in task.after), default=0)
        begin = max(task.start_ns, met + task.delay_ns)
        took = task.duration_ns if isinstance(task, Compute) else flow_ns[task.id]
        done[task.id] = begin + took
    return max(done.values(), default=0)
