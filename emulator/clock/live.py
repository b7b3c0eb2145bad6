"""Model time over the host's monotonic clock, slowed down by the dilation."""

from __future__ import annotations

import ctypes
import time

import numpy as np
import numpy.typing as npt

_PR_SET_TIMERSLACK = 29
_libc = ctypes.CDLL(None, use_errno=True)


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

    def sleep_until(self, model_ns: int) -> None:
        """Sleeps until a model time; returns at once when it has passed."""
        wall_ns = self.start_wall_ns + model_ns * self.dilation - time.monotonic_ns()
        if wall_ns > 0:
            time.sleep(wall_ns / 1e9)

    @staticmethod
    def sharpen() -> None:
        """Asks the kernel for exact wake-ups of this thread (the default slack is 50 us)."""
        _libc.prctl(_PR_SET_TIMERSLACK, 1, 0, 0, 0)
