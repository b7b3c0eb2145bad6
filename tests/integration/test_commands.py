"""Commands on the real machine: a fabric by hand, its end by any death, doctor, bench."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from emulator import doctor, ownership
from emulator.bench import frames, setting, startup
from emulator.bench.setting import Setting
from emulator.kernel import netns
from emulator.kernel.inhabitants import inhabitants
from emulator.kernel.process import is_alive, start_time
from emulator.waiting import wait_for

pytestmark = pytest.mark.root

ROOT = Path(__file__).resolve().parents[2]
EXPERIMENT = """
name: by-hand
fabric: {kind: leaf-spine, leaves: 2, spines: 1, hosts_per_leaf: 1}
workloads: [{kind: background, name: x, pattern: pairs, bytes: 1 MB}]
dilation: 1000
"""
_LIMITS = ("net/core/wmem_max", "net/core/rmem_max", "net/core/wmem_default", "fs/file-max")


def _command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "emulator.cli", *arguments]


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.run(
        _command(*arguments), cwd=ROOT, check=False, capture_output=True, text=True, env=env
    )


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A small experiment."""
    path = tmp_path / "by-hand.yaml"
    path.write_text(EXPERIMENT)
    return path


def _unowned() -> set[str]:
    """Namespaces of ours that belong to nothing that lives."""
    names = {path.name for path in netns.FOLDER.glob("fl-*")}
    return names - {name for owned in ownership.living() for name in owned.namespaces}


def _mine(pid: int) -> ownership.Owned | None:
    return next((owned for owned in ownership.all_owned() if owned.owner[0] == pid), None)


def test_a_fabric_by_hand_works_and_goes_with_all_that_was_started_in_it(file: Path) -> None:
    """Ping and code 1 for what failed; a server left in a host does not outlive the fabric."""
    before = _unowned()
    commands = ("h1 ping -c1 -W2 h2", "h2 setsid cat /dev/zero > /dev/null & echo $!", "h1 exit 7")
    extra = [part for text in commands for part in ("--exec", text)]
    done = _run("topo", str(file), "--up", "--alongside", "--quiet", *extra)
    assert done.returncode == 1, done.stderr
    assert "1 received, 0% packet loss" in done.stdout
    assert done.stderr == "fabriclab: h1 exit 7: exit code 7\n"
    left_behind = int(done.stdout.split()[-1])
    assert not is_alive(left_behind, start_time(left_behind) or "")
    assert _unowned() <= before


@pytest.fixture
def standing(file: Path, tmp_path: Path) -> Iterator[ownership.Owned]:
    """A fabric in which a command runs, without an end."""
    command = _command("topo", str(file), "--up", "--alongside", "--exec", "h1 cat /dev/zero >&2")
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    log = tmp_path / "log"
    with (
        log.open("wb") as output,
        subprocess.Popen(
            command, cwd=ROOT, env=env, stdout=subprocess.DEVNULL, stderr=output
        ) as process,
    ):
        wait_for(lambda: log.stat().st_size > 1 << 20, 60, "the command to run")
        owned = _mine(process.pid)
        assert owned is not None
        yield owned
        process.kill()
    ownership.release(owned)


def test_a_run_is_refused_beside_it(standing: ownership.Owned, file: Path, tmp_path: Path) -> None:
    """One line that names it, code 2, no run folder; clean leaves it alone."""
    done = _run("run", str(file), "--results", str(tmp_path / "results"))
    assert done.returncode == 2
    assert standing.run_id in done.stderr
    assert not (tmp_path / "results").exists()
    cleaned = _run("clean")
    assert f"kept: topo {standing.run_id} is under way" in cleaned.stderr
    assert ownership.is_running(standing)


def test_clean_after_sigkill_ends_what_lives_in_our_namespaces(standing: ownership.Owned) -> None:
    """A command in a host outlives a killed emulator, until `clean`."""
    hosts = [name for name in standing.namespaces if name.endswith("-h1")]
    orphans = inhabitants(hosts)
    assert orphans
    os.kill(standing.owner[0], 9)
    wait_for(lambda: not ownership.is_running(standing), 10, "its death")
    assert any(is_alive(*orphan) for orphan in orphans)
    cleaned = _run("clean")
    assert cleaned.returncode == 0, cleaned.stderr
    assert not any(is_alive(*orphan) for orphan in orphans)
    assert not list(netns.FOLDER.glob(f"*{standing.run_id}*"))


def test_force_ends_a_living_one_in_order(standing: ownership.Owned) -> None:
    """The owner is asked, takes its fabric away itself, and nothing is left."""
    cleaned = _run("clean", "--force", standing.run_id)
    assert cleaned.returncode == 0, cleaned.stderr
    assert not ownership.is_running(standing)
    assert not list(netns.FOLDER.glob(f"*{standing.run_id}*"))


def test_this_machine_can_run() -> None:
    """Root tests run where doctor says yes, and doctor leaves no trace."""
    done = _run("doctor", "--json")
    assert done.returncode == 0, done.stdout
    found = json.loads(done.stdout)
    assert found["ready"]
    works = {finding["what"] for finding in found["findings"] if finding["state"] == doctor.OK}
    assert {"eBPF data plane", "HTB", "clsact", "eBPF filters", "veth"} <= works
    assert not list(netns.FOLDER.glob("fl-probe-*"))


def test_the_engine_outruns_scapy(tmp_path: Path) -> None:
    """The ratio that the issue asks for, with a wide margin on any machine."""
    found = frames.measure(Setting(tmp_path, doctor.datapath(), lambda _text: None))
    assert [row.what for row in found if row.met is False] == []


def test_stock_mininet_leaves_the_machine_alone(tmp_path: Path) -> None:
    """It starts and ends on an Open vSwitch of the bench's own; limits and links stay."""
    settings = [Path("/proc/sys", name).read_text() for name in _LIMITS]
    links = Path("/proc/net/dev").read_text().count(":")
    fabric = startup.make_fabric(leaves=2, spines=1, hosts=2)
    ready_s, gone_s = startup.mininet_s(fabric, tmp_path)
    assert ready_s > 0
    assert gone_s > 0
    assert [Path("/proc/sys", name).read_text() for name in _LIMITS] == settings
    assert Path("/proc/net/dev").read_text().count(":") == links
    assert not [owned for owned in ownership.all_owned() if owned.what == setting.WHAT
                and owned.owner[0] == os.getpid()]  # fmt: skip
