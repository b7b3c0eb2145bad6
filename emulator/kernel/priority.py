"""Puts the processes that must be on time before all others on the machine."""

from __future__ import annotations

import contextlib
import os

REAL_TIME = "real-time"
NICE = "nice"
NORMAL = "normal"
_LEVEL = 1
URGENT = 2
"""Level of what runs shortly and must not wait for switches and NICs."""
_NICEST = -20


def raise_priority(pid: int = 0, level: int = _LEVEL) -> str:
    """Real-time scheduling for a process, or the best that this machine allows.

    A real-time process runs as soon as it wakes up, so that other programs on the machine delay
    neither the switches nor the NICs. The kernel keeps 5 % of the time for all others.

    Returns:
        ``real-time``, ``nice`` or ``normal``: what it is now.
    """
    with contextlib.suppress(OSError):
        os.sched_setscheduler(pid, os.SCHED_RR, os.sched_param(level))
        return REAL_TIME
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, pid, _NICEST)
        return NICE
    return NORMAL


def normal_priority(pid: int = 0) -> None:
    """Undoes `raise_priority`."""
    with contextlib.suppress(OSError):
        os.sched_setscheduler(pid, os.SCHED_OTHER, os.sched_param(0))
        os.setpriority(os.PRIO_PROCESS, pid, 0)
