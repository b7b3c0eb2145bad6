"""Runs experiments on the machine for tests: a document in, the run folder and its summary out."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from emulator.clock.traits import LIVE_CLOCK, VIRTUAL_CLOCK
from emulator.doctor import datapath
from emulator.results.reader import RunReader
from emulator.run import session
from emulator.run.launch import Launcher
from emulator.run.progress import Progress
from emulator.run.supervising import Interrupt
from emulator.spec.load import assemble
from emulator.spec.yamlfile import Document

CAPACITY_PPS = 20_000.0
"""What tests assume of a machine; their loads stay below half of it by their own dilation."""


@dataclass(frozen=True)
class Ran:
    """A finished run.

    Attributes:
        summary: summary.json.
        reader: of the run folder.
        log: the progress lines.
    """

    summary: dict[str, Any]
    reader: RunReader
    log: str

    def goodputs_gbps(self) -> dict[str, float]:
        """Payload rate of every finished flow, by tag or id."""
        table = self.reader.table("flows")
        rates = {}
        for row in table.rows():
            span_ns = int(row["done_ns"]) - int(row["ready_ns"])
            rates[row["id"]] = int(row["bytes"]) * 8 / span_ns
        return rates


def run(document: dict[str, Any], results: Path, clock: str = LIVE_CLOCK) -> Ran:
    """Runs a document (an experiment file's content) to its end.

    Under the virtual clock its ``dilation`` does not count: that clock needs none. Under the live
    clock, when the verdict is that the machine was too slow, and nothing else, it runs once more at
    twice the dilation, as `fabriclab run` does with ``dilation: auto``.
    """
    if clock == VIRTUAL_CLOCK:
        wanted = {key: value for key, value in document.items() if key != "dilation"}
        outcome, log = _run({**wanted, "clock": clock}, results)
    else:
        outcome, log = _run(document, results)
        if outcome.verdict.slow_only:
            slower = {**document, "dilation": 2 * document["dilation"]}
            outcome, log = _run(slower, results)
    return Ran(dict(outcome.summary), RunReader.open(outcome.folder), log)


def _run(document: dict[str, Any], results: Path) -> tuple[session.Outcome, str]:
    experiment = assemble(Document(document, {}, "test"), results / "test.yaml")
    stream = io.StringIO()
    launcher = Launcher(results, CAPACITY_PPS, datapath(), Progress(stream), Interrupt())
    return launcher.run(experiment), stream.getvalue()


def within(clock: str, tolerance: float) -> float:
    """How far off a test under a clock may be: half as far where no machine is in the way.

    Args:
        clock: live or virtual.
        tolerance: under the live clock.
    """
    return tolerance / 2 if clock == VIRTUAL_CLOCK else tolerance


def leaf_spine(leaves: int, spines: int, hosts_per_leaf: int, **more: Any) -> dict[str, Any]:
    """A ``fabric:`` section with 100 Gbit/s links of 1 us."""
    link = {"rate": "100 Gbit/s", "delay": "1 us"}
    return {"kind": "leaf-spine", "leaves": leaves, "spines": spines,
            "hosts_per_leaf": hosts_per_leaf, "host_link": link, "fabric_link": link,
            **more}  # fmt: skip


def pairs(*ends: tuple[str, str], size: str, name: str = "flows", **more: Any) -> dict[str, Any]:
    """A background workload of one flow for each pair."""
    return {"kind": "background", "name": name, "pattern": "pairs",
            "pairs": [list(pair) for pair in ends], "bytes": size, "class": 3, **more}  # fmt: skip
