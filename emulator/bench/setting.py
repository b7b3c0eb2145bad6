"""What every measurement gets, and what several of them need on the machine."""

from __future__ import annotations

import contextlib
import os
import statistics
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from emulator import naming
from emulator.kernel import links, netlink, netns
from emulator.ownership import Ledger
from emulator.run.ending import standing

WHAT = "bench"


@dataclass(frozen=True)
class Setting:
    """Where and how a measurement works.

    Attributes:
        folder: scratch files of all measurements; removed at the end.
        datapath: of Open vSwitch.
        note: told what is going on, for progress.
    """

    folder: Path
    datapath: str
    note: Callable[[str], None]


def new_ledger() -> Ledger:
    """Of something that a measurement is about to make."""
    return Ledger(naming.new_run_id(), what=WHAT)


@contextmanager
def _namespace(prepare: Callable[[str], None]) -> Iterator[tuple[Ledger, int]]:
    ledger = new_ledger()
    name = naming.switches_namespace(ledger.owned.run_id)
    with contextlib.ExitStack() as stack:
        stack.callback(ledger.close)
        ledger.add_namespaces([name])
        netns.create([name], prepare)
        descriptor = netns.open_fd(name)
        stack.callback(os.close, descriptor)
        yield ledger, descriptor


def scratch_namespace(
    prepare: Callable[[str], None] = lambda _name: None,
) -> contextlib.AbstractContextManager[tuple[Ledger, int]]:
    """(ledger, file descriptor) of a network namespace that goes with all that is in it.

    Args:
        prepare: called inside the new namespace.
    """
    return standing(_namespace(prepare))


def loopback_up(_name: str) -> None:
    """Inside a new namespace: its loopback interface is up."""
    with netlink.Session() as session:
        session.run([links.up(1, "lo")])


def median_of(measure: Callable[[], float], repetitions: int) -> float:
    """Median of several measurements."""
    return statistics.median(measure() for _ in range(repetitions))
