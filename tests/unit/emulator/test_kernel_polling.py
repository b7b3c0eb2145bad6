"""Waiting for descriptors."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

import pytest

from emulator.kernel.polling import Poller

LONG_NS = 20_000_000_000


@pytest.fixture
def poller() -> Iterator[Poller[str]]:
    """A poller that is closed after the test."""
    one: Poller[str] = Poller()
    yield one
    one.close()


@pytest.fixture
def pipes() -> Iterator[list[tuple[int, int]]]:
    """Two pipes."""
    ends = [os.pipe(), os.pipe()]
    yield ends
    for pair in ends:
        for end in pair:
            os.close(end)


def test_it_returns_what_is_readable(poller: Poller[str], pipes: list[tuple[int, int]]) -> None:
    """At once, and only that."""
    for name, (reading, _) in zip("ab", pipes, strict=True):
        poller.register(reading, name)
    assert poller.items() == ["a", "b"]
    assert poller.wait(0) == []
    os.write(pipes[1][1], b"x")
    assert poller.wait(LONG_NS) == ["b"]
    os.write(pipes[0][1], b"x")
    assert sorted(poller.wait(LONG_NS)) == ["a", "b"]


def test_it_waits_no_longer_than_it_may(poller: Poller[str]) -> None:
    """And no shorter; a time that is over is none."""
    begin_ns = time.monotonic_ns()
    assert poller.wait(3_000_500) == []
    assert time.monotonic_ns() - begin_ns >= 3_000_500
    assert poller.wait(-5) == []


def test_the_limit_is_finer_than_a_millisecond(poller: Poller[str]) -> None:
    """Ten short waits take less than the milliseconds that they would be rounded up to."""
    best_ns = min(_waits_ns(poller) for _ in range(20))
    assert 200_000 <= best_ns < 5_000_000


def _waits_ns(poller: Poller[str]) -> int:
    begin_ns = time.monotonic_ns()
    for _ in range(10):
        poller.wait(20_000)
    return time.monotonic_ns() - begin_ns


def test_what_is_not_registered_any_more_wakes_nobody(
    poller: Poller[str], pipes: list[tuple[int, int]]
) -> None:
    """Though it is readable."""
    reading, writing = pipes[0]
    poller.register(reading, "a")
    os.write(writing, b"x")
    poller.unregister(reading)
    assert poller.wait(0) == []
    assert poller.items() == []


def test_a_descriptor_that_cannot_be_waited_for(poller: Poller[str], tmp_path: object) -> None:
    """An error of the kernel, not a wait for ever."""
    poller.close()
    with pytest.raises((OSError, ValueError)):
        poller.wait(0)
