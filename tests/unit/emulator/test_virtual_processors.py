"""Which processor of the host a guest gets."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from emulator.clock.virtual import processors

Show = Callable[..., None]


@pytest.fixture
def show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Show:
    """Sets which processors may be used, and the (idle, waiting) ticks of all at each look."""
    stat = tmp_path / "stat"
    real = Path

    def show(allowed: set[int], *looks: Sequence[tuple[int, int]]) -> None:
        texts = iter(looks)

        def here(path: str) -> Path:
            assert path == "/proc/stat"
            lines = ["cpu  1 2 3 4 5 6 7 8 9 10"]
            for number, (idle, waiting) in enumerate(next(texts)):
                lines.append(f"cpu{number} 900 0 900 {idle} {waiting} 0 0 0 0 0")
            stat.write_text("\n".join([*lines, "intr 17 0", "ctxt 5"]))
            return real(stat)

        monkeypatch.setattr(processors, "Path", here)
        monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: allowed)
        monkeypatch.setattr(processors.time, "sleep", lambda _seconds: None)

    return show


def test_the_idlest_just_now_is_taken(show: Show) -> None:
    """Not the one that was idle the most since boot; waiting for a disk is idle."""
    show({0, 1, 2}, [(9000, 0), (10, 0), (50, 0)], [(9001, 0), (12, 3), (52, 1)])
    assert processors.least_busy() == 1


def test_only_those_that_may_be_used_count(show: Show) -> None:
    """A container may have a part of the machine."""
    show({0, 2}, [(0, 0)] * 3, [(1, 0), (5, 0), (2, 0)])
    assert processors.least_busy() == 2


def test_of_equals_the_last_is_taken(show: Show) -> None:
    """Interrupts are served by the first one."""
    show({0, 1, 2, 3}, [(0, 0)] * 4, [(5, 0)] * 4)
    assert processors.least_busy() == 3


def test_a_processor_that_is_not_listed_counts_as_busy(show: Show) -> None:
    """It went off in between."""
    show({0, 7}, [(0, 0)], [(1, 0)])
    assert processors.least_busy() == 0


def test_this_machine_has_one() -> None:
    """Of those that this process may use."""
    assert processors.least_busy() in os.sched_getaffinity(0)
