"""A timer as a descriptor."""

from __future__ import annotations

import select
import time
from collections.abc import Iterator

import pytest

from emulator.kernel.timers import Timer


@pytest.fixture
def timer() -> Iterator[Timer]:
    """A timer that is closed after the test."""
    one = Timer()
    yield one
    one.close()


def is_readable(timer: Timer, wait_ms: int = 0) -> bool:
    """Whether it has gone off, or does within a time."""
    poll = select.poll()
    poll.register(timer.fileno(), select.POLLIN)
    return bool(poll.poll(wait_ms))


def test_it_goes_off_at_its_time_and_not_before(timer: Timer) -> None:
    """By the monotonic clock."""
    at_ns = time.monotonic_ns() + 20_000_000
    timer.set(at_ns)
    assert is_readable(timer, 5_000)
    assert time.monotonic_ns() >= at_ns


def test_a_time_that_is_over_is_now(timer: Timer) -> None:
    """Even 0."""
    timer.set(0)
    assert is_readable(timer)


def test_it_can_be_called_off(timer: Timer) -> None:
    """None is never; and it starts so."""
    assert not is_readable(timer)
    timer.set(0)
    timer.set(None)
    assert not is_readable(timer)


def test_after_it_was_cleared_it_waits_for_the_next_time(timer: Timer) -> None:
    """The same time can be set again; clearing what has not gone off does not wait."""
    timer.set(0)
    timer.clear()
    assert not is_readable(timer)
    timer.clear()
    timer.set(0)
    assert is_readable(timer)
