"""Writing that survives crashes and full disks: atomic whole files, append-only line files.

`SafeWriter` is the one place where a failed write is caught. The first failure is recorded as a
sentence and frees a small reserve, so that the summary of a run on a full disk still fits.
"""

from __future__ import annotations

import errno
import json
import math
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

RESERVE_BYTES = 512 * 1024
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


def jsonable(value: object) -> object:
    """The value with NumPy scalars, tuples and paths as JSON has them; NaN becomes None."""
    if isinstance(value, Mapping):
        return {str(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [jsonable(item) for item in value]
    if hasattr(value, "tolist"):
        return jsonable(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, (str, int, bool, type(None))) else str(value)


def json_text(value: object) -> str:
    """Pretty JSON, readable by people and by strict parsers (no NaN), with a final newline."""
    return json.dumps(jsonable(value), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def write_atomic(path: Path, data: bytes) -> None:
    """Write a whole file so that a reader sees the old one or the new one, never half of it."""
    replace_atomic(path, lambda temporary: temporary.write_bytes(data))


def replace_atomic(path: Path, write: Callable[[Path], Any]) -> None:
    """Let `write` fill a temporary file beside `path`, flush it to the disk, then rename it."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        write(temporary)
        with temporary.open("rb") as handle:
            os.fsync(handle.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


class LineFile:
    """An append-only text file; every append reaches the kernel before it returns.

    Each file has one writing process. When a write fails half-way, the half line is cut off again.

    Attributes:
        path: the file.
        lines: whole lines that this object appended.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.lines = path, 0
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        self._fd = os.open(path, flags, 0o644)

    def append(self, text: str) -> None:
        """Append whole lines; OSError when the disk takes none or only part of them."""
        data, start = text.encode(), os.fstat(self._fd).st_size
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self._fd, view) :]
        finally:
            self._cut_after_last_line(start, data[: len(data) - len(view)])

    @property
    def is_empty(self) -> bool:
        """True as long as nothing was written, by whomever."""
        return os.fstat(self._fd).st_size == 0

    def _cut_after_last_line(self, start: int, written: bytes) -> None:
        self.lines += written.count(b"\n")
        whole = written.rfind(b"\n") + 1
        if whole < len(written):
            os.ftruncate(self._fd, start + whole)

    def close(self) -> None:
        """Close the file; harmless when done twice."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


class SafeWriter:
    """Runs writes; after the first failure it records one reason and refuses further rows.

    Attributes:
        degraded: why something is missing, a sentence; None while all is well.
        failed: names of what could not be written, without repetition.
    """

    def __init__(self, folder: Path, reserve: Path) -> None:
        self.folder, self.reserve = folder, reserve
        self.degraded: str | None = None
        self.failed: list[str] = []

    def hold_reserve(self) -> None:
        """Occupy a little disk space that the first failure gives back for the summary."""
        self.run("the reserve", lambda: self.reserve.write_bytes(bytes(RESERVE_BYTES)))

    def run(self, what: str, write: Callable[[], Any], retry: bool = True) -> bool:
        """Do one write; False when it failed or was not tried.

        Args:
            what: the file's name, for the reason and for `failed`.
            write: does the writing.
            retry: also try when an earlier write failed. Rows are not retried: a hole in the
                middle of a table misleads more than an end that is missing.
        """
        if self.degraded is not None and not retry:
            return self._note(what)
        try:
            write()
        except OSError as error:
            self._explain(what, error)
            return self._note(what)
        return True

    def _note(self, what: str) -> bool:
        if what not in self.failed:
            self.failed.append(what)
        return False

    def _explain(self, what: str, error: OSError) -> None:
        if self.degraded is None:
            cause = "the disk is full" if error.errno in _FULL else "writing failed"
            text = error.strerror or str(error)
            self.degraded = f"{cause}: {what} in {self.folder.name} is incomplete ({text})"
        self.release_reserve()

    def release_reserve(self) -> None:
        """Give the reserved space back."""
        try:
            self.reserve.unlink(missing_ok=True)
        except OSError:
            return  # a file that cannot be removed costs half a megabyte, nothing else
