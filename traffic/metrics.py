"""From what a workload planned and when its tasks were done to the numbers of a report. Pure.

Input is `Workload.meta` and (start_ns, done_ns) of every task that is done, by id, in model time
(`Schedule.times`). Durations of a workload are multiplied by shrink, which gives target time;
bandwidths need no correction, since bytes and times were shrunk alike. A task that is not done
counts as unfinished, and a number that nothing was measured for is None, never 0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from traffic.metrics_background import background_metrics
from traffic.metrics_inference import inference_metrics, request_rows
from traffic.metrics_training import Meta, Times, training_metrics
from traffic.stats import jain_index, mean, percentile, percentiles
from traffic.workloads.volume import header_efficiency

__all__ = [
    "Meta",
    "Times",
    "background_metrics",
    "header_efficiency",
    "inference_metrics",
    "jain_index",
    "mean",
    "percentile",
    "percentiles",
    "request_rows",
    "training_metrics",
    "workload_metrics",
]

_METRICS: dict[str, Callable[[Meta, Times], dict[str, Any]]] = {
    "training": training_metrics,
    "inference": inference_metrics,
    "background": background_metrics,
}


def workload_metrics(meta: Meta, times: Times) -> dict[str, Any] | None:
    """A workload's entry in summary.json; None for kinds that have none there."""
    compute = _METRICS.get(meta["kind"])
    return None if compute is None else compute(meta, times)
