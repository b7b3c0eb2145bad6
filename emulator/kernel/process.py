"""Child processes that cannot outlive the run: started in a namespace, ended with their parent."""

from __future__ import annotations

import contextlib
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

    with Path(log or os.devnull).open("ab") as output:
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


_STATE, _START_TIME = 0, 19
_DEAD = ("Z", "X")


def _stat(pid: int) -> list[str]:
    """Fields of a process after its name (proc(5)); empty when there is no such process."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return []
    return text.rpartition(")")[2].split()


def start_time(pid: int) -> str | None:
    """The kernel's start time of a process, which tells it from a later one of the same number."""
    fields = _stat(pid)
    return fields[_START_TIME] if fields else None


def is_alive(pid: int, started: str) -> bool:
    """True while the process with this number and start time runs.

    A dead one that nobody has waited for yet (a zombie) does not run any more.
    """
    fields = _stat(pid)
    return bool(fields) and fields[_STATE] not in _DEAD and fields[_START_TIME] == started


def kill_and_wait(pid: int, started: str, patience_s: float = 5.0) -> bool:
    """SIGKILL to exactly this process; True when it was there."""
    if not is_alive(pid, started):
        return False
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + patience_s
    while is_alive(pid, started) and time.monotonic() < deadline:
        time.sleep(0.005)
    return True


_TCP_LISTEN = "0A"


def is_listening(pid: int, port: int) -> bool:
    """True when something in a process's network namespace listens on a TCP port (IPv4)."""
    try:
        lines = Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]
    except OSError:
        return False
    rows = (line.split() for line in lines)
    return any(
        state == _TCP_LISTEN and local.endswith(f":{port:04X}") for _, local, _, state, *_ in rows
    )
