"""Waiting for conditions instead of sleeping for guesses."""

from __future__ import annotations

import time
from collections.abc import Callable

from topologies.errors import MachineError


def wait_for(condition: Callable[[], object], patience_s: float, what: str) -> None:
    """Returns when the condition holds; raises MachineError when it does not in time."""
    deadline = time.monotonic() + patience_s
    pause = 0.001
    while not condition():
        if time.monotonic() > deadline:
            raise MachineError(f"waited {patience_s:g} s for {what} in vain")
        time.sleep(pause)
        pause = min(pause * 1.5, 0.05)
