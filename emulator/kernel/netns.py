"""Named network namespaces: create many, enter one, remove them.

Names live in /run/netns, so `ip netns exec NAME COMMAND` works on them and a crash leaves a trace
that `fabriclab clean` can follow.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

FOLDER = Path("/run/netns")
_CLONE_NEWNET = 0x40000000
_MS_BIND, _MS_REC, _MS_SHARED, _MNT_DETACH = 0x1000, 0x4000, 0x100000, 2
_libc = ctypes.CDLL(None, use_errno=True)


def _check(result: int, what: str) -> None:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")


def _bind_current(name: str) -> None:
    path = FOLDER / name
    path.touch(exist_ok=False)
    try:
        source = b"/proc/thread-self/ns/net"
        _check(_libc.mount(source, os.fsencode(path), None, _MS_BIND, None), f"bind {path}")
    except OSError:
        path.unlink()
        raise


def _in_own_thread(work: Callable[[], None]) -> None:
    """Runs work in a thread of its own, so that the caller's namespace never changes."""
    failures: list[BaseException] = []

    def guarded() -> None:
        try:
            work()
        except BaseException as failure:  # noqa: BLE001 - handed to the caller below
            failures.append(failure)

    thread = threading.Thread(target=guarded)
    thread.start()
    thread.join()
    if failures:
        raise failures[0]


def _share_folder() -> None:
    """Makes /run/netns a shared mount, as `ip netns` does, so that both see the same names."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    path = os.fsencode(FOLDER)
    if _libc.mount(b"", path, b"none", _MS_SHARED | _MS_REC, None) == 0:
        return
    _check(_libc.mount(path, path, b"none", _MS_BIND | _MS_REC, None), f"bind {FOLDER}")
    _check(_libc.mount(b"", path, b"none", _MS_SHARED | _MS_REC, None), f"share {FOLDER}")


def create(names: Sequence[str], prepare: Callable[[str], None]) -> None:
    """Creates namespaces; `prepare` is called inside each one.

    Raises:
        OSError: a name is taken (EEXIST) or the kernel refused; those made before stay.
    """
    _share_folder()

    def work() -> None:
        for name in names:
            _check(_libc.unshare(_CLONE_NEWNET), "unshare")
            _bind_current(name)
            prepare(name)

    _in_own_thread(work)


def remove(name: str) -> bool:
    """Removes a namespace; False when there was none or something else still holds its name."""
    path = FOLDER / name
    if not path.exists():
        return False
    while _libc.umount2(os.fsencode(path), _MNT_DETACH) == 0:
        continue
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        if error.errno != errno.EBUSY:
            raise
        return False
    return True


def open_fd(name: str) -> int:
    """A file descriptor of a namespace."""
    return os.open(FOLDER / name, os.O_RDONLY | os.O_CLOEXEC)


@contextlib.contextmanager
def entered(netns_fd: int) -> Iterator[None]:
    """The calling thread is in the namespace for the duration of the block."""
    before = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        _check(_libc.setns(netns_fd, _CLONE_NEWNET), "setns")
        yield
    finally:
        _check(_libc.setns(before, _CLONE_NEWNET), "setns")
        os.close(before)


def join(netns_fd: int) -> None:
    """Moves the calling thread into the namespace for good (for a child before exec)."""
    _check(_libc.setns(netns_fd, _CLONE_NEWNET), "setns")
