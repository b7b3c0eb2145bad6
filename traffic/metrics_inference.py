"""What an inference service gave: time to first token, time per token, cache transfers, goodput."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from traffic.metrics_training import Meta, Times
from traffic.stats import percentiles, ratio
from traffic.workloads.inference import RequestMeta

DONE, UNFINISHED = "done", "unfinished"


@dataclass(frozen=True, slots=True)
class RequestRow:
    """One line of requests.csv; times are model ns, None for what did not happen.

    Attributes:
        job: name of the workload.
        request: number of the request, from 0.
        client: host that asked.
        prefill: host that took the prompt.
        decode: host that generated the answer.
        context_tokens: length of the prompt.
        generated_tokens: length of the answer.
        arrival_ns: when it arrived.
        kv_start_ns: when the key-value cache could begin to move.
        kv_done_ns: when all of it had arrived.
        first_token_ns: when the first token reached the client.
        last_token_ns: when the last one did, or the empty answer to a request for 0 tokens.
        status: ``done`` or ``unfinished``.
    """

    job: str
    request: int
    client: str
    prefill: str
    decode: str
    context_tokens: int
    generated_tokens: int
    arrival_ns: int
    kv_start_ns: int | None
    kv_done_ns: int | None
    first_token_ns: int | None
    last_token_ns: int | None
    status: str

    def as_dict(self) -> dict[str, Any]:
        """Column by column."""
        return asdict(self)

    @property
    def ttft_ns(self) -> int | None:
        """Time to first token: arrival to the first token at the client."""
        return _gap(self.first_token_ns, self.arrival_ns)

    @property
    def tpot_ns(self) -> float | None:
        """Time per output token after the first; None for answers of less than two tokens."""
        whole = _gap(self.last_token_ns, self.first_token_ns)
        return None if self.generated_tokens < 2 else ratio(whole, self.generated_tokens - 1)

    @property
    def kv_transfer_ns(self) -> int | None:
        """Time that the key-value cache took to move; None when it does not."""
        return _gap(self.kv_done_ns, self.kv_start_ns)

    def meets(self, ttft_ns: float, tpot_ns: float) -> bool:
        """Whether it was answered in time; an empty answer is measured like a first token."""
        if self.status != DONE or self.last_token_ns is None:
            return False
        first_ns = self.last_token_ns if self.first_token_ns is None else self.first_token_ns
        return first_ns - self.arrival_ns <= ttft_ns and (self.tpot_ns or 0) <= tpot_ns


def _gap(later: int | None, earlier: int | None) -> int | None:
    return None if later is None or earlier is None else later - earlier


def request_rows(meta: Meta, times: Times) -> list[RequestRow]:
    """Every request of a service, finished or not, by number."""
    return [_row(meta["name"], request, times) for request in meta["requests"]]


def _row(job: str, request: RequestMeta, times: Times) -> RequestRow:
    kv = [times[flow] for flow in request["kv"] if flow in times]
    whole = kv if len(kv) == len(request["kv"]) else []
    first = request["first_token"]
    last_ns = _done_ns(request["end"], times)
    return RequestRow(
        job=job,
        request=request["request"],
        client=request["client"],
        prefill=request["prefill"],
        decode=request["decode"],
        context_tokens=request["context_tokens"],
        generated_tokens=request["generated_tokens"],
        arrival_ns=request["arrival_ns"],
        kv_start_ns=min((start for start, _ in kv), default=None),
        kv_done_ns=max((end for _, end in whole), default=None),
        first_token_ns=None if first is None else _done_ns(first, times),
        last_token_ns=last_ns,
        status=UNFINISHED if last_ns is None else DONE,
    )


def _done_ns(task: int, times: Times) -> int | None:
    return times[task][1] if task in times else None


def inference_metrics(meta: Meta, times: Times) -> dict[str, Any]:
    """The service's entry of ``inference[]`` in summary.json.

    ``failed`` counts requests that did not get their whole answer; they do not meet the objective.
    Percentiles are over what was measured. ``goodput_rps`` is requests within both limits per
    second of target time, from the first arrival to the last thing that happened (the metric of
    DistServe). ``peak_to_mean`` compares the busiest second of arrivals with the mean one.
    """
    rows, shrink = request_rows(meta, times), meta["shrink"]
    limits = meta["slo_ttft_ns"] / shrink, meta["slo_tpot_ns"] / shrink
    met = sum(row.meets(*limits) for row in rows)
    completed = sum(row.status == DONE for row in rows)
    span_s = _span_ns(rows) * shrink / 1e9
    return {
        "name": meta["name"],
        "requests": len(rows),
        "completed": completed,
        "failed": len(rows) - completed,
        "ttft_ms": percentiles(_ms((row.ttft_ns for row in rows), shrink), (50, 90, 99)),
        "tpot_ms": percentiles(_ms((row.tpot_ns for row in rows), shrink), (50, 99)),
        "kv_transfer_ms": percentiles(_ms((row.kv_transfer_ns for row in rows), shrink), (50, 99)),
        "slo_met_fraction": ratio(met, len(rows)),
        "goodput_rps": ratio(met, span_s),
        "peak_to_mean": meta["peak_to_mean"],
    }


def _ms(values_ns: Iterable[float | None], shrink: float) -> list[float]:
    return [value * shrink / 1e6 for value in values_ns if value is not None]


def _span_ns(rows: Sequence[RequestRow]) -> int:
    """From the first arrival to the last event of any request."""
    if not rows:
        return 0
    first = min(row.arrival_ns for row in rows)
    events = (
        (row.arrival_ns, row.kv_done_ns, row.first_token_ns, row.last_token_ns) for row in rows
    )
    return max(time for row in events for time in row if time is not None) - first
