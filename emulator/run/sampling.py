"""Samples queues and counters of all ports while a run lasts; notes drops, cuts and marks."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from emulator.dataplane.tables import WIRE_OVERHEAD_BYTES, Tables
from emulator.results.queues import QueueRecorder
from emulator.results.store import RunFolder
from emulator.run.pauses import PauseWatch

_COUNTED = {"drop": "drop_packets", "trim": "trim_packets", "mark": "mark_packets"}

Ints = npt.NDArray[np.int64]


class Sampler:
    """Takes samples when asked.

    Args:
        plane: whose counters.
        folder: where samples and events go.
        pauses: follows the pauses; None where no class is lossless.
    """

    def __init__(self, plane: Tables, folder: RunFolder, pauses: PauseWatch | None = None) -> None:
        self._plane, self._folder, self._pauses = plane, folder, pauses
        self._ports = plane.fabric.ports
        names = [port.name for port in self._ports]
        self._recorder = QueueRecorder(folder, names, list(plane.switch_ids))
        self._seen: dict[str, Ints] = {kind: self._count(name) for kind, name in _COUNTED.items()}
        self._base = self._sent_bytes()

    def _count(self, name: str) -> Ints:
        counts: Ints = self._plane.states["classes"][name][1:].astype(np.int64)
        return counts

    def _sent_bytes(self) -> Ints:
        classes = self._plane.states["classes"][1:]
        frames = classes["out_bytes"].sum(axis=1) + classes["out_packets"].sum(axis=1) * np.uint64(
            WIRE_OVERHEAD_BYTES
        )
        sent: Ints = frames.astype(np.int64)
        return sent

    def sample(self, now_ns: int) -> None:
        """Takes one sample at this model time."""
        switches = self._plane.switches
        self._recorder.add(
            now_ns,
            bytes_tc=np.maximum(self._plane.queued_bytes()[1:], 0),
            tx_bytes=self._sent_bytes() - self._base,
            dropped=self._count("drop_packets").sum(axis=1),
            trimmed=self._count("trim_packets").sum(axis=1),
            marked=self._count("mark_packets").sum(axis=1),
            buffer_used=(switches["in_bytes"] - switches["out_bytes"]).astype(np.int64),
        )
        if self._pauses is not None:
            self._pauses.note()
        self._note_events(now_ns)

    def _note_events(self, now_ns: int) -> None:
        rows: list[list[Any]] = []
        for kind, name in _COUNTED.items():
            counts = self._count(name)
            grown = counts - self._seen[kind]
            self._seen[kind] = counts
            for position, tc in np.argwhere(grown > 0).tolist():
                port = self._ports[position]
                value = int(grown[position, tc])
                rows.append([now_ns, kind, port.node, port.name, tc, value, ""])
        if rows:
            self._folder.extend("events", rows)

    def finish(self, now_ns: int) -> None:
        """Takes the last sample and writes everything."""
        self.sample(now_ns)
        self._recorder.flush()
