"""How busy a machine is, and what it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from emulator.run import machine
from emulator.run.machine import IdleMeter


@pytest.fixture
def stat(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file in place of /proc/stat."""
    file = tmp_path / "stat"
    monkeypatch.setattr(machine, "_STAT", file)
    return file


class Seconds:
    """The clock of this test, and the ticks that it writes down."""

    def __init__(self, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._file, self.now_s = file, 0.0
        self._busy = self._idle = 0
        monkeypatch.setattr(machine, "time", self)
        self.passes(0, 0, 0)

    def monotonic(self) -> float:
        """Now."""
        return self.now_s

    def passes(self, seconds: float, busy: int, idle: int) -> None:
        """Time passes with so many ticks of each kind, half of the idle ones waiting for disks."""
        self.now_s += seconds
        self._busy += busy
        self._idle += idle
        wait = self._idle // 2
        fields = [self._busy, 0, 0, self._idle - wait, wait, 0, 0, 0, 77, 88]
        self._file.write_text(f"cpu  {' '.join(map(str, fields))}\ncpu0 1 2 3\n")


def test_the_least_idle_second_counts(stat: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shares of the seconds, not of the whole; guests' time is in user time already."""
    clock = Seconds(stat, monkeypatch)
    meter = IdleMeter()
    for busy, idle in ((100, 100), (180, 20), (0, 200)):
        clock.passes(1.1, busy, idle)
        meter.look()
    assert meter.shares == [0.5, 0.1, 1.0]
    assert meter.least == 0.1


def test_looking_often_measures_once_a_second(stat: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Short spans would say nothing."""
    clock = Seconds(stat, monkeypatch)
    meter = IdleMeter()
    for _ in range(25):
        clock.passes(0.1, 10, 10)
        meter.look()
    assert len(meter.shares) == 2


def test_less_than_a_second_says_nothing(stat: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """None, not 0."""
    clock = Seconds(stat, monkeypatch)
    meter = IdleMeter()
    clock.passes(0.9, 100, 0)
    meter.look()
    assert meter.least is None


def test_a_counter_that_stands_still_says_nothing(
    stat: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No division by 0 where the kernel does not account."""
    clock = Seconds(stat, monkeypatch)
    meter = IdleMeter()
    clock.passes(2, 0, 0)
    meter.look()
    assert meter.least is None


def test_the_real_counters_can_be_read() -> None:
    """On the machine at hand."""
    idle, total = machine._times()
    assert 0 <= idle <= total


def test_the_machine_is_described() -> None:
    """By what results depend on."""
    found = machine.description()
    assert found["processor"]
    assert isinstance(found["processors"], int)
    assert isinstance(found["memory_bytes"], int)
    assert found["memory_bytes"] > 1 << 20
