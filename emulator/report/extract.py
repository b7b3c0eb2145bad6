"""Latencies, thresholds and places of loss out of a run folder's tables. PURE (NumPy only)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from emulator.report.series import Floats
from emulator.results.columns import COUNTED_EVENTS, STATUS_DONE
from emulator.results.queues import QueueSeries
from emulator.results.reader import Table
from topologies.errors import SpecError
from topologies.units import parse_duration, parse_size


@dataclass(frozen=True)
class Requests:
    """Latencies of one inference service, ms of the full-size service; NaN where it has none.

    Attributes:
        job: its name.
        ttft_ms: arrival to the first token.
        tpot_ms: mean time per output token after the first.
        kv_ms: transfer of the KV cache.
        expected: how many requests should have each of the three: ``ttft``, ``tpot`` (answers of
            two tokens or more), ``kv`` (0 where prompts and answers are served by one host).
        unfinished: requests without the whole answer.
    """

    job: str
    ttft_ms: Floats
    tpot_ms: Floats
    kv_ms: Floats
    expected: Mapping[str, int]
    unfinished: int


def request_latencies(table: Table, shrink: float) -> list[Requests]:
    """One entry per inference service, in the order of appearance."""
    jobs = np.array(table.text("job"), dtype=np.str_)
    done = np.array(table.text("status"), dtype=np.str_) == STATUS_DONE
    names = ("arrival_ns", "kv_start_ns", "kv_done_ns", "first_token_ns", "last_token_ns")
    arrival, kv_start, kv_done, first, last = (table.numbers(name) * shrink / 1e6 for name in names)
    later_tokens = table.numbers("generated_tokens") - 1
    several = later_tokens >= 1
    tpot = np.where(several, (last - first) / np.maximum(later_tokens, 1), np.nan)
    found = []
    for job in dict.fromkeys(jobs.tolist()):
        mine = jobs == job
        moves = not np.isnan(kv_start[mine]).all()
        expected = {"ttft": int(mine.sum()), "tpot": int((mine & several).sum())}
        expected["kv"] = expected["ttft"] if moves else 0
        unfinished = int((mine & ~done).sum())
        latencies = ((first - arrival)[mine], tpot[mine], (kv_done - kv_start)[mine])
        found.append(Requests(job, *latencies, expected, unfinished))
    return found


@dataclass(frozen=True)
class ProbeClass:
    """What the probes of one traffic class saw.

    Attributes:
        tc: the class.
        sent: probes sent.
        latency_ns: of those that arrived.
    """

    tc: int
    sent: int
    latency_ns: Floats

    @property
    def lost(self) -> int:
        """Probes that did not arrive."""
        return self.sent - len(self.latency_ns)


def probe_classes(table: Table) -> list[ProbeClass]:
    """One entry per probed class, ascending."""
    tcs, latency = table.numbers("class"), table.numbers("latency_ns")
    arrived = (table.numbers("lost") == 0) & ~np.isnan(latency)
    return [
        ProbeClass(int(tc), int((tcs == tc).sum()), latency[(tcs == tc) & arrived])
        for tc in np.unique(tcs[~np.isnan(tcs)])
    ]


def unloaded_latency_ns(manifest: Mapping[str, Any], tc: int) -> tuple[float, float] | None:
    """Least and largest predicted latency of the probed pairs on an idle fabric, ns.

    Read from the manifest's optional list ``unloaded`` of {class, src, dst, latency_ns}.
    """
    rows = manifest.get("unloaded") or ()
    values = [float(row["latency_ns"]) for row in rows if row.get("class") in (tc, None)]
    return (min(values), max(values)) if values else None


@dataclass(frozen=True)
class Place:
    """Packets counted at one port and class; `tc` is None when only the port is known."""

    port: str
    tc: int | None
    drop: int
    trim: int
    mark: int


def places(events: Table, samples: QueueSeries | None) -> list[Place]:
    """Where packets were dropped, trimmed or marked, worst first.

    Ports that the events do not mention are taken from the samples' counters, without class.
    """
    counts: dict[tuple[str, int | None], dict[str, int]] = {}
    values, tcs = events.numbers("value"), events.numbers("tc")
    for at, kind in enumerate(events.text("kind")):
        if kind in COUNTED_EVENTS and values[at] > 0:
            tc = None if np.isnan(tcs[at]) else int(tcs[at])
            place = counts.setdefault((events.text("port")[at], tc), {})
            place[kind] = place.get(kind, 0) + int(values[at])
    named = {(port, kind) for (port, _), kinds in counts.items() for kind in kinds}
    for kind, array in (("drop", "dropped"), ("trim", "trimmed"), ("mark", "marked")):
        for port, value in _finals(samples, array).items():
            if value > 0 and (port, kind) not in named:
                counts.setdefault((port, None), {})[kind] = value
    found = [
        Place(port, tc, *(kinds.get(kind, 0) for kind in COUNTED_EVENTS))
        for (port, tc), kinds in counts.items()
    ]
    return sorted(found, key=lambda p: (-p.drop, -p.trim, -p.mark, p.port, p.tc or 0))


def _finals(samples: QueueSeries | None, array: str) -> dict[str, int]:
    if samples is None or not len(samples.time_ns):
        return {}
    return dict(zip(samples.ports, samples.arrays[array][-1].tolist(), strict=True))


@dataclass(frozen=True)
class MarkRule:
    """An ECN threshold pair.

    Attributes:
        kmin_bytes: no marks below.
        kmax_bytes: every packet marked above.
        ports: selector of ports, as in `topologies.settings`.
    """

    kmin_bytes: float
    kmax_bytes: float
    ports: str = "switches"

    def fits(self, port: str, node: str, leads_to_host: bool = False) -> bool:
        """True when the rule is for this switch port."""
        if self.ports == "last-hop":
            return leads_to_host
        return self.ports in ("all", "switches", node) or fnmatchcase(port, self.ports)


def mark_rules(spec: Mapping[str, Any], manifest: Mapping[str, Any]) -> list[MarkRule]:
    """The ECN rules of the run: from the manifest's ``ecn``, else from the experiment's."""
    raw = manifest.get("ecn") or spec.get("ecn") or ()
    rules = raw if isinstance(raw, (list, tuple)) else [raw]
    found = [_mark_rule(rule) for rule in rules if isinstance(rule, Mapping)]
    return [rule for rule in found if rule is not None]


def _mark_rule(raw: Mapping[str, Any]) -> MarkRule | None:
    kmin = size_bytes(raw.get("kmin_bytes", raw.get("kmin")))
    kmax = size_bytes(raw.get("kmax_bytes", raw.get("kmax")))
    if kmin is None or kmax is None:
        return None
    return MarkRule(kmin, kmax, str(raw.get("ports", "switches")))


def size_bytes(value: object) -> float | None:
    """A size of a resolved experiment, ``400 KB`` or plain bytes; None when it is not one."""
    return _parsed(parse_size, value)


def time_ns(value: object) -> float | None:
    """A duration of a resolved experiment, ``200 ms``, or plain ns; None when it is not one."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    return _parsed(parse_duration, value)


def _parsed(parse: Callable[[object], int], value: object) -> float | None:
    try:
        return float(parse(value))
    except SpecError:
        return None  # a threshold that cannot be read is a line less in a picture


def slo_ms(spec: Mapping[str, Any], job: str) -> dict[str, float]:
    """The service's objectives in ms: any of ``ttft``, ``tpot``, ``kv``; empty when it has none."""
    for workload in spec.get("workloads") or ():
        if isinstance(workload, Mapping) and workload.get("name") == job:
            slo = workload.get("slo") or {}
            limits = {
                key.removesuffix("_ns"): time_ns(value)
                for key, value in slo.items()
                if value is not None
            }
            return {key: value / 1e6 for key, value in limits.items() if value is not None}
    return {}
