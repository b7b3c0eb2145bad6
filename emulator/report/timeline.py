"""The training timeline and iteration times, derived from flows.csv and computes.csv. PURE.

Tags say what a task belongs to: ``i3.s5.r2`` is iteration 3, step 5, rank 2.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from emulator.report.fabricmap import natural
from emulator.report.series import Interval, merge_intervals
from emulator.results.reader import Table

_ITERATION = re.compile(r"(?:^|\.)i(\d+)(?=\.|$)")
_RANK = re.compile(r"(?:^|\.)r(\d+)(?=\.|$)")


@dataclass
class Row:
    """What one rank did.

    Attributes:
        label: the rank and its host.
        compute: intervals of computation, ns.
        comm: intervals in which the rank had data to send, ns.
    """

    label: str
    compute: list[Interval] = field(default_factory=list)
    comm: list[Interval] = field(default_factory=list)


@dataclass(frozen=True)
class Timeline:
    """One training job.

    Attributes:
        job: its name.
        rows: one per rank, in rank order.
        iterations: iteration number -> (start, end), ns of model time.
        unfinished: tasks without an end (the run ended before them).
    """

    job: str
    rows: tuple[Row, ...]
    iterations: Mapping[int, Interval]
    unfinished: int

    def durations_ms(self, shrink: float) -> dict[int, float]:
        """Iteration number -> duration of the full-size job, ms."""
        return {
            number: (end - start) * shrink / 1e6 for number, (start, end) in self.iterations.items()
        }


@dataclass(frozen=True)
class _Task:
    job: str
    iteration: int
    rank: str
    host: str
    start_ns: float
    done_ns: float
    is_compute: bool


def timelines(flows: Table, computes: Table, jobs: Iterable[str] | None = None) -> list[Timeline]:
    """One timeline per training job, in the order of their first task.

    Args:
        flows: flows.csv.
        computes: computes.csv.
        jobs: names of the training jobs; None takes every job whose tags name iterations.
    """
    wanted = None if jobs is None else set(jobs)
    grouped: dict[str, list[_Task]] = {}
    for task in (*_compute_tasks(computes), *_flow_tasks(flows)):
        if wanted is None or task.job in wanted:
            grouped.setdefault(task.job, []).append(task)
    return [_timeline(job, tasks) for job, tasks in grouped.items()]


def _tagged(tag: str) -> tuple[int, str] | None:
    iteration, rank = _ITERATION.search(tag), _RANK.search(tag)
    if iteration is None:
        return None
    return int(iteration.group(1)), f"r{rank.group(1)}" if rank else ""


def _compute_tasks(table: Table) -> Iterator[_Task]:
    start, done = table.numbers("start_ns"), table.numbers("done_ns")
    for at, tag in enumerate(table.text("tag")):
        place = _tagged(tag)
        if place is not None and not np.isnan(start[at]):
            job, host = table.text("job")[at], table.text("resource")[at]
            yield _Task(job, *place, host, float(start[at]), float(done[at]), True)


def _flow_tasks(table: Table) -> Iterator[_Task]:
    ready, first = table.numbers("ready_ns"), table.numbers("first_tx_ns")
    start, done = np.where(np.isnan(first), ready, first), table.numbers("done_ns")
    for at, tag in enumerate(table.text("tag")):
        place = _tagged(tag)
        if place is not None and not np.isnan(start[at]):
            job, host = table.text("job")[at], table.text("src")[at]
            yield _Task(job, *place, host, float(start[at]), float(done[at]), False)


def _timeline(job: str, tasks: Sequence[_Task]) -> Timeline:
    end = max((task.done_ns for task in tasks if not np.isnan(task.done_ns)), default=0.0)
    rows: dict[str, Row] = {}
    hosts = {task.rank: task.host for task in reversed(tasks) if not task.is_compute}
    for task in tasks:
        key = task.rank or task.host
        host = hosts.get(task.rank, task.host)
        row = rows.setdefault(key, Row(f"{key} ({host})" if task.rank and host else key))
        stop = end if np.isnan(task.done_ns) else task.done_ns
        (row.compute if task.is_compute else row.comm).append(
            (task.start_ns, max(stop, task.start_ns))
        )
    for row in rows.values():
        row.compute, row.comm = merge_intervals(row.compute), merge_intervals(row.comm)
    ordered = tuple(rows[key] for key in sorted(rows, key=natural))
    unfinished = sum(1 for task in tasks if np.isnan(task.done_ns))
    return Timeline(job, ordered, _iterations(tasks), unfinished)


def _iterations(tasks: Sequence[_Task]) -> dict[int, Interval]:
    """Iterations of which every task is done; each starts where the one before ended.

    The same rule as in `traffic.metrics_training`: ranks begin their next iteration at different
    instants, and the job is as slow as its slowest rank.
    """
    spans: dict[int, Interval] = {}
    open_ones = {task.iteration for task in tasks if np.isnan(task.done_ns)}
    for task in tasks:
        if task.iteration not in open_ones:
            start, end = spans.get(task.iteration, (task.start_ns, task.done_ns))
            spans[task.iteration] = (min(start, task.start_ns), max(end, task.done_ns))
    ordered = dict(sorted(spans.items()))
    for number, (_, end) in ordered.items():
        if number - 1 in ordered:
            ordered[number] = (ordered[number - 1][1], end)
    return ordered
