"""Child processes that cannot outlive the run: started in a namespace, ended with their parent."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from emulator.kernel import netns

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


def die_with_parent() -> None:
    """The calling process gets SIGKILL when its parent dies."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def spawn(
    command: Sequence[str],
    *,
    netns_fd: int | None = None,
    log: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> subprocess.Popen[bytes]:
    """Starts a command in a namespace; its output goes to a file, never to an unread pipe.

    Ctrl-C on the terminal does not reach it: the run ends it in order.
    """

    def prepare() -> None:
        die_with_parent()
        os.setpgrp()
        if netns_fd is not None:
            netns.join(netns_fd)

    with open(log or os.devnull, "ab") as output:
        return subprocess.Popen(
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, **(env or {})},
            preexec_fn=prepare,  # noqa: PLW1509 - the child is single-threaded before exec
        )


def stop(process: subprocess.Popen[bytes], patience_s: float = 5.0) -> None:
    """Ends a child: asks, waits, then insists."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(patience_s)
        except subprocess.TimeoutExpired:
            process.kill()
    process.wait()


def start_time(pid: int) -> str | None:
    """The kernel's start time of a process, which tells it from a later one of the same number."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    return stat.rpartition(")")[2].split()[19]


def is_alive(pid: int, started: str) -> bool:
    """True while the process with this number and start time runs."""
    return start_time(pid) == started


def kill_and_wait(pid: int, started: str, patience_s: float = 5.0) -> bool:
    """SIGKILL to exactly this process; True when it was there."""
    if not is_alive(pid, started):
        return False
    os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + patience_s
    while is_alive(pid, started) and time.monotonic() < deadline:
        time.sleep(0.005)
    return True
