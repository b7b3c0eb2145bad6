"""What happened at the gates: written by the agent as it happens, read by the run as it goes."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import numpy as np
import numpy.typing as npt

from emulator.dataplane.pausing import Order

RECORD = np.dtype(
    [
        ("done_ns", "<u8"),
        ("asked_ns", "<u8"),
        ("due_ns", "<u8"),
        ("held_bytes", "<u8"),
        ("port", "<u4"),
        ("act", "u1"),
        ("tc", "u1"),
        ("pad", "u1", (2,)),
    ]
)
_MOST_BYTES = RECORD.itemsize << 16
_PACKED = struct.Struct("<QQQQIBBxx")

Records = npt.NDArray[np.void]


class PauseLogWriter:
    """Appends records to a file; `flush` hands them to the kernel in one call."""

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        self._waiting: list[bytes] = []

    def add(self, order: Order, done_ns: int) -> None:
        """An order that was carried out."""
        self._waiting.append(
            _PACKED.pack(
                done_ns, order.asked_ns, order.due_ns, order.held_bytes, order.port, order.act,
                order.tc,
            )
        )  # fmt: skip

    def flush(self) -> None:
        """Writes what is waiting."""
        if self._waiting:
            os.write(self._fd, b"".join(self._waiting))
            self._waiting.clear()

    def close(self) -> None:
        """Writes the rest and closes the file."""
        self.flush()
        os.close(self._fd)


class PauseLogReader:
    """Reads what was added since the last time, with one call that does not fail.

    Raises:
        FileNotFoundError: nobody writes this log.
    """

    def __init__(self, path: Path) -> None:
        self._fd, self._offset = os.open(path, os.O_RDONLY | os.O_CLOEXEC), 0

    def read(self) -> Records:
        """Whole records, in order."""
        parts = []
        while data := os.pread(self._fd, _MOST_BYTES, self._offset):
            whole = len(data) // RECORD.itemsize * RECORD.itemsize
            self._offset += whole
            parts.append(data[:whole])
            if len(data) < _MOST_BYTES:
                break
        return np.frombuffer(b"".join(parts), RECORD)

    def close(self) -> None:
        """Frees the descriptor."""
        os.close(self._fd)
