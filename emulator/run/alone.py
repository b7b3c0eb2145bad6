"""One run at a time: two that share the processors disturb each other's timing."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from emulator import naming
from emulator.ownership import Owned, living
from topologies.errors import MachineError

FLAG = "--alongside"
LOCK = "live.lock"


@contextmanager
def alone(what: str, alongside: bool = False) -> Iterator[None]:
    """No other run, bench or fabric of ours is under way on this machine during the block.

    Args:
        what: what is about to start, for the message of the next one: ``run``, ``bench``.
        alongside: the user accepts others.

    Raises:
        MachineError: something is under way; the text names it.
    """
    with _lock_file() as lock:
        held = _try_lock(lock)
        others = living(but=os.getpid())
        if not alongside and (others or not held):
            raise MachineError(_refusal(others, lock))
        if held:
            lock.truncate(0)
            lock.write(f"{what} (process {os.getpid()})")
            lock.flush()
        yield


def _lock_file() -> TextIO:
    path = naming.STATE_FOLDER / LOCK
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Not "w": what another process wrote about itself must stay.
        return path.open("a+")
    except OSError as error:
        raise MachineError(f"{path} cannot be written ({error.strerror})") from error


def _try_lock(lock: TextIO) -> bool:
    """Whether the lock was free; it is given back when the file is closed, or by our death."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _refusal(others: list[Owned], lock: TextIO) -> str:
    lock.seek(0)
    end = "wait for its end"
    if others:
        first = others[0]
        names = ", ".join(f"{it.what} {it.run_id} (process {it.owner[0]})" for it in others)
        end += f" or end it (fabriclab clean --force {first.run_id})"
    else:
        names = lock.read() or "another fabriclab"
    return (
        f"{names} is under way, and two at once disturb each other's timing; "
        f"{end}, or start with {FLAG}"
    )
