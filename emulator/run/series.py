"""Several runs of one experiment, one after the other; what is done stays, whatever comes next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from emulator.clock.traits import LIVE_CLOCK
from emulator.plan import make_plan
from emulator.run.launch import Launcher
from emulator.run.session import Outcome
from emulator.spec.load import load
from emulator.spec.model import Experiment
from emulator.variants import Variant
from topologies.errors import FabriclabError, SpecError

Labelled = tuple[str, Experiment]


@dataclass(frozen=True)
class Entry:
    """What became of one of them.

    Attributes:
        label: which.
        outcome: of its run; None when it could not run.
        problem: why it could not.
    """

    label: str
    outcome: Outcome | None
    problem: str = ""


@dataclass(frozen=True)
class Series:
    """What became of all.

    Attributes:
        entries: those that were started.
        interrupted: the user ended the series.
    """

    entries: Sequence[Entry]
    interrupted: bool

    @property
    def folders(self) -> list[Path]:
        """Run folders of all that ran, complete or not."""
        return [entry.outcome.folder for entry in self.entries if entry.outcome]

    @property
    def finished(self) -> list[Path]:
        """Run folders of those that came to their end by themselves."""
        outcomes = [entry.outcome for entry in self.entries if entry.outcome]
        return [outcome.folder for outcome in outcomes if not outcome.interrupted]

    @property
    def invalid(self) -> list[str]:
        """Labels of those whose verdict is INVALID."""
        ran = [(entry.label, entry.outcome) for entry in self.entries if entry.outcome]
        return [label for label, outcome in ran if not outcome.verdict.valid]

    @property
    def problems(self) -> list[str]:
        """A sentence for each that could not run."""
        return [f"{entry.label}: {entry.problem}" for entry in self.entries if entry.problem]


def prepare(
    file: Path, common: Mapping[str, str], variants: Sequence[Variant], capacity_pps: float | None
) -> list[Labelled]:
    """The experiment under each variant, all of them checked and planned before any runs.

    Experiments that differ only by the clock are shrunk alike, though "auto" would give each what
    its clock can carry: else they would not be the same experiment.

    Args:
        file: the experiment file.
        common: changes under all variants; a variant's own win.
        variants: under which settings.
        capacity_pps: of the machine, as far as it is known.

    Raises:
        SpecError: one of them is wrong; the place names its label.
    """
    labelled, shrinks = [], []
    for variant in variants:
        kept = {key: text for key, text in common.items() if key not in variant.overrides}
        try:
            experiment = load(file, {**kept, **variant.overrides})
            shrinks.append(make_plan(experiment, capacity_pps).scaling.scale.shrink)
        except SpecError as error:
            error.file = f"{error.file or file}, {variant.label!r}"
            raise
        labelled.append((variant.label, experiment))
    return _shrunk_alike(labelled, shrinks)


def _shrunk_alike(labelled: Sequence[Labelled], shrinks: Sequence[float]) -> list[Labelled]:
    """Gives experiments that differ only by the clock the largest of their shrinks."""
    plain = [replace(experiment, clock=LIVE_CLOCK) for _, experiment in labelled]
    alike = []
    for at, (label, experiment) in enumerate(labelled):
        group = [other for other, same in enumerate(plain) if same == plain[at]]
        several = len({labelled[other][1].clock for other in group}) > 1
        largest = max(shrinks[other] for other in group)
        alike.append((label, replace(experiment, shrink=largest) if several else experiment))
    return alike


def run_series(launcher: Launcher, experiments: Sequence[Labelled]) -> Series:
    """Runs them until all are done or the user ends the series.

    One that fails does not keep the others from running.
    """
    entries = []
    for number, (label, experiment) in enumerate(experiments, 1):
        if launcher.interrupted:
            break
        launcher.progress.note(f"{number} of {len(experiments)}: {label}")
        try:
            entries.append(Entry(label, launcher.run(experiment, label)))
        except FabriclabError as error:
            entries.append(Entry(label, None, " ".join(str(error).split())))
    return Series(entries, launcher.interrupted)
