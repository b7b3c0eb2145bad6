"""Watches the engine from outside: progress, queue samples, the machine, Ctrl-C, its death."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from emulator.clock.live import LiveClock
from emulator.clock.traits import ClockTraits
from emulator.kernel.forking import Forked
from emulator.run.machine import IdleMeter
from emulator.run.progress import Progress
from emulator.run.sampling import Sampler

_STOP_PATIENCE_S = 30.0


class Interrupt:
    """Remembers that somebody asked the run to end."""

    def __init__(self) -> None:
        self.asked = ""

    @contextmanager
    def armed(self) -> Iterator[None]:
        """Ctrl-C and SIGTERM end the run in order while the block lasts; a second one at once."""
        before = {number: signal.signal(number, self._note) for number in _SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _note(self, number: int, _frame: object) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = signal.Signals(number).name


_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@dataclass(frozen=True)
class Watch:
    """What watching found.

    Attributes:
        exit_code: of the engine.
        idle_least: smallest share of idle processor time in a second.
        wall_s: how long the traffic took.
        troubles: what went wrong, as sentences.
    """

    exit_code: int
    idle_least: float | None
    wall_s: float
    troubles: tuple[str, ...]


def watch(
    engine: Forked,
    clock: LiveClock,
    traits: ClockTraits,
    sampler: Sampler,
    sample_every_ns: int,
    progress: Progress,
    interrupt: Interrupt,
    describe: Callable[[], tuple[float, str]],
    alive: Callable[[], str | None],
) -> Watch:
    """Looks after the engine until it has ended.

    Args:
        engine: the engine's process.
        clock: model time.
        traits: of the clock.
        sampler: takes queue samples.
        sample_every_ns: model time between two samples.
        progress: shows `describe()`: (fraction done, text).
        interrupt: whether to stop.
        describe: how far the run is.
        alive: a sentence when some other part of the run has died, else None.
    """
    meter, begin = IdleMeter() if traits.real_time else None, time.monotonic()
    troubles: list[str] = []
    next_sample_ns, deadline_s = 0, float("inf")
    while engine.poll() is None:
        if meter:
            meter.look()
        now_ns = clock.now_ns()
        if now_ns >= next_sample_ns:
            sampler.sample(now_ns)
            next_sample_ns = max(next_sample_ns + sample_every_ns, now_ns)
        progress.update(*describe())
        death = alive()
        if death and death not in troubles:
            troubles.append(death)
        if (interrupt.asked or death) and deadline_s == float("inf"):
            engine.ask_to_stop()
            deadline_s = time.monotonic() + _STOP_PATIENCE_S
        if time.monotonic() > deadline_s:
            engine.kill()
        wait_ns = (next_sample_ns - clock.now_ns()) * clock.dilation
        time.sleep(min(traits.look_ns, max(traits.rest_ns, wait_ns)) / 1e9)
    sampler.finish(clock.now_ns())
    progress.done()
    if interrupt.asked:
        troubles.append(f"the run was ended early by {interrupt.asked}")
    code = engine.poll() or 0
    if code:
        troubles.append(f"the NIC engine died ({_how(code)})")
    least = meter.least if meter else None
    return Watch(code, least, time.monotonic() - begin, tuple(troubles))


def _how(code: int) -> str:
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
