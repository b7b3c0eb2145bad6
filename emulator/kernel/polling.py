"""Waits for descriptors with a limit to the nanosecond.

The `selectors` module's limits are rounded up to milliseconds, in which a fabric sends thousands of
packets. Since Linux 5.11.
"""

from __future__ import annotations

import ctypes
import errno
import os
import select
from typing import Generic, TypeVar

_EPOLL_PWAIT2 = 441  # on every architecture
_NS_PER_S = 1_000_000_000
_MOST_EVENTS = 64
_PACKED = os.uname().machine == "x86_64"
_libc = ctypes.CDLL(None, use_errno=True)

T = TypeVar("T")


class _Event(ctypes.Structure):
    """struct epoll_event."""

    _pack_ = 4 if _PACKED else 8
    _fields_ = (("events", ctypes.c_uint32), ("data", ctypes.c_uint64))


class _Timespec(ctypes.Structure):
    """struct timespec."""

    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


class Poller(Generic[T]):
    """Descriptors, and something that belongs to each of them."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._of: dict[int, T] = {}
        self._events = (_Event * _MOST_EVENTS)()

    def register(self, fd: int, item: T) -> None:
        """Waits for this descriptor to become readable, too."""
        self._epoll.register(fd, select.EPOLLIN)
        self._of[fd] = item

    def unregister(self, fd: int) -> None:
        """Waits for it no more."""
        self._epoll.unregister(fd)
        del self._of[fd]

    def items(self) -> list[T]:
        """What belongs to all descriptors."""
        return list(self._of.values())

    def wait(self, most_ns: int) -> list[T]:
        """Returns when something is readable, or after so long: what belongs to it."""
        limit = _Timespec(*divmod(max(0, most_ns), _NS_PER_S))
        count = _libc.syscall(
            _EPOLL_PWAIT2, self._epoll.fileno(), self._events, _MOST_EVENTS, ctypes.byref(limit),
            None, 0,
        )  # fmt: skip
        if count < 0:
            code = ctypes.get_errno()
            if code == errno.EINTR:
                return []
            raise OSError(code, f"epoll_pwait2: {os.strerror(code)}")
        ready = [self._events[number].data & 0xFFFFFFFF for number in range(count)]
        return [self._of[fd] for fd in ready if fd in self._of]

    def close(self) -> None:
        """Frees its own descriptor."""
        self._epoll.close()
