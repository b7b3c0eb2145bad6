"""Writes what the NIC engine reports into the run folder, in batches as the run goes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from emulator.results.columns import STATUS_DONE
from emulator.results.store import RunFolder
from traffic.nic.probes import ProbeStream
from traffic.nic.sender import Message
from traffic.tasks import Compute, Flow


class FolderRecorder:
    """A `Recorder` that appends rows to the tables of a run folder.

    Args:
        folder: where to.
        on_progress: told (flows done, model ns) whenever rows are written.
        flush_every_ns: model time between two writes.
    """

    def __init__(
        self, folder: RunFolder, on_progress: Callable[[int, int], None], flush_every_ns: int
    ) -> None:
        self._folder, self._on_progress = folder, on_progress
        self._rows: dict[str, list[list[Any]]] = {"flows": [], "computes": [], "probes": []}
        self._flush_every_ns, self._next_flush_ns = flush_every_ns, 0
        self._done = 0

    def flow_done(self, flow: Flow, ready_ns: int, message: Message, done_ns: int) -> None:
        """One row of flows.csv."""
        self._done += 1
        self._rows["flows"].append(
            [flow.id, flow.job, flow.tag, "flow", flow.src, flow.dst, flow.plane, flow.size_bytes,
             flow.dscp, ready_ns, message.first_tx_ns, done_ns, message.end - message.first,
             message.retransmitted, message.marked, STATUS_DONE]
        )  # fmt: skip

    def compute_done(self, task: Compute, start_ns: int, done_ns: int) -> None:
        """One row of computes.csv."""
        row = [task.id, task.job, task.tag, task.resource, start_ns, done_ns]
        self._rows["computes"].append(row)

    def probe(self, stream: ProbeStream, psn: int, sent_ns: int, latency_ns: int | None) -> None:
        """One row of probes.csv."""
        self._rows["probes"].append(
            [stream.traffic_class, stream.src, stream.dst, psn, sent_ns, latency_ns,
             int(latency_ns is None)]
        )  # fmt: skip

    def tick(self, now_ns: int) -> None:
        """Writes the rows when it is time."""
        if now_ns >= self._next_flush_ns:
            self._next_flush_ns = now_ns + self._flush_every_ns
            self.flush()
            self._on_progress(self._done, now_ns)

    def flush(self) -> None:
        """Writes all rows that are waiting."""
        for table, rows in self._rows.items():
            if rows:
                self._folder.extend(table, rows)
                rows.clear()
