"""Stand-ins for what the pause driver works with: crossings by hand, gates that take notes."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import numpy as np
import numpy.typing as npt

from emulator.dataplane import layout
from emulator.dataplane.pause_driver import PauseDriver
from emulator.dataplane.pause_log import PauseLogReader, PauseLogWriter, Records
from emulator.dataplane.pause_rules import PauseRules
from emulator.dataplane.pausing import PauseControl
from emulator.dataplane.receivers import Receivers
from tests.fakes.plane import FakePlane
from topologies.model import Fabric
from topologies.pause import settled
from topologies.settings import PfcRule


class EventWaker:
    """Wakes by an event descriptor."""

    def __init__(self) -> None:
        self._fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)

    def call(self) -> None:
        """Something was crossed."""
        os.eventfd_write(self._fd, 1)

    def fileno(self) -> int:
        """Readable after a call."""
        return self._fd

    def clear(self) -> None:
        """Not readable any more."""
        os.eventfd_read(self._fd)

    def close(self) -> None:
        """Frees the descriptor."""
        os.close(self._fd)


class PausedPlane(FakePlane):
    """A data plane whose crossings a test makes."""

    def __init__(self, fabric: Fabric) -> None:
        super().__init__(fabric)
        self.waker = EventWaker()
        self.receivers = Receivers(fabric, self.configs)
        self._crossed: list[tuple[int, ...]] = []
        self._changes: dict[tuple[int, int], int] = {}

    def cross(self, port: str, at_ns: int, tc: int = 3, held: int = 9_000) -> None:
        """A port and class crosses XOFF, and the next time XON."""
        index = self.fabric.port_named(port).index
        changes = self._changes[index, tc] = self._changes.get((index, tc), 0) + 1
        kind = layout.EVENT_XOFF if changes & 1 else layout.EVENT_XON
        self._crossed.append((at_ns, changes, held, 1_000, 0, index, tc, kind))
        self.waker.call()

    def frame(self, port: str, at_ns: int, classes: int, quanta: dict[int, int]) -> None:
        """Somebody sends a pause frame from a port."""
        times = struct.pack(">8H", *(quanta.get(tc, 0) for tc in range(8)))
        words = struct.unpack("<QQ", times)
        index = self.fabric.port_named(port).index
        self._crossed.append((at_ns, classes, *words, 0, index, 0, layout.EVENT_FRAME))
        self.waker.call()

    def crossings(self) -> npt.NDArray[np.void]:
        """What was crossed since the last call."""
        events = np.zeros(len(self._crossed), layout.PAUSE_EVENT)
        names = [name for name in layout.PAUSE_EVENT.names or () if name != "pad"]
        for event, values in zip(events, self._crossed, strict=True):
            for name, value in zip(names, values, strict=True):
                event[name] = value
        self._crossed.clear()
        return events


class NotingGates:
    """Gates that note what they are told."""

    refusal_fds: list[int] = []  # noqa: RUF012 - never changed

    def __init__(self, fabric: Fabric, classes: tuple[int, ...], waker: EventWaker) -> None:
        self.wakers = [waker]
        self.keys = frozenset((port.index, tc) for port in fabric.ports for tc in classes)
        self.done: list[tuple[str, int, bool]] = []
        self.told: list[tuple[str, int, bool]] = []
        self._fabric = fabric

    def set(self, port: int, tc: int, *, closed: bool) -> None:
        """(port, class, closed)."""
        self.done.append((self._fabric.port(port).name, tc, closed))

    def tells(self, port: int, tc: int) -> bool:
        """All frames are sent."""
        return True

    def tell(self, port: int, tc: int, *, paused: bool) -> None:
        """(port, class, paused)."""
        self.told.append((self._fabric.port(port).name, tc, paused))

    def check(self) -> None:
        """Nothing is ever refused."""


class PauseRig:
    """A driver over fakes, with a clock that a test sets.

    Attributes:
        now_ns: the clock.
        plane: makes crossings.
        gates: what was done.
        driver: under test.
    """

    def __init__(
        self, fabric: Fabric, rules: list[PfcRule], log: Path, dilation: float = 1.0
    ) -> None:
        self.now_ns = 0
        self.plane = PausedPlane(fabric)
        resolved = settled(rules, fabric)
        self.plane.apply_pfc(resolved)
        self.gates = NotingGates(
            fabric, tuple(sorted({rule.tc for rule in rules})), self.plane.waker
        )
        in_force = PauseRules(fabric, resolved, lambda _port: 0)
        control = PauseControl(fabric, in_force.reaction_ns, in_force.watchdog, dilation)
        self.driver = PauseDriver(
            self.plane, self.gates, in_force, control, PauseLogWriter(log), dilation,
            lambda: self.now_ns,
        )  # fmt: skip
        self._reader = PauseLogReader(log)

    def at(self, now_ns: int) -> None:
        """It is so late."""
        self.now_ns = now_ns
        self.driver.on_time()

    def log(self) -> Records:
        """What was logged since the last call."""
        return self._reader.read()

    def close(self) -> None:
        """Frees descriptors."""
        self.driver.close()
        self._reader.close()
        self.plane.waker.close()
