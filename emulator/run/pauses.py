"""Follows the log of a run's pauses: rows of events.csv as the run goes, totals at its end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from emulator.dataplane.pause_log import RECORD, PauseLogReader, Records
from emulator.dataplane.pausing import Act
from emulator.dataplane.tables import Tables
from emulator.results.columns import PAUSE, RESTORE, RESUME, STORM
from topologies.model import Fabric

_KINDS = {
    Act.CLOSE: PAUSE, Act.OPEN: RESUME, Act.STORM_DROP: STORM, Act.STORM_FORWARD: STORM,
    Act.RESTORE: RESTORE,
}  # fmt: skip
_DETAILS = {Act.STORM_DROP: "watchdog drops", Act.STORM_FORWARD: "watchdog forwards"}

Key = tuple[int, int]
Row = Mapping[str, object] | Sequence[object]


class Folder(Protocol):
    """Where rows go."""

    def extend(self, table: str, rows: Iterable[Row]) -> bool:
        """Appends rows to a table."""


class ModelClock(Protocol):
    """Wall time to model time."""

    dilation: float

    def to_model(self, wall_ns: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Monotonic times as model times, ns."""


@dataclass
class GateTotals:
    """One class of one port, times in model ns.

    Attributes:
        pauses: how often it was paused.
        paused_ns: for how long in all.
        longest_ns: the longest pause.
        storms: how often the watchdog ended one.
    """

    pauses: int = 0
    paused_ns: int = 0
    longest_ns: int = 0
    storms: int = 0


@dataclass(frozen=True)
class PauseTotals:
    """All pauses of a run.

    Attributes:
        gates: by (port index, class), those that were ever paused.
        gate_count: how many gates there are.
        span_ns: length of the run, model ns.
        reaction_us: {p50, p99} from XOFF to silence, model us; empty without pauses.
        modelled_us: the same as it should have been.
        lateness_ns: how late 99 of 100 gates closed, wall ns.
    """

    gates: Mapping[Key, GateTotals] = field(default_factory=dict)
    gate_count: int = 0
    span_ns: int = 0
    reaction_us: Mapping[str, float] = field(default_factory=dict)
    modelled_us: Mapping[str, float] = field(default_factory=dict)
    lateness_ns: float = 0.0

    @property
    def pauses(self) -> int:
        """How often some class of some port was paused."""
        return sum(gate.pauses for gate in self.gates.values())

    @property
    def section(self) -> dict[str, Any]:
        """``pfc`` of summary.json; the fraction is of the time of all gates together."""
        paused_ns = sum(gate.paused_ns for gate in self.gates.values())
        whole_ns = self.gate_count * self.span_ns
        return {
            "pauses": self.pauses,
            "paused_fraction": paused_ns / whole_ns if whole_ns else 0.0,
            "reaction_us": dict(self.reaction_us),
            "watchdog_events": sum(gate.storms for gate in self.gates.values()),
        }


