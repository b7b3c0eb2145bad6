"""What the engine needs of the network below it; the emulator and the tests provide it."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

Records = npt.NDArray[np.void]


class Medium(Protocol):
    """Sends prepared frames from host ports and hands over what arrived."""

    def receive(self) -> Records:
        """Frames that arrived since the last call, oldest first.

        Fields: time_ns (model time, ns), psn, dest_qp, aeth, length (frame bytes without FCS),
        opcode, tos, becn, trimmed (1 = a switch has cut it to its headers).
        """

    def send(
        self,
        ports: npt.NDArray[np.intp],
        headers: npt.NDArray[np.uint8],
        header_bytes: npt.NDArray[np.intp],
        body_bytes: npt.NDArray[np.intp],
        icrc: npt.NDArray[np.uint8],
    ) -> int:
        """Sends n frames, grouped by port; returns how many the kernel took (normally all)."""

    def backlog(self) -> npt.NDArray[np.int64]:
        """Wire bytes that wait in each port's egress queue and are not paused, by port index."""

    def paused(self) -> npt.NDArray[np.int64]:
        """Traffic classes that may not leave a port now, as bits, by port index."""

    def inside_switches(self) -> int:
        """Packets that are in none of the queues but inside a switch: the emulation's own work."""


class Clock(Protocol):
    """Model time: target nanoseconds since the run's start."""

    def now_ns(self) -> int:
        """The time now."""

    def sleep_until(self, model_ns: int) -> int:
        """Returns at this time or soon after, at once when it has passed: the time then."""
