"""Metrics of background traffic: what it got through, and how long its flows took. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from traffic.metrics_training import Meta, Times
from traffic.stats import percentiles

_BITS, _NS_PER_MS = 8, 1e6


def background_metrics(meta: Meta, times: Times) -> dict[str, Any]:
    """``background`` of summary.json for one workload.

    Goodput is the payload of all flows that are done, over the time from the first flow's start to
    the last one's end; it needs no correction for shrink, since bytes and times were shrunk alike.
    A flow's time runs from the moment at which it could start, and is multiplied by shrink.

    Args:
        meta: as `traffic.workloads.background` plans it: ``sizes_bytes`` of the flows, whose
            numbers begin at ``first_id``.
        times: (start_ns, done_ns) of every task that is done, by its number.
    """
    first, sizes = int(meta["first_id"]), meta["sizes_bytes"]
    done = {at: times[first + at] for at in range(len(sizes)) if first + at in times}
    took_ms = [(end - start) / _NS_PER_MS * meta["shrink"] for start, end in done.values()]
    return {
        "name": meta["name"],
        "flows": len(sizes),
        "completed": len(done),
        "goodput_gbps": _goodput_gbps(done, sum(sizes[at] for at in done)),
        "fct_ms": percentiles(took_ms, (50, 99)),
    }


def _goodput_gbps(done: Mapping[int, tuple[int, int]], payload_bytes: int) -> float | None:
    """Payload over the span of all flows, Gbit/s (bits per ns); None when nothing is done."""
    if not done:
        return None
    span_ns = max(end for _, end in done.values()) - min(start for start, _ in done.values())
    return payload_bytes * _BITS / span_ns if span_ns > 0 else None
