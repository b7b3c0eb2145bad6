"""What a training job got: iteration times, bandwidth of its collective, share of computation."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from traffic.stats import mean, percentiles, ratio
from traffic.workloads.volume import header_efficiency

Times = Mapping[int, tuple[int, int]]
"""(start_ns, done_ns) by task id."""

Meta = Mapping[str, Any]
"""What a builder left in `Workload.meta`."""


@dataclass(frozen=True, slots=True)
class Iteration:
    """One iteration that every rank finished.

    Attributes:
        start_ns: end of the iteration before, or the job's first computation.
        end_ns: arrival of the last data of the collective.
        compute_ns: computation, mean over ranks.
        comm_ns: from the end of a rank's computation to its own last data, mean over ranks (as
            nccl-tests averages over ranks).
    """

    start_ns: int
    end_ns: int
    compute_ns: float
    comm_ns: float

    @property
    def duration_ns(self) -> int:
        """Time from start to end."""
        return self.end_ns - self.start_ns


def training_metrics(meta: Meta, times: Times) -> dict[str, Any]:
    """The job's entry of ``training[]`` in summary.json.

    ``iterations`` counts those that all ranks finished, of ``iterations_planned``. ``algbw_gbps``
    is the collective's size over its mean time, ``busbw_gbps`` that times the nccl-tests factor.
    ``busbw_fraction`` is busbw over what the slowest host link could carry as payload: its line
    rate times `header_efficiency`. ``comm_fraction`` is the share of iteration time in which a
    rank does not compute, mean over ranks, over finished iterations; ``gpu_busy_fraction`` the
    share of computing from the first computation to the last thing that happened, finished or not.
    """
    done = finished_iterations(meta, times)
    shrink = meta["shrink"]
    durations_ms = [iteration.duration_ns * shrink / 1e6 for iteration in done]
    comm_ns = math.fsum(iteration.comm_ns for iteration in done)
    algbw_gbps = ratio(meta["size_bytes"] * 8 * len(done), comm_ns)
    busbw_gbps = None if algbw_gbps is None else algbw_gbps * meta["bus_factor"]
    return {
        "name": meta["name"],
        "iterations": len(done),
        "iterations_planned": meta["iterations"],
        "iteration_ms": {"mean": mean(durations_ms), **percentiles(durations_ms, (50, 99))},
        "algbw_gbps": algbw_gbps,
        "busbw_gbps": busbw_gbps,
        "busbw_fraction": ratio(busbw_gbps, _usable_gbps(meta)),
        "comm_fraction": _comm_fraction(done),
        "gpu_busy_fraction": _gpu_busy_fraction(meta, times),
    }


def finished_iterations(meta: Meta, times: Times) -> list[Iteration]:
    """The iterations of which every task is done, in order, up to the first that is not."""
    done: list[Iteration] = []
    for number in range(meta["iterations"]):
        computes, flows = _ids(meta, number)
        if not all(task in times for ids in (computes, flows) for task in ids):
            break
        started = min(times[task][0] for task in computes)
        ended = max(times[task][1] for task in flows)
        spans = [times[task][1] - times[task][0] for task in computes]
        waits = [
            _last_data_ns(meta, times, flows, rank) - times[computes[rank]][1]
            for rank in range(len(computes))
        ]
        begin = done[-1].end_ns if done else started
        done.append(Iteration(begin, ended, _mean(spans), _mean(waits)))
    return done


def _ids(meta: Meta, iteration: int) -> tuple[range, range]:
    """Ids of an iteration's computations and flows, as the builder numbers them."""
    ranks, flows = len(meta["ranks"]), meta["sends"] * meta["channels"]
    first = meta["first_id"] + iteration * (ranks + flows)
    return range(first, first + ranks), range(first + ranks, first + ranks + flows)


def _last_data_ns(meta: Meta, times: Times, flows: range, rank: int) -> int:
    channels = meta["channels"]
    return max(
        times[flows[send * channels + qp]][1]
        for send in meta["through"][rank]
        for qp in range(channels)
    )


def _usable_gbps(meta: Meta) -> float:
    return float(meta["line_rate_bps"]) / 1e9 * header_efficiency(meta["payload_bytes"])


def _comm_fraction(done: Iterable[Iteration]) -> float | None:
    iterations = list(done)
    total = sum(iteration.duration_ns for iteration in iterations)
    computing = ratio(math.fsum(iteration.compute_ns for iteration in iterations), total)
    return None if computing is None else max(0.0, 1 - computing)


def _gpu_busy_fraction(meta: Meta, times: Times) -> float | None:
    spans: list[tuple[int, int]] = []
    last_ns = 0
    for number in range(meta["iterations"]):
        computes, flows = _ids(meta, number)
        spans += [times[task] for task in computes if task in times]
        ended = (times[task][1] for ids in (computes, flows) for task in ids if task in times)
        last_ns = max(last_ns, max(ended, default=0))
    if not spans:
        return None
    busy = sum(end - start for start, end in spans)
    return ratio(busy, len(meta["ranks"]) * (last_ns - min(start for start, _ in spans)))


def _mean(values: list[int]) -> float:
    return math.fsum(values) / len(values)
