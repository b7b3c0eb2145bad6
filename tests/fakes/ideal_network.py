"""A network without queues' surprises: runs a schedule to its end by simple arithmetic."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable

from topologies.model import Fabric
from topologies.registry import build_fabric
from traffic.schedule import Schedule
from traffic.tasks import Flow, Task

Times = dict[int, tuple[int, int]]


def leaf_spine(leaves: int = 4, spines: int = 2, hosts_per_leaf: int = 4, **keys: object) -> Fabric:
    """A leaf-spine fabric with the builder's default links."""
    shape = {"leaves": leaves, "spines": spines, "hosts_per_leaf": hosts_per_leaf}
    return build_fabric({"kind": "leaf-spine", **shape, **keys})


class IdealNetwork:
    """Each host sends one message at a time, in the order in which they became ready.

    Args:
        rate_bps: rate of every host's link; payload only, no headers.
        delay_ns: time that a message takes besides.
        extra_ns: how much longer than that each flow holds its sender's link; None = it is lost.
    """

    def __init__(
        self,
        rate_bps: int = 8_000_000_000,
        delay_ns: int = 0,
        extra_ns: Callable[[Flow], int | None] = lambda flow: 0,
    ) -> None:
        self.rate_bps, self.delay_ns, self.extra_ns = rate_bps, delay_ns, extra_ns
        self.started: list[tuple[int, Flow]] = []
        self._free_ns: dict[str, int] = {}
        self._arrivals: list[tuple[int, int]] = []

    def run(self, tasks: Iterable[Task]) -> Schedule:
        """Run until nothing is left that can happen."""
        schedule = Schedule(tasks)
        schedule.start(0)
        while (now_ns := self._next_ns(schedule)) is not None:
            while self._arrivals and self._arrivals[0][0] <= now_ns:
                at_ns, flow_id = heapq.heappop(self._arrivals)
                schedule.flow_done(flow_id, at_ns)
            for flow in schedule.ready(now_ns):
                self._send(flow, now_ns)
        return schedule

    def _next_ns(self, schedule: Schedule) -> int | None:
        times = [time for time in (schedule.next_event_ns(),) if time is not None]
        times += [self._arrivals[0][0]] if self._arrivals else []
        return min(times, default=None)

    def _send(self, flow: Flow, now_ns: int) -> None:
        self.started.append((now_ns, flow))
        extra_ns = self.extra_ns(flow)
        if extra_ns is None:
            return
        begin = max(now_ns, self._free_ns.get(flow.src, 0))
        end = begin + flow.size_bytes * 8_000_000_000 // self.rate_bps + extra_ns
        self._free_ns[flow.src] = end
        heapq.heappush(self._arrivals, (end + self.delay_ns, flow.id))
