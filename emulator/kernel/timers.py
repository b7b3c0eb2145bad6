"""A timer as a file descriptor, exact to the nanosecond; epoll's own counts milliseconds."""

from __future__ import annotations

import contextlib
import ctypes
import os
import time

_NS_PER_S = 1_000_000_000
_TFD_TIMER_ABSTIME = 1
_libc = ctypes.CDLL(None, use_errno=True)


class _Spec(ctypes.Structure):
    """struct itimerspec."""

    _fields_ = (
        ("interval_s", ctypes.c_long), ("interval_ns", ctypes.c_long),
        ("value_s", ctypes.c_long), ("value_ns", ctypes.c_long),
    )  # fmt: skip


class Timer:
    """Readable from a moment on; for a selector. Waits by the monotonic clock."""

    def __init__(self) -> None:
        flags = os.O_NONBLOCK | os.O_CLOEXEC
        self._fd = int(_libc.timerfd_create(time.CLOCK_MONOTONIC, flags))
        if self._fd < 0:
            code = ctypes.get_errno()
            raise OSError(code, f"timerfd_create: {os.strerror(code)}")
        self._set_ns: int | None = None

    def fileno(self) -> int:
        """Its file descriptor."""
        return self._fd

    def set(self, at_ns: int | None) -> None:
        """Goes off at a moment of the monotonic clock, at once when that is over; None = never."""
        if at_ns == self._set_ns:
            return
        self._set_ns = at_ns
        seconds, ns = divmod(0 if at_ns is None else max(1, at_ns), _NS_PER_S)
        spec = _Spec(0, 0, seconds, ns)
        if _libc.timerfd_settime(self._fd, _TFD_TIMER_ABSTIME, ctypes.byref(spec), None):
            code = ctypes.get_errno()
            raise OSError(code, f"timerfd_settime: {os.strerror(code)}")

    def clear(self) -> None:
        """Not readable any more, after it went off."""
        self._set_ns = None
        with contextlib.suppress(BlockingIOError):
            os.read(self._fd, 8)

    def close(self) -> None:
        """Frees the descriptor."""
        os.close(self._fd)
