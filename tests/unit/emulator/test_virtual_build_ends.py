"""The end of a build that is not its own: Ctrl-C, a kill, another build at the same time."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from emulator.clock.virtual import recipe, workshop
from emulator.clock.virtual.build import build
from emulator.kernel.process import start_time
from emulator.run.progress import Progress
from emulator.waiting import wait_for
from tests.fakes.kernel_source import Toolbox

ROOT = Path(__file__).resolve().parents[3]
PATIENCE_S = 30.0


@pytest.fixture
def box(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Toolbox:
    """A machine with all tools and no source."""
    return Toolbox(tmp_path, monkeypatch)


def start_build(box: Toolbox, tmp_path: Path) -> subprocess.Popen[str]:
    """A build in a process of its own that hangs in its compiler."""
    pid = tmp_path / "compiler.pid"
    box.make(compiling=f"echo $$ > {pid}.new && mv {pid}.new {pid}; sleep 1000")
    (box.bin / "mv").symlink_to(shutil.which("mv", path=os.defpath) or "/bin/mv")
    program = (
        "import os, sys; from pathlib import Path; from emulator.clock.virtual import source;"
        f"u = os.uname_result(('Linux', 'h', '1', '1', {recipe.ARCHITECTURE!r}));"
        "os.uname = lambda: u; from emulator.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    command = [sys.executable, "-c", program, "kernel", "build", "--source", str(box.tree)]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(
        command, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, process_group=0
    )
    wait_for(pid.exists, PATIENCE_S, "the compiler to start")
    return process


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_ends_a_build_in_order(box: Toolbox, tmp_path: Path, number: signal.Signals) -> None:
    """The compiler is gone, and so is the scratch folder; the exit code says interrupted."""
    with start_build(box, tmp_path) as process:
        compiler = int((tmp_path / "compiler.pid").read_text())
        assert start_time(compiler)
        process.send_signal(number)
        _, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert "interrupted" in errors
    assert start_time(compiler) is None
    assert box.left() == []


def test_what_a_killed_build_left_is_removed_by_the_next(box: Toolbox, tmp_path: Path) -> None:
    """Nothing else can: it had no time to."""
    with start_build(box, tmp_path) as process:
        compiler = int((tmp_path / "compiler.pid").read_text())
        process.kill()
        process.communicate(timeout=PATIENCE_S)
    wait_for(lambda: start_time(compiler) is None, PATIENCE_S, "the compiler to end with it")
    assert [name.startswith("building-") for name in box.left()] == [True]
    box.make()
    done, _ = build(box.tree, Progress(quiet=True))
    assert box.left() == [done.path.parent.name]


def test_a_second_build_waits_for_the_first(box: Toolbox) -> None:
    """It says for whom, and goes on when that one has ended."""
    notes: list[str] = []
    entered = threading.Event()

    def second() -> None:
        with workshop.alone(notes.append):
            entered.set()

    thread = threading.Thread(target=second)
    with workshop.alone(None):
        thread.start()
        wait_for(lambda: notes, PATIENCE_S, "the second to notice the first")
        assert not entered.is_set()
    thread.join(PATIENCE_S)
    assert entered.is_set()
    assert notes == [
        f"another build of the kernel is under way (process {os.getpid()}); waiting for its end"
    ]
