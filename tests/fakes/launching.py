"""A launcher that writes synthetic run folders instead of running anything."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from emulator.fidelity import Verdict
from emulator.results.reader import RunReader
from emulator.run.progress import Progress
from emulator.run.session import Outcome
from emulator.spec.model import Experiment
from tests.fakes.run_folder import FakeRun, write_run
from topologies.errors import MachineError

QUICK: Mapping[str, Any] = {"samples": 5, "probes": 20, "requests": 5, "iterations": 1}


@dataclass
class FakeLauncher:
    """Looks like `emulator.run.launch.Launcher`.

    Attributes:
        results: folder of all results.
        invalid: labels whose verdict is INVALID.
        failing: labels that cannot run.
        interrupted_in: label of the run during which the user presses Ctrl-C.
        ran: (label, experiment) of all that was asked for.
        log: what progress was told.
    """

    results: Path
    invalid: tuple[str, ...] = ()
    failing: tuple[str, ...] = ()
    interrupted_in: str = ""
    ran: list[tuple[str, Experiment]] = field(default_factory=list)
    log: io.StringIO = field(default_factory=io.StringIO)
    interrupted: bool = False

    @property
    def progress(self) -> Progress:
        """Goes to the log."""
        return Progress(self.log)

    def run(self, experiment: Experiment, label: str = "") -> Outcome:
        """Writes a run folder."""
        self.ran.append((label, experiment))
        if label in self.failing:
            raise MachineError("the controller ended early")
        self.interrupted = bool(label) and label == self.interrupted_in
        reasons = ("too slow",) if label in self.invalid or self.interrupted else ()
        run = FakeRun(
            name=experiment.name, run_id=f"{len(self.ran):06x}", profile=experiment.profile,
            seed=experiment.seed, reasons=reasons, clock=experiment.clock,
            extra_manifest={"label": label}, **QUICK,
        )  # fmt: skip
        folder = write_run(self.results, run)
        summary = RunReader.open(folder).summary or {}
        return Outcome(folder, summary, Verdict(not reasons, reasons, False), self.interrupted)

    @contextmanager
    def __call__(self, *_: object) -> Iterator[FakeLauncher]:
        """In place of `emulator.commands.common_run.launched`."""
        yield self
