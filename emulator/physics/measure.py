"""PURE: what run folders say, as numbers. Times ns, rates bit/s, sizes bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from emulator.results.queues import QueueSeries
from emulator.results.reader import RunReader, Table
from topologies.errors import SpecError

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Flows:
    """Columns of flows.csv; times are NaN where something did not happen."""

    job: tuple[str, ...]
    src: tuple[str, ...]
    dst: tuple[str, ...]
    ready_ns: Floats
    first_tx_ns: Floats
    done_ns: Floats
    packets: Floats
    size_bytes: Floats

    def of_job(self, job: str) -> Flows:
        """The flows of one workload, in the order of the file."""
        rows = [at for at, name in enumerate(self.job) if name == job]
        return Flows(
            tuple(self.job[at] for at in rows), tuple(self.src[at] for at in rows),
            tuple(self.dst[at] for at in rows), self.ready_ns[rows], self.first_tx_ns[rows],
            self.done_ns[rows], self.packets[rows], self.size_bytes[rows],
        )  # fmt: skip

    @property
    def durations_ns(self) -> Floats:
        """From ready to done; NaN for flows that were not done."""
        return self.done_ns - self.ready_ns

    @property
    def goodputs_bps(self) -> Floats:
        """Payload over time of each flow."""
        return self.size_bytes * 8e9 / self.durations_ns


def flows(run: RunReader) -> Flows:
    """All flows of a run."""
    table: Table = run.table("flows")
    return Flows(
        tuple(table.text("job")), tuple(table.text("src")), tuple(table.text("dst")),
        *(table.numbers(name) for name in
          ("ready_ns", "first_tx_ns", "done_ns", "packets", "bytes")),
    )  # fmt: skip


def samples(run: RunReader) -> QueueSeries:
    """The queue samples of a run; SpecError when there are none."""
    found = run.queues()
    if found is None or len(found.time_ns) < 2:
        raise SpecError("queues", run.path.name, "has no queue samples")
    return found


def _within(series: QueueSeries, begin_ns: float, end_ns: float) -> NDArray[np.int64]:
    inside = (series.time_ns >= begin_ns) & (series.time_ns <= end_ns)
    return np.flatnonzero(inside)


def rates_bps(series: QueueSeries, ports: Sequence[str], begin_ns: float, end_ns: float) -> Floats:
    """Mean line rate of some ports between the first and the last sample within a time.

    NaN when fewer than two samples lie within.
    """
    inside = _within(series, begin_ns, end_ns)
    if len(inside) < 2:
        return np.full(len(ports), np.nan)
    first, last = inside[0], inside[-1]
    span_ns = float(series.time_ns[last] - series.time_ns[first])
    columns = [series.ports.index(port) for port in ports]
    sent = series.arrays["tx_bytes"][:, columns]
    rates: Floats = (sent[last] - sent[first]) * 8e9 / span_ns
    return rates


def depth_bytes(series: QueueSeries, port: str, begin_ns: float, end_ns: float) -> Floats:
    """Samples of a queue within a time."""
    inside = _within(series, begin_ns, end_ns)
    depth: Floats = series.of_port("bytes", port)[inside].astype(np.float64)
    return depth


@dataclass(frozen=True)
class Probes:
    """Probes of one pair, by the time of sending; the latency of a lost one is NaN."""

    sent_ns: Floats
    latency_ns: Floats


def probes(run: RunReader, src: str, dst: str) -> Probes:
    """All probes from one host to another."""
    table = run.table("probes")
    ends = zip(table.text("src"), table.text("dst"), strict=True)
    rows = [at for at, pair in enumerate(ends) if pair == (src, dst)]
    sent_ns, latency_ns = table.numbers("sent_ns")[rows], table.numbers("latency_ns")[rows]
    order = np.argsort(sent_ns, kind="stable")
    return Probes(sent_ns[order], latency_ns[order])


def mean(values: Floats) -> float:
    """The mean of what is known; NaN when nothing is."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else float("nan")
