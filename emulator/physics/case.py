"""PURE: what a case of the validation suite is, and when a measurement passes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from emulator.clock.traits import LIVE_CLOCK
from emulator.physics.drawing import Panel
from emulator.results.reader import RunReader


class Sense(StrEnum):
    """How a measurement is held against what is expected."""

    NEAR = "near"
    AT_LEAST = "at least"
    AT_MOST = "at most"


@dataclass(frozen=True)
class Tolerance:
    """How far a measurement may be from what is expected, by the clock of the run.

    Attributes:
        live: under the live clock.
        virtual: under the virtual clock, the reference.
        relative: fractions of the expected value; else in its unit.
    """

    live: float
    virtual: float
    relative: bool = True

    def of(self, clock: str) -> float:
        """The one that counts under a clock."""
        return self.live if clock == LIVE_CLOCK else self.virtual


def of_table(tolerance: float, relative: bool = True) -> Tolerance:
    """A published table's tolerance; half of it under the virtual clock."""
    return Tolerance(tolerance, tolerance / 2, relative)


def closed_form(live: float, virtual: float, relative: bool = True) -> Tolerance:
    """For a closed form: under the virtual clock no more than rounding and ticks add."""
    return Tolerance(live, virtual, relative)


EXACT = Tolerance(0.0, 0.0)
"""For counts that have to be met, and for bounds."""


@dataclass(frozen=True)
class Target:
    """One quantity of a case and what it should be.

    Attributes:
        quantity: what is measured, a few words, unique in its case.
        unit: of both numbers; empty for a pure number.
        expected: from a closed form or a table, never tuned.
        tolerance: how far off it may be.
        sense: whether it must be near, or is bounded by what is expected.
        source: where the expected value is from; empty = the case's source.
    """

    quantity: str
    unit: str
    expected: float
    tolerance: Tolerance
    sense: Sense = Sense.NEAR
    source: str = ""

    def slack(self, clock: str) -> float:
        """The tolerance in the target's unit."""
        allowed = self.tolerance.of(clock)
        return allowed * abs(self.expected) if self.tolerance.relative else allowed

    def passes(self, measured: float, clock: str) -> bool:
        """Whether a measurement passes; NaN never does."""
        slack = self.slack(clock)
        above, below = measured >= self.expected - slack, measured <= self.expected + slack
        if self.sense is Sense.AT_LEAST:
            return above
        return below if self.sense is Sense.AT_MOST else above and below


@dataclass(frozen=True)
class Run:
    """One experiment of a case.

    Attributes:
        label: what tells it from the case's other ones.
        document: as an experiment file holds it; clock, shrink and name are set by who runs it.
        invalid: the run has to be INVALID, and each of these words has to stand in a reason; empty
            = it has to be VALID.
    """

    label: str
    document: Mapping[str, Any]
    invalid: tuple[str, ...] = ()


Runs = Mapping[str, RunReader]
"""Finished runs by their labels."""
Measured = Mapping[str, float]
"""Quantity -> what was measured, in the unit of its target."""


def nothing_to_draw(_runs: Runs) -> Sequence[Panel]:
    """For cases whose numbers say it all."""
    return ()


@dataclass(frozen=True)
class Case:
    """One named comparison of the fabric with theory.

    Attributes:
        name: as the command line calls it.
        table: of the reference tables that it reproduces, such as V8; empty for a closed form.
        title: a headline.
        shows: one sentence on what it shows.
        source: where the expected values come from.
        runs: what has to run for it.
        targets: what is expected.
        measure: run folders -> measurements; pure.
        draw: run folders -> figures beside their references; pure.
        live: whether it also runs under the live clock.
        wall_s: about how long it takes under the virtual clock.
        note: what a reader has to know to judge the numbers; may be empty.
    """

    name: str
    table: str
    title: str
    shows: str
    source: str
    runs: tuple[Run, ...]
    targets: tuple[Target, ...]
    measure: Callable[[Runs], Measured]
    draw: Callable[[Runs], Sequence[Panel]] = nothing_to_draw
    live: bool = False
    wall_s: float = 10.0
    note: str = ""
