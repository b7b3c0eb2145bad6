"""Who is paused, and from when on: crossings in, orders for gates out. PURE.

A gate stops one class at one port. It is closed while its peer wants a pause: the peer's MMU, from
the crossing of XOFF to that of XON, a policy, or a pause frame that some program has sent. Each
wish takes effect after the time that a pause frame and the reaction to it take. A watchdog opens a
gate that has been closed for too long without a break, and leaves it open until the peer has wanted
no pause for a while.

Times are wall ns of the monotonic clock, durations given in model ns.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from itertools import count

from topologies.model import Fabric
from topologies.settings import PauseWatchdog

MMU, POLICY, FRAME = "mmu", "policy", "frame"
GateKey = tuple[int, int]
"""(port index, traffic class) of the queue that is stopped."""


class Act(IntEnum):
    """What is to be done at a gate; the numbers stand in the log."""

    CLOSE = 1
    OPEN = 2
    STORM_DROP = 3
    STORM_FORWARD = 4
    RESTORE = 5


@dataclass(frozen=True, slots=True)
class Order:
    """One thing to do now.

    Attributes:
        act: what.
        port: index of the port whose queue it is.
        tc: its class.
        asked_ns: when the wish arose (XOFF or XON crossed, or a policy asked).
        due_ns: when it should take effect.
        held_bytes: what the pausing port and class held when it was asked.
    """

    act: Act
    port: int
    tc: int
    asked_ns: int
    due_ns: int
    held_bytes: int = 0


@dataclass(slots=True)
class _Gate:
    wishes: dict[str, int] = field(default_factory=dict)  # who -> number of the wish
    closed: bool = False
    storm: bool = False
    epoch: int = 0
    last_due_ns: int = 0


class PauseControl:
    """The state of all gates.

    Args:
        fabric: whose ports.
        reaction_ns: from a wish of an ingress port and class to its effect, model ns.
        watchdog: of a paused port and class; None = none.
        dilation: wall ns per model ns.
    """

    def __init__(
        self,
        fabric: Fabric,
        reaction_ns: Callable[[int, int], int],
        watchdog: Callable[[int, int], PauseWatchdog | None],
        dilation: float,
    ) -> None:
        self._fabric, self._dilation = fabric, dilation
        self._reaction_ns, self._watchdog = reaction_ns, watchdog
        self._gates: dict[GateKey, _Gate] = {}
        self._agenda: list[tuple[int, int, Callable[[int], Iterator[Order]]]] = []
        self._numbers = count()
        self._seen: dict[GateKey, int] = {}

    def crossed(self, port: int, tc: int, changes: int, at_ns: int, held_bytes: int) -> None:
        """An ingress port and class has crossed XOFF (odd number of changes) or XON.

        Two processors may tell two crossings in the wrong order: the later number counts.
        """
        if changes <= self._seen.get((port, tc), 0):
            return
        self._seen[port, tc] = changes
        self.wish(port, tc, MMU, at_ns, paused=bool(changes & 1), held_bytes=held_bytes)

    def wish(
        self,
        port: int,
        tc: int,
        who: str,
        at_ns: int,
        *,
        paused: bool,
        until_ns: int | None = None,
        asked_ns: int | None = None,
        held_bytes: int = 0,
    ) -> None:
        """An ingress port wants its peer's class to stop, or to go on.

        Args:
            port: index of the ingress port.
            tc: class.
            who: `MMU`, `POLICY` or `FRAME`; the peer goes on when none of them wants a pause.
            at_ns: when.
            paused: stop or go on.
            until_ns: the pause ends by itself then, unless it was wished again.
            asked_ns: when its cause arose, where that was earlier.
            held_bytes: what the port and class holds.
        """
        key = self._fabric.port(port).peer, tc
        gate = self._gates.setdefault(key, _Gate())
        number, asked = next(self._numbers), at_ns if asked_ns is None else asked_ns

        def begin(now_ns: int, due_ns: int) -> Iterator[Order]:
            if paused:
                gate.wishes[who] = number
            else:
                gate.wishes.pop(who, None)
            return self._settle(key, gate, now_ns, asked, due_ns, held_bytes)

        def end(now_ns: int, due_ns: int) -> Iterator[Order]:
            if gate.wishes.get(who) == number:
                del gate.wishes[who]
            return self._settle(key, gate, now_ns, until_ns or 0, due_ns, held_bytes)

        # Wishes take effect in the order in which they arose, whatever the reactions are.
        reaction_ns = self._wall(self._reaction_ns(port, tc))
        due_ns = gate.last_due_ns = max(at_ns + reaction_ns, gate.last_due_ns)
        self._plan(due_ns, lambda now_ns: begin(now_ns, due_ns))
        if paused and until_ns is not None:
            over_ns = max(until_ns + reaction_ns, due_ns)
            self._plan(over_ns, lambda now_ns: end(now_ns, over_ns))

    def later(self, at_ns: int, look: Callable[[int], int | None]) -> None:
        """Calls `look` with the time then, and again at the time that it returns, if it does."""

        def call(now_ns: int) -> Iterator[Order]:
            again_ns = look(now_ns)
            if again_ns is not None:
                self._plan(again_ns, call)
            return iter(())

        self._plan(at_ns, call)

    def due(self, now_ns: int) -> Iterator[Order]:
        """What is to be done by now, in order; do each before asking for the next."""
        while self._agenda and self._agenda[0][0] <= now_ns:
            yield from heapq.heappop(self._agenda)[2](now_ns)

    def next_ns(self) -> int | None:
        """When there is something to do next."""
        return self._agenda[0][0] if self._agenda else None

    def is_closed(self, port: int, tc: int) -> bool:
        """Whether a gate is closed."""
        gate = self._gates.get((port, tc))
        return gate is not None and gate.closed

    def paused(self) -> list[GateKey]:
        """All gates that are closed."""
        return sorted(key for key, gate in self._gates.items() if gate.closed)

    def _wall(self, model_ns: int) -> int:
        return round(model_ns * self._dilation)

    def _plan(self, at_ns: int, action: Callable[[int], Iterator[Order]]) -> None:
        heapq.heappush(self._agenda, (at_ns, next(self._numbers), action))

    def _settle(
        self, key: GateKey, gate: _Gate, now_ns: int, asked_ns: int, due_ns: int, held_bytes: int
    ) -> Iterator[Order]:
        """Closes or opens the gate as it is wished, unless its watchdog holds it open."""
        wished = bool(gate.wishes)
        if gate.storm:
            gate.epoch += 1
            if not wished:
                self._await_calm(key, gate, now_ns)
        elif wished != gate.closed:
            gate.closed = wished
            gate.epoch += 1
            yield Order(Act.CLOSE if wished else Act.OPEN, *key, asked_ns, due_ns, held_bytes)
            if wished:
                self._await_storm(key, gate, now_ns)

    def _await_storm(self, key: GateKey, gate: _Gate, now_ns: int) -> None:
        watchdog, epoch = self._watchdog(*key), gate.epoch
        if watchdog is None:
            return
        at_ns = now_ns + self._wall(watchdog.detect_ns)
        act = Act.STORM_DROP if watchdog.action == "drop" else Act.STORM_FORWARD

        def detect(_now_ns: int) -> Iterator[Order]:
            if gate.closed and gate.epoch == epoch:
                gate.closed, gate.storm = False, True
                yield Order(act, *key, now_ns, at_ns)

        self._plan(at_ns, detect)

    def _await_calm(self, key: GateKey, gate: _Gate, now_ns: int) -> None:
        watchdog, epoch = self._watchdog(*key), gate.epoch
        at_ns = now_ns + (self._wall(watchdog.restore_ns) if watchdog else 0)

        def restore(_now_ns: int) -> Iterator[Order]:
            if gate.storm and gate.epoch == epoch:
                gate.storm = False
                yield Order(Act.RESTORE, *key, now_ns, at_ns)

        self._plan(at_ns, restore)
