"""Forked helpers of a run: they share its memory, keep its priority, and never outlive it."""

from __future__ import annotations

import gc
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path

from emulator.kernel import netns
from emulator.kernel.process import die_with_parent

Stop = Callable[[], bool]


class Forked:
    """A child process that runs one function until it returns or is told to stop.

    Args:
        name: what it is, for messages.
        work: gets a callable that says when to stop.
        log: file for its output and traceback.
        netns_fd: namespace that it works in.
    """

    def __init__(
        self, name: str, work: Callable[[Stop], None], log: Path, netns_fd: int | None = None
    ) -> None:
        self.name = name
        self._status: int | None = None
        sys.stdout.flush()
        sys.stderr.flush()
        before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTERM, signal.SIGINT))
        parent = os.getpid()
        try:
            self.pid = os.fork()
            if self.pid == 0:
                os._exit(_run(work, log, netns_fd, parent, before))
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def poll(self) -> int | None:
        """Exit code, None while it runs; negative = ended by that signal."""
        if self._status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self._status = os.waitstatus_to_exitcode(status)
        return self._status

    def ask_to_stop(self) -> None:
        """It ends in order, soon."""
        if self.poll() is None:
            os.kill(self.pid, signal.SIGTERM)

    def kill(self) -> None:
        """It ends now."""
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)
            _, status = os.waitpid(self.pid, 0)
            self._status = os.waitstatus_to_exitcode(status)


def _run(
    work: Callable[[Stop], None],
    log: Path,
    netns_fd: int | None,
    parent: int,
    mask: Iterable[int],
) -> int:
    """The child's life; returns its exit code. Signals wait until it can handle them."""
    stopping = False

    def stop(_signal: int, _frame: object) -> None:
        nonlocal stopping
        stopping = True

    try:
        die_with_parent()
        if os.getppid() != parent:  # it died before that took effect
            return 1
        signal.signal(signal.SIGTERM, stop)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        _redirect(log)
        if netns_fd is not None:
            netns.join(netns_fd)
        gc.freeze()
        gc.disable()
        work(lambda: stopping)
    except BaseException:  # noqa: BLE001 - the log is all that is left of a child's error
        traceback.print_exc()
        return 1
    return 0


def _redirect(log: Path) -> None:
    """All output goes to a file, line by line, whatever the parent's streams are."""
    with log.open("ab", buffering=0) as output:
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
    sys.stdout = sys.stderr = os.fdopen(1, "w", buffering=1, closefd=False)
