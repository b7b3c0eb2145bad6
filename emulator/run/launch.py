"""Everything around a run: the machine is checked and measured once, then experiments run."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from emulator import calibration, doctor
from emulator.clock.traits import LIVE_CLOCK, VIRTUAL_CLOCK
from emulator.clock.virtual import launch as virtual
from emulator.run import session
from emulator.run.alone import alone
from emulator.run.progress import Progress
from emulator.run.supervising import Interrupt
from emulator.spec.model import Experiment


@dataclass(frozen=True)
class Launcher:
    """Runs experiments on a machine that is ready.

    Attributes:
        results: folder of all results.
        capacity_pps: data packets/s that this machine carries; 0 = not asked.
        datapath: of Open vSwitch.
        progress: what the user sees.
        interrupt: whether the user wants it to end.
    """

    results: Path
    capacity_pps: float
    datapath: str
    progress: Progress
    interrupt: Interrupt

    @property
    def interrupted(self) -> bool:
        """True once the user asked for the end."""
        return bool(self.interrupt.asked)

    def run(self, experiment: Experiment, label: str = "") -> session.Outcome:
        """Runs one, here or in a guest; `label` is how comparisons call it."""
        if experiment.clock == VIRTUAL_CLOCK:
            return virtual.run(experiment, label, self.results, self.progress, self.interrupt)
        request = session.Request(
            experiment, self.capacity_pps, self.results, label, self.datapath
        )  # fmt: skip
        return session.run(request, self.progress, self.interrupt)


@contextmanager
def launcher(
    results: Path,
    clocks: Collection[str],
    progress: Progress,
    alongside: bool = False,
    what: str = "run",
) -> Iterator[Launcher]:
    """A launcher; Ctrl-C ends what it runs in order while the block lasts.

    Args:
        results: folder of all results.
        clocks: of the experiments that will run; only the live one needs root, a quiet machine,
            and to know what it carries.
        progress: what the user sees.
        alongside: start although something else is under way.
        what: what starts, for others that would disturb it.

    Raises:
        MachineError: the machine lacks something, or something else is under way.
        KeyboardInterrupt: the user ended it before anything had started.
    """
    live = LIVE_CLOCK in clocks
    if VIRTUAL_CLOCK in clocks:
        doctor.require(doctor.examine_for_guest)
    if live:
        doctor.require()
    interrupt = Interrupt()
    with ExitStack() as held:
        if live:
            held.enter_context(alone(what, alongside))
        held.enter_context(interrupt.armed())
        capacity_pps = calibration.capacity_pps(progress.note) if live else 0.0
        if interrupt.asked:
            raise KeyboardInterrupt
        yield Launcher(results, capacity_pps, doctor.datapath(), progress, interrupt)
