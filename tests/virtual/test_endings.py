"""Runs that do not come to their end: a message, evidence, and nothing that is left."""

from __future__ import annotations

import functools
import io
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from emulator.clock.virtual import control, launch
from emulator.results.reader import RunReader
from emulator.run.progress import Progress
from emulator.run.supervising import Interrupt
from emulator.spec.load import assemble
from emulator.spec.yamlfile import parse
from tests.virtual.commands import Started, await_end_of, command, environment, finished, started
from topologies.errors import MachineError

pytestmark = pytest.mark.guest

LONG = """
name: long
fabric: {kind: leaf-spine, leaves: 2, spines: 2, hosts_per_leaf: 2}
workloads:
  - {kind: background, name: bulk, pattern: permutation, bytes: 10 GB, class: 3}
shrink: 1
"""
SHORT = """
name: short
fabric: {kind: leaf-spine, leaves: 1, spines: 0, hosts_per_leaf: 2}
workloads:
  - {kind: background, name: bulk, pattern: permutation, bytes: 20 MB, class: 3}
probes: {rate: 2000000 /s, classes: [3]}
clock: virtual
shrink: 1
"""
MIB = 1 << 20


@pytest.fixture
def sending(tmp_path: Path) -> Iterator[Started]:
    """A run that would take minutes and is sending by now."""
    with started(LONG, tmp_path) as run:
        run.await_step("flows")
        yield run


def test_a_killed_guest_ends_the_run_with_evidence(sending: Started) -> None:
    """Exit code 2, the signal's name, what was written until then; no process, no folder."""
    family = sending.family()
    assert len(family) > 1
    os.kill(sending.guest(), signal.SIGKILL)
    assert sending.process.wait(60) == 2
    error = sending.said().splitlines()[-1]
    console = sending.folder() / "logs" / "console.log"
    assert "the guest was gone before the run was done: it was ended by SIGKILL" in error
    assert str(console) in error
    assert "sending" in console.read_text()
    reader = RunReader.open(sending.folder(), allow_incomplete=True)
    assert not reader.complete
    assert reader.manifest["depends_on"]["clock"] == "virtual"
    await_end_of(family)
    assert list(sending.temporary.iterdir()) == []


def test_ctrl_c_ends_in_order_with_results(sending: Started) -> None:
    """Exit code 130, a summary that says so, a report; no process, no folder."""
    family = sending.family()
    sending.process.send_signal(signal.SIGINT)
    assert sending.process.wait(120) == 130
    summary = json.loads((sending.folder() / "summary.json").read_text())
    assert summary["verdict"] == "INVALID"
    assert any("ended early by SIGINT" in reason for reason in summary["reasons"])
    assert summary["fidelity"]["unaccounted_packets"] == 0
    assert summary["packets"]["sent"] > 0
    assert (sending.folder() / "report.html").stat().st_size > 0
    await_end_of(family)
    assert list(sending.temporary.iterdir()) == []


def test_a_guest_dies_with_its_host(sending: Started, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed without a chance to clean up: one folder is left, which the next run removes."""
    family = sending.family()
    sending.process.kill()
    sending.process.wait()
    await_end_of(family)
    (left,) = sending.temporary.iterdir()
    monkeypatch.setattr(control.tempfile, "tempdir", str(sending.temporary))
    assert control.remove_stale() == [left]
    assert list(sending.temporary.iterdir()) == []


def failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, memory_bytes: int) -> str:
    """What is said about a guest with so much memory; nothing of it is left."""
    spec = functools.partial(launch.GuestSpec, memory_bytes=memory_bytes)
    monkeypatch.setattr(launch, "GuestSpec", spec)
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setattr(control.tempfile, "tempdir", str(temporary))
    experiment = assemble(parse(SHORT, "short.yaml"), tmp_path / "short.yaml")
    quiet = Progress(io.StringIO())
    with pytest.raises(MachineError) as caught:
        launch.run(experiment, "", tmp_path / "results", quiet, Interrupt())
    assert list(temporary.iterdir()) == []
    (folder,) = (tmp_path / "results").iterdir()
    assert (folder / "logs" / "console.log").stat().st_size > 0
    assert str(folder / "logs" / "console.log") in str(caught.value)
    return str(caught.value)


def test_a_guest_that_runs_out_of_memory_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In its own last words: whatever process 1 is refused, the guest ends with it, at once."""
    monkeypatch.setattr(launch, "SILENCE_S", 60.0)
    text = failure(tmp_path, monkeypatch, 32 * MIB)
    assert "the guest was gone before the run was done: it was ended by SIGABRT" in text
    assert "memory" in text.partition("SIGABRT")[2].lower()
    assert "Kernel panic" in text


def test_a_guest_that_has_too_little_memory_to_go_on_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It reads its programs from the host again and again, and would for ever."""
    monkeypatch.setattr(launch, "SILENCE_S", 5.0)
    text = failure(tmp_path, monkeypatch, 128 * MIB)
    assert "did not answer any more and was ended, short of memory?" in text


def on_small_disk(folder: Path, size: str, *words: str) -> list[str]:
    """A command in whose view a folder is a file system of its own, of this size."""
    mount = f'mount -t tmpfs -o size={size} none "$0" && exec "$@"'
    return ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", mount, str(folder),
            *words]  # fmt: skip


@pytest.fixture
def small_disk(tmp_path: Path) -> Path:
    """A folder that can be made a small file system; skipped where users may not mount."""
    folder = tmp_path / "results"
    folder.mkdir()
    if shutil.which("unshare") is None:
        pytest.skip("needs unshare")
    tried = subprocess.run(
        on_small_disk(folder, "1m", "true"), check=False, capture_output=True, text=True
    )
    if tried.returncode:
        pytest.skip(f"needs user namespaces that may mount ({tried.stderr.strip()})")
    return folder


def test_a_disk_that_gets_full_makes_the_run_invalid(small_disk: Path, tmp_path: Path) -> None:
    """The run ends; its verdict says which rows are missing; exit code 1."""
    (tmp_path / "x.yaml").write_text(SHORT)
    words = command("run", str(tmp_path / "x.yaml"), "--results", str(small_disk), "--quiet")
    done = finished(on_small_disk(small_disk, "600k", *words), tmp_path, environment())
    assert done.returncode == 1, done.stderr
    assert "INVALID" in done.stdout
    assert "the disk is full: probes.csv in " in done.stdout
    assert "rows of probes.csv" in done.stdout


def test_a_disk_that_is_full_from_the_start_is_an_error(small_disk: Path, tmp_path: Path) -> None:
    """Exit code 2, and one line that names the folder of the host."""
    (tmp_path / "x.yaml").write_text(SHORT)
    words = command("run", str(tmp_path / "x.yaml"), "--results", str(small_disk), "--quiet")
    done = finished(on_small_disk(small_disk, "64k", *words), tmp_path, environment())
    assert done.returncode == 2
    (error,) = done.stderr.splitlines()
    assert f"{small_disk}/short-" in error
    assert "no results can be written: the disk is full" in error
