"""Runs cases one after the other; what is done stays, whatever comes next."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from emulator.physics import judging
from emulator.physics.case import Case, Run
from emulator.physics.judging import Result
from emulator.physics.loading import experiment_of
from emulator.run.launch import Launcher
from emulator.spec.model import Experiment
from topologies.errors import FabriclabError

Prepared = tuple[Case, Sequence[tuple[Run, Experiment]]]


@dataclass(frozen=True)
class Results:
    """What became of the cases.

    Attributes:
        results: of those that ended, in the order in which they ran.
        interrupted: the user ended it; the case that was under way is not among the results.
    """

    results: Sequence[Result]
    interrupted: bool

    @property
    def passed(self) -> bool:
        """Whether every case passed."""
        return all(result.passed for result in self.results)


def prepare(cases: Sequence[Case], clock: str) -> list[Prepared]:
    """All experiments, checked before any of them runs; SpecError when one is wrong."""
    return [
        (case, [(run, experiment_of(case.name, run, clock)) for run in case.runs])
        for case in cases
    ]  # fmt: skip


def run_all(launcher: Launcher, prepared: Sequence[Prepared], clock: str) -> Results:
    """Runs cases until all are done or the user ends it; one that fails stops no other."""
    done: list[Result] = []
    for number, (case, runs) in enumerate(prepared, 1):
        launcher.progress.note(f"case {number} of {len(prepared)}: {case.name}, {case.title}")
        result = run_case(launcher, case, runs, clock)
        if result is None:
            return Results(done, interrupted=True)
        done.append(result)
        launcher.progress.note(f"{case.name}: {'PASS' if result.passed else 'FAIL'}")
    return Results(done, interrupted=False)


def run_case(
    launcher: Launcher, case: Case, runs: Sequence[tuple[Run, Experiment]], clock: str
) -> Result | None:
    """One case; None when the user ended it before it was done."""
    folders: dict[str, Path] = {}
    begin_s = time.monotonic()
    for run, experiment in runs:
        if launcher.interrupted:
            return None
        try:
            outcome = launcher.run(experiment, f"{case.name} {run.label}")
        except FabriclabError as error:
            reason = f"run {run.label!r} could not be made: {' '.join(str(error).split())}"
            return judging.failed(case, clock, reason, folders)
        if outcome.interrupted:
            return None
        folders[run.label] = outcome.folder
    return judging.judge(case, clock, folders, time.monotonic() - begin_s)
