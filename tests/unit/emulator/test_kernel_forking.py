"""Forked helpers and spawned programs: their ends, their logs, and that none is left over."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from emulator.kernel import process
from emulator.kernel.forking import Forked, Stop
from emulator.waiting import wait_for
from topologies.errors import MachineError

PATIENCE_S = 20.0


def ended(child: Forked) -> int:
    """Its exit code, once it has ended."""
    wait_for(lambda: child.poll() is not None, PATIENCE_S, f"{child.name} to end")
    code = child.poll()
    assert code is not None
    return code


def test_a_child_that_returns_has_succeeded(tmp_path: Path) -> None:
    """What it printed is in its log, although nobody read it meanwhile."""

    def work(_stop: Stop) -> None:
        print("said")  # noqa: T201
        (tmp_path / "done").write_text(str(os.getppid()))

    child = Forked("worker", work, tmp_path / "log")
    assert ended(child) == 0
    assert (tmp_path / "done").read_text() == str(os.getpid())
    assert (tmp_path / "log").read_text() == "said\n"
    assert child.poll() == 0


def test_a_child_that_fails_leaves_its_traceback(tmp_path: Path) -> None:
    """In its log, behind what earlier children left there."""
    log = tmp_path / "log"
    log.write_text("earlier\n")

    def work(_stop: Stop) -> None:
        raise RuntimeError("the reason")

    assert ended(Forked("worker", work, log)) == 1
    text = log.read_text()
    assert text.startswith("earlier\n")
    assert "RuntimeError: the reason" in text


def run_until_stopped(ready: Path) -> Callable[[Stop], None]:
    """Work that says when it has begun and lasts until it is told to stop."""

    def work(should_stop: Stop) -> None:
        ready.touch()
        while not should_stop():
            time.sleep(0.001)

    return work


def test_a_child_can_be_asked_to_stop(tmp_path: Path) -> None:
    """It ends in order; Ctrl-C on the terminal is the parent's business."""
    child = Forked("worker", run_until_stopped(tmp_path / "ready"), tmp_path / "log")
    wait_for((tmp_path / "ready").exists, PATIENCE_S, "the worker")
    os.kill(child.pid, signal.SIGINT)
    assert child.poll() is None
    child.ask_to_stop()
    assert ended(child) == 0
    child.ask_to_stop()


def test_a_child_can_be_asked_to_stop_before_it_has_begun(tmp_path: Path) -> None:
    """The request waits for it, whatever the parent does with such signals."""
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        child = Forked("worker", run_until_stopped(tmp_path / "ready"), tmp_path / "log")
        child.ask_to_stop()
        assert ended(child) == 0
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_child_can_be_killed(tmp_path: Path) -> None:
    """At once, and waited for; a second time does nothing."""
    child = Forked("worker", run_until_stopped(tmp_path / "ready"), tmp_path / "log")
    child.kill()
    assert child.poll() == -signal.SIGKILL
    child.kill()
    assert process.start_time(child.pid) is None


def test_a_program_s_output_goes_to_its_log(tmp_path: Path) -> None:
    """Both streams, appended; its input is empty."""
    script = "import sys; print('out'); print('err', file=sys.stderr); print(sys.stdin.read())"
    log = tmp_path / "log"
    for _ in range(2):
        child = process.spawn([sys.executable, "-u", "-c", script], log=log)
        assert child.wait(PATIENCE_S) == 0
    assert sorted(log.read_text().split()) == ["err", "err", "out", "out"]


def test_a_program_gets_our_environment_and_more(tmp_path: Path) -> None:
    """What is given is added to what there is."""
    child = process.spawn(
        ["sh", "-c", 'echo "$PATH-$EXTRA"'], log=tmp_path / "log", env={"EXTRA": "more"}
    )
    child.wait(PATIENCE_S)
    assert (tmp_path / "log").read_text() == f"{os.environ['PATH']}-more\n"


def test_stopping_asks_first(tmp_path: Path) -> None:
    """SIGTERM, and its handler has time to end in order."""
    script = "trap 'echo bye; exit 3' TERM; echo ready; while :; do sleep 0.01; done"
    log = tmp_path / "log"
    child = process.spawn(["sh", "-c", script], log=log)
    wait_for(lambda: "ready" in log.read_text(), PATIENCE_S, "the program")
    process.stop(child, PATIENCE_S)
    assert child.returncode == 3
    assert log.read_text() == "ready\nbye\n"


def test_stopping_insists_in_the_end(tmp_path: Path) -> None:
    """SIGKILL to what does not listen."""
    log = tmp_path / "log"
    script = "trap '' TERM; echo ready; while :; do sleep 0.01; done"
    child = process.spawn(["sh", "-c", script], log=log)
    wait_for(lambda: "ready" in log.read_text(), PATIENCE_S, "the program")
    process.stop(child, patience_s=0.05)
    assert child.returncode == -signal.SIGKILL


def test_a_program_does_not_outlive_its_parent(tmp_path: Path) -> None:
    """Even when the parent is killed and can do nothing about it."""
    script = (
        "import sys, time; sys.path.insert(0, sys.argv[1])\n"
        "from emulator.kernel.process import spawn\n"
        "print(spawn(['sleep', '1000']).pid, flush=True)\n"
        "time.sleep(1000)\n"
    )
    root = str(Path(process.__file__).resolve().parents[2])
    with subprocess.Popen([sys.executable, "-c", script, root], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        started = process.start_time(pid)
        assert started is not None
        parent.kill()
    wait_for(lambda: not process.is_alive(pid, started), PATIENCE_S, "the grandchild to end")


def test_a_process_is_known_by_number_and_start_time() -> None:
    """This one lives; another start time is another process."""
    started = process.start_time(os.getpid())
    assert started is not None
    assert started.isdigit()
    assert process.is_alive(os.getpid(), started)
    assert not process.is_alive(os.getpid(), started + "1")
    assert not process.kill_and_wait(os.getpid(), started + "1")


def test_a_name_with_brackets_does_not_confuse(tmp_path: Path) -> None:
    """The kernel puts the program's name in brackets, which may themselves be in it."""
    program = tmp_path / "a) b (c"
    program.symlink_to("/bin/sleep")
    with subprocess.Popen([str(program), "1000"]) as child:
        wait_for(lambda: process.start_time(child.pid), PATIENCE_S, "the program")
        started = process.start_time(child.pid)
        assert started is not None
        assert started.isdigit()
        assert process.kill_and_wait(child.pid, started)


def test_waiting_ends_with_the_condition() -> None:
    """It is looked at once more after the last pause."""
    looks = iter([False, False, True])
    wait_for(lambda: next(looks), PATIENCE_S, "it")
    assert next(looks, None) is None


def test_waiting_in_vain_says_for_what() -> None:
    """With how long it took."""
    with pytest.raises(MachineError, match=r"waited 0\.01 s for the moon in vain"):
        wait_for(lambda: False, 0.01, "the moon")
