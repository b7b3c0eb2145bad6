"""A guest's command line and environment, and its process: started, listened to, ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from emulator.clock.virtual import machine
from emulator.clock.virtual.machine import Guest, GuestSpec
from emulator.kernel.process import is_alive, start_time
from emulator.waiting import wait_for
from topologies.errors import MachineError

ROOT = Path(__file__).resolve().parents[3]
PATIENCE_S = 30.0
SPEC = GuestSpec(
    kernel=Path("/cache/kernel-1/linux"),
    control=Path("/tmp/control"),
    seed=7,
    root=Path("/opt/fabriclab"),
    cache=Path("/cache"),
)


def test_a_guest_starts_python_on_the_hosts_files() -> None:
    """Read-only, in its own time, without randomness but that of the seed."""
    words = machine.command(SPEC, "/opt/venv/bin/python")
    assert words[0] == "/cache/kernel-1/linux"
    assert {
        "mem=2048M", "rootfstype=hostfs", "rootflags=/", "ro", "init=/opt/venv/bin/python",
        "con=null", "con0=null,fd:1", "norandmaps", "time-travel=inf-cpu",
        "uml_dir=/tmp/control/", "fabriclab_seed=7",
    } <= set(words)  # fmt: skip
    assert words[words.index("--") + 1 :] == ["-m", "emulator.clock.virtual.guest", "/tmp/control"]
    assert f"init={sys.executable}" in machine.command(SPEC)


def test_a_guest_that_ends_badly_ends_at_once() -> None:
    """Panic means exit, not a halted machine that nobody switches off."""
    assert "panic=-1" in machine.command(SPEC)


def test_two_guests_differ_by_what_they_are_started_with_alone() -> None:
    """Seed, memory, folders: each is one word of the command line."""
    other = replace(SPEC, seed=8, memory_bytes=512 << 20)
    changed = set(machine.command(SPEC)) ^ set(machine.command(other))
    assert changed == {"fabriclab_seed=7", "fabriclab_seed=8", "mem=2048M", "mem=512M"}
    assert machine.command(SPEC) == machine.command(replace(SPEC))


def test_the_environment_is_the_same_for_everybody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of the user's gets in; hashes are not random; threads are one."""
    before = machine.environment(SPEC)
    monkeypatch.setenv("PYTHONPATH", "/srv/me/lib")
    monkeypatch.setenv("PATH", "/srv/me/bin")
    monkeypatch.setenv("PYTHONHASHSEED", "99")
    monkeypatch.setenv("LC_ALL", "tr_TR.UTF-8")
    assert machine.environment(SPEC) == before
    assert before["PYTHONPATH"] == "/opt/fabriclab"
    assert before["FABRICLAB_CACHE"] == "/cache"
    assert before["PYTHONHASHSEED"] == "0"
    assert before["OPENBLAS_NUM_THREADS"] == "1"
    assert "/usr/sbin" in before["PATH"].split(":")


def test_the_environment_is_on_the_command_line_before_the_arguments() -> None:
    """What the kernel does not know becomes the first process's environment."""
    words = machine.command(SPEC)
    options = words[: words.index("--")]
    assert {f"{name}={value}" for name, value in machine.environment(SPEC).items()} <= set(options)


def test_folders_with_blanks_are_one_word_each() -> None:
    """The kernel joins its arguments and splits them again; its own option it reads as it is."""
    there = Path("/srv/me/my work")
    words = machine.command(
        replace(SPEC, root=there, cache=there, control=there), "/srv/me/my work/bin/python"
    )
    assert 'PYTHONPATH="/srv/me/my work"' in words
    assert 'FABRICLAB_CACHE="/srv/me/my work"' in words
    assert 'init="/srv/me/my work/bin/python"' in words
    assert words[-1] == '"/srv/me/my work"'
    assert "uml_dir=/srv/me/my work/" in words


def test_a_folder_with_quotes_is_refused() -> None:
    """Nothing could keep it in one piece."""
    with pytest.raises(MachineError, match="use a folder without quotes"):
        machine.command(replace(SPEC, root=Path('/srv/"me"')))


@pytest.fixture
def spec(tmp_path: Path) -> GuestSpec:
    """A guest with a control folder of its own."""
    return replace(SPEC, control=tmp_path)


def start(spec: GuestSpec, program: str, environment: dict[str, str] | None = None) -> Guest:
    """A Python program in place of a kernel."""
    words = [sys.executable, "-c", program, "mem=2048M"]
    return Guest(spec, words, max(os.sched_getaffinity(0)), environment)


