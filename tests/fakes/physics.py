"""Small synthetic run folders and cases for the validation suite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from emulator.physics.case import Case, Measured, Run, Runs, Sense, Target, Tolerance
from emulator.results import summary as summaries
from emulator.results.queues import QueueRecorder
from emulator.results.reader import RunReader
from emulator.results.store import RunFolder
from tests.fakes.run_folder import STARTED

Row = tuple[Any, ...]


@dataclass
class Wrote:
    """What a synthetic run has measured.

    Attributes:
        flows: (job, src, dst, bytes, ready_ns, done_ns, packets).
        probes: (src, dst, sent_ns, latency_ns or None).
        ports: names of the sampled ports.
        samples: (time_ns, queued bytes, sent bytes, marked packets), each of the ports' in order.
        manifest: more of it.
        summary: more of it.
        reasons: of an INVALID verdict.
    """

    flows: Sequence[Row] = ()
    probes: Sequence[Row] = ()
    ports: Sequence[str] = ()
    samples: Sequence[tuple[int, Sequence[int], Sequence[int], Sequence[int]]] = ()
    manifest: Mapping[str, Any] = field(default_factory=dict)
    summary: Mapping[str, Any] = field(default_factory=dict)
    reasons: Sequence[str] = ()

    def to_folder(self, root: Path) -> Path:
        """Write it."""
        folder = RunFolder.create(root, "physics", "a1b2c3", STARTED)
        identity = {"name": "physics", "seed": 1, "clock": "virtual", "dilation": 1, "shrink": 1}
        folder.write_manifest({**identity, "run": "a1b2c3", **self.manifest})
        folder.extend("flows", [_flow_row(at, row) for at, row in enumerate(self.flows)])
        folder.extend(
            "probes",
            [(3, src, dst, at, sent, latency, latency is None)
             for at, (src, dst, sent, latency) in enumerate(self.probes)],
        )  # fmt: skip
        if self.samples:
            self._write_samples(folder)
        verdict = summaries.INVALID if self.reasons else summaries.VALID
        parts = summaries.SummaryParts(identity, verdict, list(self.reasons), **self.summary)
        folder.write_summary(summaries.assemble(parts))
        folder.close()
        return folder.path

    def to_run(self, root: Path) -> RunReader:
        """Write it and open it."""
        return RunReader.open(self.to_folder(root))

    def _write_samples(self, folder: RunFolder) -> None:
        recorder = QueueRecorder(folder, list(self.ports), ["leaf1"])
        nothing = np.zeros(len(self.ports), dtype=np.int64)
        for time_ns, depth, sent, marked in self.samples:
            per_class = np.zeros((len(self.ports), 8), dtype=np.int64)
            per_class[:, 3] = depth
            recorder.add(
                time_ns, bytes_tc=per_class, tx_bytes=np.array(sent), dropped=nothing,
                trimmed=nothing, marked=np.array(marked), buffer_used=np.array([sum(depth)]),
            )  # fmt: skip
        recorder.flush()
        folder.finish_queues()


def _flow_row(at: int, row: Row) -> Row:
    job, src, dst, size, ready_ns, done_ns, packets = row
    status = "unfinished" if done_ns is None else "done"
    return (at, job, f"n{at}", "flow", src, dst, 1, size, 24, ready_ns, ready_ns, done_ns, packets,
            0, 0, status)  # fmt: skip


DOCUMENT: Mapping[str, Any] = {
    "fabric": {"kind": "leaf-spine", "leaves": 1, "spines": 0, "hosts_per_leaf": 2},
    "workloads": [{"kind": "background", "name": "flow", "pattern": "pairs",
                   "pairs": [["h1", "h2"]], "bytes": "4 KB"}],
}  # fmt: skip
"""The least that runs."""


def packets_sent(runs: Runs) -> Measured:
    """What the toy case measures: packets sent, of all its runs together."""
    return {"packets": float(sum((run.summary or {})["packets"]["sent"] for run in runs.values()))}


def toy_case(
    name: str = "toy",
    expected: float = 412_345.0,
    runs: Sequence[str] = ("run",),
    live: bool = True,
    invalid: tuple[str, ...] = (),
    sense: Sense = Sense.NEAR,
) -> Case:
    """A case over the runs that `tests.fakes.launching.FakeLauncher` writes."""
    return Case(
        name=name,
        table="V0",
        title=f"A toy called {name}",
        shows="Nothing but how cases are run.",
        source="closed form 412,345",
        runs=tuple(Run(label, DOCUMENT, invalid) for label in runs),
        targets=(Target("packets", "packets", expected, Tolerance(0.10, 0.05), sense),),
        measure=packets_sent,
        live=live,
    )
