"""The command line in a process of its own, as a user starts it, and the guest below it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from emulator.kernel.process import is_alive, start_time
from emulator.waiting import wait_for

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 120.0


@dataclass(frozen=True)
class Started:
    """A run that was started.

    Attributes:
        process: the command.
        results: folder of its results.
        temporary: its folder for temporary things.
        log: what it prints as errors and progress.
    """

    process: subprocess.Popen[bytes]
    results: Path
    temporary: Path
    log: Path

    def said(self) -> str:
        """Progress and errors so far."""
        return self.log.read_text()

    def await_step(self, step: str) -> None:
        """Returns when the run has come to a step."""
        ended = self.process.poll
        wait_for(lambda: step in self.said() or ended() is not None, PATIENCE_S, step)
        assert step in self.said(), self.said()

    def family(self) -> list[tuple[int, str]]:
        """(number, start time) of the guest's kernel and of every process in its session."""
        session = self.guest()
        return [(pid, start_time(pid) or "") for pid in _processes() if _session(pid) == session]

    def guest(self) -> int:
        """Number of the kernel's process: the child that leads a session of its own."""
        mine = [pid for pid in _processes() if _parent(pid) == self.process.pid]
        (leader,) = [pid for pid in mine if _session(pid) == pid]
        return leader

    def folder(self) -> Path:
        """The one run folder."""
        (folder,) = self.results.iterdir()
        return folder


def environment(**more: str) -> dict[str, str]:
    """Ours, with the packages of this checkout."""
    return {**os.environ, "PYTHONPATH": str(ROOT), **more}


def command(*arguments: str) -> list[str]:
    """Of the command line of this checkout, or of the one in PYTHONPATH."""
    return [sys.executable, "-m", "emulator.cli", *arguments]


@contextmanager
def started(text: str, place: Path) -> Iterator[Started]:
    """A run under the virtual clock, killed at the end of the block if it is still there.

    Args:
        text: the experiment.
        place: an empty folder for all that belongs to it.
    """
    file, temporary, log = place / "x.yaml", place / "tmp", place / "log"
    file.write_text(text)
    temporary.mkdir()
    words = command("run", str(file), "--clock", "virtual", "--results", str(place / "results"))
    env = environment(TMPDIR=str(temporary))
    with log.open("wb") as output:
        process = subprocess.Popen(
            words, cwd=place, env=env, stdout=subprocess.DEVNULL, stderr=output
        )
    try:
        yield Started(process, place / "results", temporary, log)
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        process.wait()


def await_end_of(family: list[tuple[int, str]]) -> None:
    """Returns when none of these processes runs any more."""
    wait_for(lambda: not any(is_alive(*one) for one in family), PATIENCE_S, "the guest's end")


def finished(
    words: list[str], cwd: Path, env: Mapping[str, str], user: int | None = None
) -> subprocess.CompletedProcess[str]:
    """A command that has ended; as another user if one is given."""
    groups: list[int] | None = None if user is None else []
    return subprocess.run(
        words, cwd=cwd, env=env, user=user, group=user, extra_groups=groups,
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
    )  # fmt: skip


def _processes() -> list[int]:
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]


def _fields(pid: int) -> list[str]:
    """Fields of proc(5) after the name: state, parent, group, session, ..."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ["X", "0", "0", "0"]


def _parent(pid: int) -> int:
    return int(_fields(pid)[1])


def _session(pid: int) -> int:
    return int(_fields(pid)[3])
