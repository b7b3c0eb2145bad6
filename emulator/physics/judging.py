"""PURE: measurements against targets; what became of a case."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from emulator.physics.case import Case, Run, Runs, Target
from emulator.physics.drawing import Panel
from emulator.results.reader import RunReader
from emulator.results.summary import VALID
from topologies.errors import SpecError


@dataclass(frozen=True)
class Row:
    """One target and its measurement.

    Attributes:
        target: what should be.
        measured: in the target's unit; NaN when there is nothing.
        clock: under which.
        passed: whether it is within the tolerance, of a run that can be believed.
    """

    target: Target
    measured: float
    clock: str
    passed: bool


@dataclass(frozen=True)
class Result:
    """What became of a case.

    Attributes:
        case: which.
        rows: one for each target.
        reasons: why it fails whatever the numbers are.
        folders: run folders by label, of the runs that ended.
        panels: figures.
        wall_s: how long it took.
    """

    case: Case
    rows: Sequence[Row]
    reasons: Sequence[str] = ()
    folders: Mapping[str, Path] = field(default_factory=dict)
    panels: Sequence[Panel] = ()
    wall_s: float = 0.0

    @property
    def passed(self) -> bool:
        """Whether every number passed and every run could be believed."""
        return not self.reasons and all(row.passed for row in self.rows)


def judge(case: Case, clock: str, folders: Mapping[str, Path], wall_s: float) -> Result:
    """The result of a case whose runs have ended.

    A run that must not be believed makes the whole case fail, but its numbers are still shown.
    """
    runs = {label: RunReader.open(folder) for label, folder in folders.items()}
    reasons = [reason for run in case.runs for reason in verdict_reasons(run, runs[run.label])]
    measured, panels = _numbers(case, runs, reasons)
    rows = [_row(target, measured, clock, not reasons) for target in case.targets]
    return Result(case, rows, reasons, folders, panels, wall_s)


def failed(case: Case, clock: str, reason: str, folders: Mapping[str, Path]) -> Result:
    """The result of a case that could not run to its end."""
    rows = [Row(target, math.nan, clock, False) for target in case.targets]
    return Result(case, rows, (reason,), folders)


def verdict_reasons(run: Run, reader: RunReader) -> list[str]:
    """Why a run is not what its case needs, as sentences; none when it is."""
    summary = reader.summary or {}
    found = [str(reason) for reason in summary.get("reasons", ())]
    if not run.invalid:
        valid = summary.get("verdict") == VALID
        return [] if valid else [f"run {run.label!r} is INVALID: {'; '.join(found)}"]
    missing = [word for word in run.invalid if not any(word in reason for reason in found)]
    return [f"run {run.label!r} should be INVALID for {word!r}" for word in missing]


def _numbers(
    case: Case, runs: Runs, reasons: Sequence[str]
) -> tuple[Mapping[str, float], Sequence[Panel]]:
    """Measurements and figures; of a run that failed there may be none."""
    try:
        return case.measure(runs), case.draw(runs)
    except (SpecError, LookupError, ValueError):
        if not reasons:
            raise
        return {}, ()


def _row(target: Target, measured: Mapping[str, float], clock: str, believed: bool) -> Row:
    value = float(measured.get(target.quantity, math.nan))
    return Row(target, value, clock, believed and target.passes(value, clock))