def console_of(spec: GuestSpec) -> str:
    """What it has printed."""
    return (spec.control / machine.CONSOLE).read_text()


def test_what_a_guest_prints_is_in_the_consoles_file(spec: GuestSpec) -> None:
    """Both streams; it has no input; its exit code is known when it has ended."""
    guest = start(spec, "import sys; print(len(sys.stdin.read())); sys.exit('fail')")
    wait_for(lambda: guest.poll() is not None, PATIENCE_S, "its end")
    assert guest.poll() == 1
    assert sorted(console_of(spec).split()) == ["0", "fail"]


def test_a_guest_runs_on_one_processor_in_a_session_of_its_own(spec: GuestSpec) -> None:
    """And without random addresses, since these change how much memory it finds."""
    program = (
        "import os, pathlib;"
        "print(sorted(os.sched_getaffinity(0)), os.getsid(0) == os.getpid(),"
        " pathlib.Path('/proc/self/personality').read_text().strip(), os.environ['TMPDIR'])"
    )
    guest = start(spec, program, {"TMPDIR": "/var/tmp"})
    wait_for(lambda: guest.poll() is not None, PATIENCE_S, "its end")
    said = console_of(spec).split()
    assert said == [f"[{max(os.sched_getaffinity(0))}]", "True", "00040000", "/var/tmp"]


_FAMILY = """
import os, signal, sys
print(os.getpid(), flush=True)
if os.fork() == 0:
    print(os.getpid(), flush=True)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.pause()
"""


def family_of(spec: GuestSpec) -> list[tuple[int, str]]:
    """(number, start time) of a kernel and its program, once both run."""
    wait_for(lambda: console_of(spec).count("\n") == 2, PATIENCE_S, "both processes")
    return [(int(word), start_time(int(word)) or "") for word in console_of(spec).split()]


def test_killing_a_guest_ends_all_its_processes(spec: GuestSpec) -> None:
    """A kernel that is killed alone would leave its programs behind; twice does no harm."""
    guest = start(spec, _FAMILY)
    family = family_of(spec)
    assert guest.poll() is None
    guest.kill()
    assert guest.poll() == -signal.SIGKILL
    wait_for(lambda: not any(is_alive(*one) for one in family), PATIENCE_S, "their end")
    guest.kill()


def test_what_a_kernel_leaves_behind_is_ended_as_well(spec: GuestSpec) -> None:
    """It has ended by itself, its program has not."""
    guest = start(spec, _FAMILY)
    family = family_of(spec)
    os.kill(family[0][0], signal.SIGKILL)
    wait_for(lambda: guest.poll() is not None, PATIENCE_S, "the kernel's end")
    guest.kill()
    wait_for(lambda: not any(is_alive(*one) for one in family), PATIENCE_S, "their end")


_HOST = f"""
import os, signal, sys
from pathlib import Path
sys.path.insert(0, {str(ROOT)!r})
from emulator.clock.virtual.machine import Guest, GuestSpec
spec = GuestSpec(Path("x"), Path(sys.argv[1]), 1, Path("/"), Path("/"))
guest = Guest(spec, [sys.executable, "-c", "import os, signal; print(os.getpid(), flush=True);"
                     "signal.pause()"], max(os.sched_getaffinity(0)))
signal.pause()
"""


def test_a_guest_dies_with_its_host(tmp_path: Path, spec: GuestSpec) -> None:
    """However that ends: nobody would be left to end it."""
    with subprocess.Popen([sys.executable, "-c", _HOST, str(tmp_path)]) as host:
        console = tmp_path / machine.CONSOLE
        wait_for(lambda: console.exists() and console.read_text(), PATIENCE_S, "the guest")
        pid = int(console_of(spec))
        started = start_time(pid) or ""
        host.kill()
    wait_for(lambda: not is_alive(pid, started), PATIENCE_S, "the guest's end")


@pytest.mark.parametrize("kernel", ["missing", "unusable"])
def test_a_kernel_that_cannot_be_started_is_an_error(spec: GuestSpec, kernel: str) -> None:
    """It was removed in between, or its file system does not allow programs."""
    (spec.control / "unusable").write_text("")
    words = [str(spec.control / kernel)]
    with pytest.raises(OSError, match=kernel):
        Guest(spec, words, max(os.sched_getaffinity(0)))
