"""The scratch folder of a build and the programs that work in it; nothing of either stays behind.

One workshop at a time in a cache folder. Whatever an earlier one that was killed has left there is
removed by the next.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TextIO

from emulator.caching import cache_folder
from emulator.kernel.process import die_with_parent
from topologies.errors import MachineError

PREFIX = "building-"
LOG, LOCK = "kernel-build.log", "kernel.lock"
_PATIENCE_S = 5.0
FULL = ("No space left on device", "Disk quota exceeded")
_ERROR = re.compile(r"^tar: |\berror: |undefined reference|\berror\b.*:|: not found$|\*\*\* ")


def _ignore(_line: str) -> None:
    """Nobody wants to know."""


class Workshop:
    """A scratch folder, and one program at a time in it.

    Args:
        cache: the folder that it is made in, so that what is done can be renamed into it.

    Attributes:
        folder: the scratch folder; there from entering to leaving.
        log: what all programs printed, kept.
    """

    def __init__(self, cache: Path) -> None:
        self._cache = cache
        self._process: subprocess.Popen[str] | None = None
        self.log = cache / LOG
        self.folder = cache

    def __enter__(self) -> Workshop:
        sweep(self._cache)
        self.folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=self._cache))
        self.log.write_text("")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def run(
        self,
        what: str,
        command: Sequence[str],
        folder: Path | None = None,
        env: Mapping[str, str] | None = None,
        on_line: Callable[[str], None] = _ignore,
    ) -> None:
        """Runs a program to its end.

        Args:
            what: what it does, for people: "compiling".
            command: program and arguments.
            folder: where it runs; the scratch folder when None.
            env: beside a plain environment: none of the user's settings for compilers gets in.
            on_line: called with each line that it prints.

        Raises:
            MachineError: it failed; the text has the first error that it printed.
        """
        with self.log.open("a", encoding="utf-8", errors="replace") as log:
            print(f"== {what}: {' '.join(command)}", file=log, flush=True)
            begin = log.tell()
            process = self._process = self._spawn(command, folder or self.folder, env or {})
            for line in process.stdout or ():
                log.write(line)
                on_line(line.rstrip())
        with process:  # closes its output and waits
            self._process = None
        if process.returncode:
            with self.log.open(encoding="utf-8", errors="replace") as log:
                log.seek(begin)
                raise failed(what, log.read(), self.log)

    def _spawn(
        self, command: Sequence[str], folder: Path, env: Mapping[str, str]
    ) -> subprocess.Popen[str]:
        plain = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}

        def prepare() -> None:
            die_with_parent()
            os.setpgrp()

        return subprocess.Popen(
            list(command),
            cwd=folder,
            env={**plain, "LC_ALL": "C", "TMPDIR": str(self.folder), **env},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            preexec_fn=prepare,  # noqa: PLW1509 - the child is single-threaded before exec
        )

    def _stop(self) -> None:
        """Ends the program and all that it started, and waits until nothing of it writes."""
        process = self._process
        if process is None:
            return
        if process.poll() is None:
            _signal(process.pid, signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_PATIENCE_S)
        _signal(process.pid, signal.SIGKILL)
        with process:
            if process.stdout:
                process.stdout.read()


def _signal(group: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, number)


def failed(what: str, text: str, log: Path) -> MachineError:
    """The error for people: the reason, and where all of it is."""
    if any(sign in text for sign in FULL):
        return disk_full(log.parent)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    last = lines[-1] if lines else "it said nothing"
    reason = next((line for line in lines if _ERROR.search(line)), last)
    return MachineError(f"{what} failed: {reason} (all of it is in {log})")


def disk_full(cache: Path) -> MachineError:
    """The error for people when there is no room."""
    hint = "make room, or name another folder in FABRICLAB_CACHE"
    return MachineError(f"the disk of {cache} is full; {hint}; nothing of the build was left there")


def sweep(cache: Path) -> list[Path]:
    """Removes scratch folders of builds that were killed; only while no build is under way."""
    found = [path for path in cache.glob(f"{PREFIX}*") if path.is_dir()]
    for path in found:
        shutil.rmtree(path, ignore_errors=True)
    return found


def clear() -> list[Path]:
    """Removes all that builds leave beside a kernel; only while none is under way."""
    cache = cache_folder()
    log = cache / LOG
    found = [log] if log.exists() else []
    log.unlink(missing_ok=True)
    return [*sweep(cache), *found]


@contextlib.contextmanager
def alone(on_wait: Callable[[str], None] | None) -> Iterator[None]:
    """Nobody else builds or removes a kernel of this cache folder during the block.

    Args:
        on_wait: called with a text before waiting for another; None = refuse instead.

    Raises:
        MachineError: another is at it and waiting is not wanted, or the folder is not writable.
    """
    with _lock_file() as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            other = f"another build of the kernel is under way ({lock.read() or 'unknown'})"
            if on_wait is None:
                raise MachineError(f"{other}; wait for its end") from None
            on_wait(f"{other}; waiting for its end")
            fcntl.flock(lock, fcntl.LOCK_EX)
        lock.truncate(0)
        lock.write(f"process {os.getpid()}")
        lock.flush()
        yield


def _lock_file() -> TextIO:
    path = cache_folder() / LOCK
    try:
        # Not "w": what another process wrote about itself must stay.
        return path.open("a+", encoding="utf-8")
    except OSError as error:
        hint = "name another folder in FABRICLAB_CACHE"
        raise MachineError(f"{path} cannot be written ({error.strerror}); {hint}") from error
