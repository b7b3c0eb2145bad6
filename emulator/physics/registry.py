"""Which cases there are, by name, in the order in which they run.

To add one: write a function that makes its `Case` in a file of `emulator.physics.cases`, and name
it here. docs/physics.md has a row for every case.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from emulator.clock.traits import LIVE_CLOCK
from emulator.physics.case import Case
from emulator.physics.cases import (
    latency,
    marking,
    permutation,
    rates,
    ring,
    sharing,
    waiting,
)
from topologies.errors import SpecError, UnknownNameError

FLAG = "--case"

MAKERS: Sequence[Callable[[], Case]] = (
    partial(rates.rate_case, 10),
    partial(rates.rate_case, 100),
    partial(rates.rate_case, 400),
    partial(latency.latency_case, "store-and-forward"),
    partial(latency.latency_case, "cut-through"),
    waiting.waiting_case,
    sharing.fair_halves_case,
    partial(sharing.incast_case, 8),
    partial(sharing.incast_case, 15),
    marking.marking_case,
    permutation.permutation_case,
    ring.contiguous_case,
    ring.strided_case,
)


def cases() -> list[Case]:
    """All cases."""
    return [make() for make in MAKERS]


def chosen(names: Sequence[str], clock: str) -> list[Case]:
    """The cases of these names, or all that the clock has; in the order in which they run.

    Raises:
        UnknownNameError: there is no such case.
        SpecError: a case that was asked for does not run under this clock.
    """
    known = {case.name: case for case in cases()}
    for name in names:
        if name not in known:
            raise UnknownNameError(FLAG, "case", name, known)
        if not runs_under(known[name], clock):
            rule = f"does not run under the {clock} clock"
            raise SpecError(FLAG, name, rule, "leave --clock out, or see --list")
    wanted = names or [name for name, case in known.items() if runs_under(case, clock)]
    return [case for name, case in known.items() if name in wanted]


def runs_under(case: Case, clock: str) -> bool:
    """Whether a case runs under a clock."""
    return case.live or clock != LIVE_CLOCK
