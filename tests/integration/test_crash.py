"""What remains when a run dies: nothing after `clean`, and nothing of others is touched."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from emulator import naming, ownership
from emulator.kernel import netns
from emulator.results.reader import RunReader
from emulator.waiting import wait_for

pytestmark = pytest.mark.root

EXPERIMENT = """
name: long
fabric: {kind: leaf-spine, leaves: 2, spines: 2, hosts_per_leaf: 2}
workloads:
  - {kind: background, name: bulk, pattern: permutation, bytes: 1 GB, class: 3}
dilation: 5000
shrink: 1
"""
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def started(tmp_path: Path) -> Any:
    """A run of minutes, started as a user would, that is sending by now."""
    file = tmp_path / "long.yaml"
    file.write_text(EXPERIMENT)
    command = [sys.executable, "-m", "emulator.cli", "run", str(file), "--alongside",
               "--results", str(tmp_path / "results")]  # fmt: skip
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log, env=_environment())
    try:
        wait_for(lambda: b"sending" in (tmp_path / "log").read_bytes(), 60, "the run to send")
        yield process, tmp_path
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        for owned in ownership.all_owned():
            if not ownership.is_running(owned):
                ownership.release(owned)


def _environment() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(ROOT)}


def _mine(folder: Path) -> ownership.Owned:
    results = str(folder / "results")
    return next(owned for owned in ownership.all_owned() if owned.results.startswith(results))


def _settings() -> list[str]:
    return [Path(f"/proc/sys/net/core/{name}_default").read_text() for name in ("rmem", "wmem")]


def test_sigkill_then_clean_leaves_nothing(started: Any) -> None:
    """The children die with the emulator; clean removes namespaces and state; settings are back."""
    process, folder = started
    owned = _mine(folder)
    children = [entry for entry in owned.processes if ownership.is_alive(*entry)]
    assert len(children) >= 4
    process.kill()
    process.wait()
    wait_for(lambda: not any(ownership.is_alive(*child) for child in children), 10, "the children")
    cleaned = subprocess.run([sys.executable, "-m", "emulator.cli", "clean"], cwd=ROOT, check=False,
                             capture_output=True, text=True, env=_environment())  # fmt: skip
    assert cleaned.returncode == 0, cleaned.stderr
    assert owned.run_id in cleaned.stdout
    assert not list(netns.FOLDER.glob(f"*{owned.run_id}*"))
    assert not naming.state_folder(owned.run_id).exists()
    assert _settings() == [value for value in _settings() if int(value) < 1 << 24]


def test_interrupt_ends_in_order_and_keeps_results(started: Any) -> None:
    """Ctrl-C: exit code 130, a summary that says so, a report, nothing left."""
    process, folder = started
    owned = _mine(folder)
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130
    summary = json.loads((Path(owned.results) / "summary.json").read_text())
    assert summary["verdict"] == "INVALID"
    assert any("SIGINT" in reason for reason in summary["reasons"])
    assert summary["fidelity"]["unaccounted_packets"] == 0
    assert (Path(owned.results) / "report.html").stat().st_size > 0
    assert not list(netns.FOLDER.glob(f"*{owned.run_id}*"))


def test_a_killed_engine_ends_the_run_with_evidence(started: Any) -> None:
    """The verdict names the death; the run folder can be read; the exit code says no."""
    process, folder = started
    owned = _mine(folder)
    engine, _ = owned.processes[-1]
    os.kill(engine, signal.SIGKILL)
    assert process.wait(60) == 1
    reader = RunReader.open(Path(owned.results))
    assert reader.summary is not None
    assert any("engine died (signal SIGKILL)" in reason for reason in reader.summary["reasons"])
    assert not list(netns.FOLDER.glob(f"*{owned.run_id}*"))
