"""Model time over the host's monotonic clock, slowed down by the dilation."""

from __future__ import annotations

import ctypes
import errno
import math
import os
import time

import numpy as np
import numpy.typing as npt

_PR_SET_TIMERSLACK = 29
_TIMER_ABSTIME = 1
_NS_PER_S = 1_000_000_000
_libc = ctypes.CDLL(None, use_errno=True)


class _Timespec(ctypes.Structure):
    """A time as the kernel takes it."""

    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


def sleep_until_wall(wall_ns: int) -> None:
    """Sleeps until a monotonic time: one system call, and the clock is not read for it.

    `time.sleep` takes a duration: it needs the clock twice to make the same call.
    """
    until = _Timespec(*divmod(wall_ns, _NS_PER_S))
    code = errno.EINTR
    while code == errno.EINTR:  # signal handlers run in between
        code = _libc.clock_nanosleep(
            time.CLOCK_MONOTONIC, _TIMER_ABSTIME, ctypes.byref(until), None
        )
    if code:
        raise OSError(code, os.strerror(code))


class LiveClock:
    """Model ns since its start: (monotonic - start) / dilation.

    Args:
        dilation: wall ns per model ns.
        start_wall_ns: monotonic time of model time 0; now when None.
    """

    def __init__(self, dilation: float, start_wall_ns: int | None = None) -> None:
        self.dilation = dilation
        self.start_wall_ns = time.monotonic_ns() if start_wall_ns is None else start_wall_ns

    def now_ns(self) -> int:
        """Model time now."""
        return int((time.monotonic_ns() - self.start_wall_ns) / self.dilation)

    def to_model(self, wall_ns: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Monotonic times as model times."""
        model: npt.NDArray[np.int64] = ((wall_ns - self.start_wall_ns) / self.dilation).astype(
            np.int64
        )
        return model

    def sleep_until(self, model_ns: int) -> int:
        """Sleeps until a model time, not at all when it has passed; returns the time then."""
        sleep_until_wall(self.start_wall_ns + math.ceil(model_ns * self.dilation))
        return self.now_ns()

    @staticmethod
    def sharpen() -> None:
        """Asks the kernel for exact wake-ups of this thread (the default slack is 50 us)."""
        _libc.prctl(_PR_SET_TIMERSLACK, 1, 0, 0, 0)
