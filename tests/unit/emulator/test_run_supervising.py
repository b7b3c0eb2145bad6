"""Watching the engine: samples, interrupts, deaths, and patience that ends."""

from __future__ import annotations

import io
import os
import signal
from collections.abc import Callable
from typing import Any

import pytest

from emulator.clock.live import LiveClock
from emulator.clock.traits import LIVE
from emulator.run import supervising
from emulator.run.progress import Progress
from emulator.run.supervising import Interrupt, Watch, watch

START_NS = 7_000_000_000


class Host:
    """The host's clock; sleeping moves it, and lets something happen."""

    def __init__(self) -> None:
        self.now_ns = START_NS
        self.events: list[Callable[[], None]] = []

    def monotonic(self) -> float:
        """Seconds."""
        return self.now_ns / 1e9

    def monotonic_ns(self) -> int:
        """Nanoseconds."""
        return self.now_ns

    def sleep(self, seconds: float) -> None:
        """Time passes."""
        self.now_ns += max(1, round(seconds * 1e9))
        if self.events:
            self.events.pop(0)()


class Engine:
    """An engine's process that ends after so much time, or when told."""

    def __init__(self, host: Host, life_ns: int, code: int = 0, obeys: bool = True) -> None:
        self._host, self._end_ns, self._code = host, host.now_ns + life_ns, code
        self._obeys = obeys
        self.asked = self.killed = 0

    def poll(self) -> int | None:
        """Exit code."""
        return self._code if self._host.now_ns >= self._end_ns else None

    def ask_to_stop(self) -> None:
        """Ends soon."""
        self.asked += 1
        if self._obeys:
            self._end_ns = self._host.now_ns + 50_000_000

    def kill(self) -> None:
        """Ends now."""
        self.killed += 1
        self._end_ns, self._code = 0, -signal.SIGKILL


