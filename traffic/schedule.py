"""The event core that turns a DAG of tasks into flows to start now; no clock of its own.

The NIC engine calls `start` once, then `ready` whenever `next_event_ns` has passed or a flow was
done. Computations run inside, at exact model times that do not depend on how often it is polled.
Each event costs O(log n).
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable

from topologies.errors import SpecError
from traffic.tasks import Compute, Flow, Task

_COMPUTE_DONE, _READY = 0, 1  # at equal times a resource is freed before it is asked for


class _Resource:
    """A unit that executes one computation at a time; the rest waits in order of readiness."""

    __slots__ = ("busy", "free_ns", "waiting")

    def __init__(self) -> None:
        self.busy = False
        self.free_ns = 0
        self.waiting: list[tuple[int, int]] = []


class Schedule:
    """Says which flows may start, given which are done.

    Args:
        tasks: flows and computations of all workloads of a run.

    Raises:
        SpecError: duplicate id, unknown dependency, cycle, or a value out of range.
    """

    def __init__(self, tasks: Iterable[Task]) -> None:
        self._tasks = _index(tasks)
        self._missing, self._children = _edges(self._tasks)
        _check_acyclic(self._tasks, self._missing, self._children)
        self._met_ns: dict[int, int] = {}
        self._ready_ns: dict[int, int] = {}
        self._start_ns: dict[int, int] = {}
        self._done_ns: dict[int, int] = {}
        self._events: list[tuple[int, int, int]] = []
        self._resources: dict[str, _Resource] = {}
        self._startable: list[Flow] = []
        self._computed: deque[Compute] = deque()
        self._running: set[int] = set()
        self._started = False

    @property
    def finished(self) -> bool:
        """True when every task is done."""
        return len(self._done_ns) == len(self._tasks)

    @property
    def tasks(self) -> dict[int, Task]:
        """Every task by its id; not to be changed."""
        return self._tasks

    def start(self, now_ns: int) -> None:
        """Begin the run: tasks without dependencies become ready from this model time on."""
        if self._started:
            raise ValueError("a schedule starts once")
        self._started = True
        for task_id, missing in self._missing.items():
            if not missing:
                self._release(task_id, now_ns)

    def ready(self, now_ns: int) -> list[Flow]:
        """Flows that became ready up to this model time, in that order; each is returned once."""
        events = self._events
        while events and events[0][0] <= now_ns:
            time_ns, kind, task_id = heapq.heappop(events)
            if kind == _COMPUTE_DONE:
                self._compute_done(task_id, time_ns)
            else:
                self._became_ready(task_id, time_ns)
        flows, self._startable = self._startable, []
        return flows

    def flow_done(self, flow_id: int, at_ns: int) -> None:
        """Report that the last byte of a flow that `ready` had returned arrived at this time."""
        if flow_id not in self._running:
            raise ValueError(f"flow {flow_id} is not under way")
        self._running.remove(flow_id)
        self._finish(flow_id, at_ns)

    def next_event_ns(self) -> int | None:
        """Model time of the next event that needs no report from outside; None without one."""
        return self._events[0][0] if self._events else None

    def unfinished(self) -> list[int]:
        """Ids of the tasks that are not done, ascending."""
        return sorted(self._tasks.keys() - self._done_ns.keys())

    def under_way(self) -> list[int]:
        """Ids of the flows that `ready` returned and that are not done, ascending."""
        return sorted(self._running)

    def ready_ns(self, task_id: int) -> int | None:
        """When a task became (or, being scheduled, will become) ready; None when not known yet."""
        return self._ready_ns.get(task_id)

    def times(self) -> dict[int, tuple[int, int]]:
        """(start_ns, done_ns) of each task that is done; a flow starts when it becomes ready."""
        return {task_id: (self._start_ns[task_id], done) for task_id, done in self._done_ns.items()}

    def pop_computes(self) -> list[tuple[Compute, int, int]]:
        """Computations finished since the last call, with start and end (ns)."""
        rows = [(task, *self._span(task.id)) for task in self._computed]
        self._computed.clear()
        return rows

    def _span(self, task_id: int) -> tuple[int, int]:
        return self._start_ns[task_id], self._done_ns[task_id]

    def _release(self, task_id: int, met_ns: int) -> None:
        task = self._tasks[task_id]
        ready_ns = max(task.start_ns, met_ns + task.delay_ns)
        self._ready_ns[task_id] = ready_ns
        heapq.heappush(self._events, (ready_ns, _READY, task_id))

    def _became_ready(self, task_id: int, time_ns: int) -> None:
        task = self._tasks[task_id]
        if isinstance(task, Flow):
            self._start_ns[task_id] = time_ns
            self._running.add(task_id)
            self._startable.append(task)
        elif task.resource == "":
            self._begin_compute(task, time_ns)
        else:
            resource = self._resources.setdefault(task.resource, _Resource())
            heapq.heappush(resource.waiting, (time_ns, task_id))
            self._serve(resource)

    def _serve(self, resource: _Resource) -> None:
        if resource.busy or not resource.waiting:
            return
        ready_ns, task_id = heapq.heappop(resource.waiting)
        task = self._tasks[task_id]
        assert isinstance(task, Compute)
        resource.busy = True
        self._begin_compute(task, max(ready_ns, resource.free_ns))

    def _begin_compute(self, task: Compute, start_ns: int) -> None:
        self._start_ns[task.id] = start_ns
        heapq.heappush(self._events, (start_ns + task.duration_ns, _COMPUTE_DONE, task.id))

    def _compute_done(self, task_id: int, time_ns: int) -> None:
        task = self._tasks[task_id]
        assert isinstance(task, Compute)
        self._computed.append(task)
        self._finish(task_id, time_ns)
        if task.resource != "":
            resource = self._resources[task.resource]
            resource.busy, resource.free_ns = False, time_ns
            self._serve(resource)

    def _finish(self, task_id: int, at_ns: int) -> None:
        self._done_ns[task_id] = at_ns
        for child in self._children.get(task_id, ()):
            self._met_ns[child] = max(at_ns, self._met_ns.get(child, at_ns))
            self._missing[child] -= 1
            if not self._missing[child]:
                self._release(child, self._met_ns.pop(child))


def _index(tasks: Iterable[Task]) -> dict[int, Task]:
    index: dict[int, Task] = {}
    for task in tasks:
        if task.id in index:
            raise SpecError(f"tasks[{task.id}]", task.id, "is the id of two tasks")
        _check_values(task)
        index[task.id] = task
    return index


def _check_values(task: Task) -> None:
    path = f"tasks[{task.id}]"
    for name, value in (("start_ns", task.start_ns), ("delay_ns", task.delay_ns)):
        _check_at_least(f"{path}.{name}", value, 0)
    if isinstance(task, Compute):
        _check_at_least(f"{path}.duration_ns", task.duration_ns, 0)
        return
    _check_at_least(f"{path}.size_bytes", task.size_bytes, 1)
    if not 0 <= task.dscp <= 63:
        raise SpecError(f"{path}.dscp", task.dscp, "must be between 0 and 63")
    if task.src == task.dst:
        raise SpecError(f"{path}.dst", task.dst, "must differ from the sending host")


def _check_at_least(path: str, value: int, least: int) -> None:
    if value < least:
        raise SpecError(path, value, f"must be at least {least}")


def _edges(tasks: dict[int, Task]) -> tuple[dict[int, int], dict[int, list[int]]]:
    missing: dict[int, int] = {}
    children: dict[int, list[int]] = {}
    for task in tasks.values():
        parents = set(task.after)
        missing[task.id] = len(parents)
        for parent in parents:
            if parent not in tasks:
                rule = "is not the id of a task"
                raise SpecError(f"tasks[{task.id}].after", parent, rule)
            children.setdefault(parent, []).append(task.id)
    return missing, children


def _check_acyclic(
    tasks: dict[int, Task], missing: dict[int, int], children: dict[int, list[int]]
) -> None:
    """Remove tasks whose dependencies are removed until none is left (Kahn 1962)."""
    left = dict(missing)
    free = [task_id for task_id, count in left.items() if not count]
    while free:
        task_id = free.pop()
        del left[task_id]
        for child in children.get(task_id, ()):
            left[child] -= 1
            if not left[child]:
                free.append(child)
    if left:
        cycle = _some_cycle(tasks, left)
        rule = "is a cycle of dependencies, so none of these tasks could ever start"
        raise SpecError(f"tasks[{cycle[0]}].after", cycle, rule)


def _some_cycle(tasks: dict[int, Task], left: dict[int, int]) -> list[int]:
    """Walk back over unmet dependencies until a task repeats."""
    walk: list[int] = []
    seen: dict[int, int] = {}
    task_id = min(left)
    while task_id not in seen:
        seen[task_id] = len(walk)
        walk.append(task_id)
        task_id = min(parent for parent in tasks[task_id].after if parent in left)
    return walk[seen[task_id] :][::-1]
