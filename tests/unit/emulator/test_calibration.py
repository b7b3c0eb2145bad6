"""The capacity of a machine: kept, and measured again when something that matters has changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from emulator import calibration
from emulator.dataplane import compiling
from emulator.ownership import Owned
from emulator.run.traffic import route_of
from tests.fakes.machine import FakeMachine, child


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder, and nothing of ours that runs."""
    FakeMachine(tmp_path / "machine", monkeypatch)
    monkeypatch.setenv("FABRICLAB_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def measure_as(monkeypatch: pytest.MonkeyPatch, *rates: float) -> list[float]:
    """Measuring gives these, one after the other; returns those that are left."""
    left = list(rates)
    monkeypatch.setattr(calibration, "measure", lambda: left.pop(0))
    return left


def test_an_unknown_machine_is_measured_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second time it is known, and nothing is said."""
    left = measure_as(monkeypatch, 21_000.4, 99.0)
    notes: list[str] = []
    assert calibration.cached() is None
    assert calibration.capacity_pps(notes.append) == 21_000
    assert len(notes) == 2
    assert "21,000 data packets/s" in notes[1]
    assert calibration.capacity_pps(notes.append) == 21_000
    assert calibration.cached() == 21_000
    assert (len(notes), left) == (2, [99.0])


def test_another_data_plane_is_measured_anew(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Its program decides how much a packet costs."""
    measure_as(monkeypatch, 20_000, 30_000)
    calibration.capacity_pps()
    changed = tmp_path / "mmu.bpf.c"
    changed.write_bytes(compiling.SOURCE.read_bytes() + b"\n")
    monkeypatch.setattr(calibration, "SOURCE", changed)
    assert calibration.cached() is None
    assert calibration.capacity_pps() == 30_000


@pytest.mark.parametrize("text", ["", "{", "{}", "[]", '{"data_packets_per_s": "many"}'])
def test_a_damaged_note_counts_for_nothing(
    cache: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    """It is measured again."""
    measure_as(monkeypatch, 20_000, 30_000)
    calibration.capacity_pps()
    (file,) = cache.iterdir()
    file.write_text(text)
    assert calibration.cached() is None
    assert calibration.capacity_pps() == 30_000


def test_what_was_measured_beside_another_run_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would be too low for ever; the run at hand uses it."""
    machine = FakeMachine(tmp_path / "busy", monkeypatch)
    measure_as(monkeypatch, 9_000)
    notes: list[str] = []
    with child() as owner:
        machine.add(Owned("aaa111", owner))
        assert calibration.capacity_pps(notes.append) == 9_000
    assert calibration.cached() is None
    assert any("not kept" in note for note in notes)


def test_a_full_disk_does_not_keep_a_run_from_starting(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What cannot be kept is used, said, and measured again the next time."""
    measure_as(monkeypatch, 20_000)
    notes: list[str] = []

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as disk:
        disk.setattr(Path, "write_text", full)
        assert calibration.capacity_pps(notes.append) == 20_000
    assert any("cannot be written (No space left on device)" in note for note in notes)
    assert list(cache.iterdir()) == []


def test_what_is_driven_uses_paths_that_do_not_meet() -> None:
    """Every host sends and receives one flow, and no link carries two in one direction."""
    chosen = calibration.experiment()
    route, used = route_of(chosen), []
    for n in range(1, 9):
        dst = f"h{(n + 3) % 8 + 1}"
        at = f"h{n}"
        for link in route(f"h{n}", dst, 1, 0xC000):
            used.append((link.id, at))
            at = link.b if link.a == at else link.a
        assert at == dst
    assert len(set(used)) == len(used) == 8 * 4
