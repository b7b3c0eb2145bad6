"""The live clock: model time is the host's monotonic time, slowed down."""

from __future__ import annotations

import signal
import time

import numpy as np
import pytest

from emulator.clock import live
from emulator.clock.live import LiveClock

START_NS = 5_000_000_000


class Host:
    """The host's clock as this test sets it; sleeping moves it."""

    def __init__(self) -> None:
        self.now_ns = START_NS
        self.reads = 0

    def monotonic_ns(self) -> int:
        """The time now."""
        self.reads += 1
        return self.now_ns

    def sleep_until(self, wall_ns: int) -> None:
        """Time passes, if it has not."""
        self.now_ns = max(self.now_ns, wall_ns)


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Host:
    """Stands in for the module `time` and for the system call that sleeps."""
    fake = Host()
    monkeypatch.setattr(live, "time", fake)
    monkeypatch.setattr(live, "sleep_until_wall", fake.sleep_until)
    return fake


def test_model_time_is_wall_time_over_dilation(host: Host) -> None:
    """1 ms of wall time is 1 us of model time at a dilation of 1000."""
    clock = LiveClock(1_000.0)
    assert clock.now_ns() == 0
    host.now_ns += 1_000_000
    assert clock.now_ns() == 1_000


def test_a_clock_may_start_later(host: Host) -> None:
    """Until then model time is negative."""
    clock = LiveClock(10.0, START_NS + 1_000)
    assert clock.now_ns() == -100
    clock.start_wall_ns = START_NS - 1_000
    assert clock.now_ns() == 100


@pytest.mark.parametrize("dilation", [1.0, 37.5, 4_000.0])
def test_sleeping_ends_at_the_model_time(host: Host, dilation: float) -> None:
    """Neither earlier nor later, if the host sleeps exactly."""
    clock = LiveClock(dilation)
    host.reads = 0
    assert clock.sleep_until(12_345) == 12_345
    assert host.reads == 1
    assert host.now_ns - START_NS == pytest.approx(12_345 * dilation, abs=1)
    assert clock.now_ns() == 12_345


def test_a_time_that_has_passed_is_not_slept_for(host: Host) -> None:
    """The engine is late then, and goes on at once."""
    clock = LiveClock(10.0)
    host.now_ns += 1_000
    assert clock.sleep_until(100) == 100
    assert clock.sleep_until(50) == 100
    assert host.now_ns == START_NS + 1_000


def test_times_of_the_kernel_become_model_times(host: Host) -> None:
    """The same as `now_ns` at those times, before the start too."""
    clock = LiveClock(250.0)
    walls = [START_NS - 1_000, START_NS, START_NS + 1_000_000, START_NS + 123_456_789]
    expected = []
    for wall in walls:
        host.now_ns = wall
        expected.append(clock.now_ns())
    assert clock.to_model(np.array(walls)).tolist() == expected == [-4, 0, 4_000, 493_827]


def test_the_real_clock_moves() -> None:
    """It starts now and follows the monotonic clock."""
    clock = LiveClock(1.0)
    begin = time.monotonic_ns()
    LiveClock.sharpen()
    woken_ns = clock.sleep_until(clock.now_ns() + 1_000_000)
    assert 1_000_000 <= woken_ns <= clock.now_ns()
    assert time.monotonic_ns() - begin >= 1_000_000


def test_a_signal_does_not_end_a_sleep() -> None:
    """Its handler runs meanwhile, and the clock sleeps on."""
    heard: list[int] = []
    before = signal.signal(signal.SIGALRM, lambda number, _frame: heard.append(number))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.002)
        clock = LiveClock(1.0)
        assert clock.sleep_until(20_000_000) >= 20_000_000
    finally:
        signal.signal(signal.SIGALRM, before)
    assert heard == [signal.SIGALRM]


def test_what_a_handler_raises_ends_a_sleep() -> None:
    """As Ctrl-C does."""

    def stop(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, stop)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.002)
        with pytest.raises(KeyboardInterrupt):
            LiveClock(1.0).sleep_until(60_000_000_000)
    finally:
        signal.signal(signal.SIGALRM, before)