class PauseWatch:
    """Reads the log while the run goes on.

    Args:
        plane: whose gates.
        log: the agent's file.
        clock: of the run.
        folder: where rows go.
    """

    def __init__(self, plane: Tables, log: Path, clock: ModelClock, folder: Folder) -> None:
        self._plane, self._fabric = plane, plane.fabric
        self._reader, self._clock, self._folder = PauseLogReader(log), clock, folder
        self._open: dict[Key, int] = {}
        self._gates: dict[Key, GateTotals] = {}
        self._closes: list[Records] = []

    def note(self) -> None:
        """Takes what is new into events.csv."""
        records = self._reader.read()
        if not len(records):
            return
        self._closes.append(records[records["act"] == Act.CLOSE])
        times = self._clock.to_model(records["done_ns"].astype(np.int64)).tolist()
        rows = [self._row(record, at) for record, at in zip(records, times, strict=True)]
        self._folder.extend("events", rows)

    def _row(self, record: Any, at_ns: int) -> Row:
        act, key = Act(int(record["act"])), (int(record["port"]), int(record["tc"]))
        port = self._fabric.port(key[0])
        peer = self._fabric.port(port.peer).name
        value = int(record["held_bytes"]) if act is Act.CLOSE else self._paused_for(key, act, at_ns)
        gate = self._gates.setdefault(key, GateTotals())
        if act is Act.CLOSE:
            self._open[key] = at_ns
            gate.pauses += 1
        gate.storms += _KINDS[act] == STORM
        detail = _DETAILS.get(act, f"by {peer}")
        return [at_ns, _KINDS[act], port.node, port.name, key[1], value, detail]

    def _paused_for(self, key: Key, act: Act, at_ns: int) -> int | None:
        """Length of the pause that ends, ns; None when none ends."""
        begin_ns = self._open.pop(key, None)
        if begin_ns is None or act is Act.RESTORE:
            return None
        gate, span_ns = self._gates[key], at_ns - begin_ns
        gate.paused_ns += span_ns
        gate.longest_ns = max(gate.longest_ns, span_ns)
        return span_ns

    def finish(self, end_ns: int) -> PauseTotals:
        """The totals of a run that ended at a model time; pauses that have not ended, end then."""
        self.note()
        self._reader.close()
        for key in list(self._open):
            self._paused_for(key, Act.OPEN, max(end_ns, self._open[key]))
        dilation, closes = self._clock.dilation, _joined(self._closes)
        late = closes["done_ns"].astype(np.int64) - closes["due_ns"].astype(np.int64)
        return PauseTotals(
            gates=dict(sorted(self._gates.items())),
            gate_count=self._plane.ports * len(self._plane.lossless),
            span_ns=end_ns,
            reaction_us=_percentiles(closes, "done_ns", dilation),
            modelled_us=_percentiles(closes, "due_ns", dilation),
            lateness_ns=float(np.percentile(late, 99)) if len(late) else 0.0,
        )


def _joined(parts: list[Records]) -> Records:
    return np.concatenate([np.zeros(0, RECORD), *parts])


def _percentiles(closes: Records, until: str, dilation: float) -> dict[str, float]:
    """p50 and p99 from the wish to a moment, model us."""
    if not len(closes):
        return {}
    spans_us = (closes[until] - closes["asked_ns"]).astype(float) / dilation / 1000
    p50, p99 = np.percentile(spans_us, (50, 99))
    return {"p50": float(p50), "p99": float(p99)}


def headroom_drops(plane: Tables) -> dict[tuple[str, int], int]:
    """Packets for which the headroom of an ingress port and class was too small."""
    drops = plane.held["classes"]["drop_packets"]
    return {
        (plane.fabric.port(int(port)).name, int(tc)): int(drops[port, tc])
        for port, tc in np.argwhere(drops)
    }


def details(plane: Tables, totals: PauseTotals) -> dict[str, Any]:
    """pfc.json: every gate that was paused and every ingress port that paused."""
    return {
        "reaction_us": dict(totals.reaction_us),
        "modelled_us": dict(totals.modelled_us),
        "queues": [
            {"port": plane.fabric.port(port).name, "tc": tc, **vars(gate)}
            for (port, tc), gate in totals.gates.items()
        ],
        "ingress": list(_ingress(plane, plane.fabric)),
    }


def _ingress(plane: Tables, fabric: Fabric) -> Iterator[dict[str, Any]]:
    headroom, held = plane.pauses["classes"]["headroom"], plane.held["classes"]
    for port, tc in np.argwhere(headroom).tolist():
        entry = held[port, tc]
        yield {
            "port": fabric.port(port).name,
            "tc": tc,
            "headroom_bytes": int(headroom[port, tc]),
            "peak_headroom_bytes": int(entry["peak_headroom"]),
            "dropped": int(entry["drop_packets"]),
        }