class Sampler:
    """Notes when it is asked."""

    def __init__(self) -> None:
        self.times: list[int] = []
        self.finished: list[int] = []

    def sample(self, now_ns: int) -> None:
        """One sample."""
        self.times.append(now_ns)

    def finish(self, now_ns: int) -> None:
        """The last one."""
        self.finished.append(now_ns)


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Host:
    """Stands in for `time` wherever the supervisor looks at it."""
    fake = Host()
    monkeypatch.setattr(supervising, "time", fake)
    monkeypatch.setattr("emulator.clock.live.time", fake)
    monkeypatch.setattr("emulator.run.machine.time", fake)
    monkeypatch.setattr("emulator.run.machine._times", lambda: (fake.now_ns // 4, fake.now_ns))
    return fake


def watched(
    host: Host,
    engine: Engine,
    sampler: Sampler | None = None,
    interrupt: Interrupt | None = None,
    alive: Callable[[], str | None] = lambda: None,
    every_ns: int = 100_000,
) -> Watch:
    """Watches an engine at a dilation of 1000, samples every 100 us of model time."""
    parts: Any = engine, LiveClock(1_000.0), LIVE, sampler or Sampler()
    return watch(
        *parts, every_ns, Progress(io.StringIO()), interrupt or Interrupt(),
        lambda: (0.5, "half"), alive,
    )  # fmt: skip


def test_an_engine_that_ends_well_is_no_trouble(host: Host) -> None:
    """Its code, how long it took, and how idle the machine was."""
    seen = watched(host, Engine(host, 2_500_000_000))
    assert (seen.exit_code, seen.troubles) == (0, ())
    assert seen.wall_s == pytest.approx(2.5, abs=0.05)
    assert seen.idle_least == pytest.approx(0.25, abs=0.01)


def test_a_short_run_knows_nothing_of_the_machine(host: Host) -> None:
    """Less than a second is too short."""
    assert watched(host, Engine(host, 100_000_000)).idle_least is None


def test_samples_are_taken_in_model_time(host: Host) -> None:
    """Every so often from 0 on, and once more at the end."""
    sampler = Sampler()
    watched(host, Engine(host, 1_000_000_000), sampler)
    assert sampler.times[0] == 0
    gaps = [after - before for before, after in zip(sampler.times, sampler.times[1:], strict=False)]
    assert all(gap == pytest.approx(100_000, abs=2_000) for gap in gaps)
    assert len(sampler.times) == 10
    assert sampler.finished == [pytest.approx(1_000_000, abs=25_000)]


def test_a_machine_that_paused_does_not_catch_up_on_samples(host: Host) -> None:
    """Samples that were missed are missed; the next one comes in time."""
    sampler = Sampler()
    host.events = [lambda: setattr(host, "now_ns", host.now_ns + 500_000_000)]
    watched(host, Engine(host, 1_000_000_000), sampler)
    assert 5 <= len(sampler.times) <= 7


def test_no_samples_before_the_start(host: Host) -> None:
    """Model time is negative until the engine's start."""
    sampler = Sampler()
    parts: Any = Engine(host, 50_000_000), LiveClock(1_000.0, START_NS + 20_000_000), LIVE, sampler
    watch(*parts, 10_000, Progress(io.StringIO()), Interrupt(), lambda: (0, ""), lambda: None)
    assert min(sampler.times) >= 0


def test_an_interrupt_ends_the_run_in_order(host: Host) -> None:
    """The engine is asked once, has time to end, and the reason is told."""
    interrupt, engine = Interrupt(), Engine(host, 10**12)
    host.events = [lambda: None] * 3 + [lambda: setattr(interrupt, "asked", "SIGINT")]
    seen = watched(host, engine, interrupt=interrupt)
    assert (engine.asked, engine.killed) == (1, 0)
    assert seen.exit_code == 0
    assert seen.troubles == ("the run was ended early by SIGINT",)


def test_an_engine_that_does_not_end_is_killed(host: Host) -> None:
    """After the patience is over."""
    interrupt, engine = Interrupt(), Engine(host, 10**12, obeys=False)
    interrupt.asked = "SIGTERM"
    seen = watched(host, engine, interrupt=interrupt)
    assert engine.asked == engine.killed == 1
    assert seen.wall_s == pytest.approx(supervising._STOP_PATIENCE_S, abs=0.1)
    assert seen.troubles == (
        "the run was ended early by SIGTERM", "the NIC engine died (signal SIGKILL)",
    )  # fmt: skip


@pytest.mark.parametrize(("code", "how"), [(1, "exit code 1"), (-signal.SIGSEGV, "signal SIGSEGV")])
def test_an_engine_that_died_is_trouble(host: Host, code: int, how: str) -> None:
    """How it died is told."""
    seen = watched(host, Engine(host, 10_000_000, code))
    assert seen.exit_code == code
    assert seen.troubles == (f"the NIC engine died ({how})",)


def test_a_death_beside_the_engine_ends_the_run(host: Host) -> None:
    """It is told once, and the engine is asked to stop."""
    engine = Engine(host, 10**12)
    sentence = "Open vSwitch ended in the middle of the run"
    seen = watched(host, engine, alive=lambda: sentence)
    assert engine.asked == 1
    assert seen.troubles == (sentence,)


def test_signals_are_remembered_while_armed() -> None:
    """Ctrl-C and SIGTERM end a run in order; the handlers before are back afterwards."""
    before = signal.getsignal(signal.SIGTERM)
    interrupt = Interrupt()
    with interrupt.armed():
        assert interrupt.asked == ""
        os.kill(os.getpid(), signal.SIGTERM)
        assert interrupt.asked == "SIGTERM"
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_second_signal_ends_it_at_once() -> None:
    """Whoever asks twice does not want to wait."""
    interrupt = Interrupt()
    with interrupt.armed():
        os.kill(os.getpid(), signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert interrupt.asked == "SIGINT"
