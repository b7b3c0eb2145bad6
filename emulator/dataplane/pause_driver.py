"""Makes pauses happen: crossings out of the ring, orders to the gates, everything into the log.

It never looks by itself. Whoever serves it waits for its descriptors, above all for those that wake
when something was crossed, and until `next_ns`, when a pause or a resume has had its reaction time.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Protocol

import numpy as np
import numpy.typing as npt

from emulator.dataplane.layout import EVENT_FRAME
from emulator.dataplane.pause_log import PauseLogWriter
from emulator.dataplane.pause_rules import PauseRules
from emulator.dataplane.pausing import FRAME, MMU, POLICY, Act, Order, PauseControl
from emulator.dataplane.receivers import Receivers
from topologies.settings import PfcRule

_WORDS, _TIMES = struct.Struct("<QQ"), struct.Struct(">8H")

Crossing = Callable[[int, int, bool, int, int], None]
"""Told (ingress port, class, paused, when in wall ns, held bytes)."""


class Plane(Protocol):
    """What is needed of the data plane."""

    @property
    def receivers(self) -> Receivers:
        """Hosts that are slower than their links."""

    def crossings(self) -> npt.NDArray[np.void]:
        """What crossed XOFF or XON since the last call."""

    def set_pause(self, port: int, tc: int, rule: PfcRule | None) -> None:
        """The rule of an ingress port and class; None = lossy."""

    def set_discard(self, port: int, tc: int, *, on: bool) -> None:
        """Whether an egress port drops a class."""

    def set_gate(self, port: int, tc: int, *, closed: bool) -> None:
        """Tells others what a gate does."""


class Wakes(Protocol):
    """Readable when something was crossed."""

    def fileno(self) -> int:
        """Its descriptor."""

    def clear(self) -> None:
        """Not readable until the next crossing."""


class Gates(Protocol):
    """What is needed of the gatekeeper."""

    keys: frozenset[tuple[int, int]]

    @property
    def wakers(self) -> Sequence[Wakes]:
        """Woken by crossings."""

    @property
    def refusal_fds(self) -> list[int]:
        """Readable when a change was refused."""

    def set(self, port: int, tc: int, *, closed: bool) -> None:
        """Closes or opens a gate."""

    def tells(self, port: int, tc: int) -> bool:
        """Whether a port sends pause frames."""

    def tell(self, port: int, tc: int, *, paused: bool) -> None:
        """Sends a pause frame, where such are sent."""

    def check(self) -> None:
        """Raises when a change was refused."""


class PauseDriver:
    """Connects the data plane's crossings, the rules, the gates and the log.

    Args:
        plane: the data plane.
        gates: opens and closes.
        rules: in force; `set_rule` changes them.
        control: decides when.
        log: what happened.
        dilation: wall ns per model ns.
        now_ns: the monotonic clock.

    Attributes:
        gates: opens and closes.
        rules: in force.
        listeners: told of every crossing, before anything is done about it.
    """

    def __init__(
        self,
        plane: Plane,
        gates: Gates,
        rules: PauseRules,
        control: PauseControl,
        log: PauseLogWriter,
        dilation: float,
        now_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._plane, self.gates, self.rules = plane, gates, rules
        self._control, self._log, self._now_ns = control, log, now_ns
        self._dilation = dilation
        self._told: dict[tuple[int, int], int] = {}
        self._untold: dict[tuple[int, int], tuple[bool, int]] = {}
        self.listeners: list[Crossing] = []

    def on_crossing(self) -> None:
        """Something was crossed."""
        for event in self._plane.crossings().tolist():
            at_ns, changes, held, headroom, _, port, tc, kind = event[:8]
            if kind == EVENT_FRAME:
                self._obey(port, changes, _TIMES.unpack(_WORDS.pack(held, headroom)), at_ns)
                continue
            paused = bool(changes & 1)
            for listener in self.listeners:
                listener(port, tc, paused, at_ns, held + headroom)
            if not self.rules.is_local(port, tc):
                self._untold[port, tc] = paused, at_ns
                continue
            self._tell(port, tc, paused=paused)
            self._control.crossed(port, tc, changes, at_ns, held + headroom)
            if paused and self._plane.receivers.is_slow(port):
                self._control.later(at_ns, partial(self._look_at_receiver, port, tc))
        self._perform()

    def _obey(self, port: int, classes: int, quanta: Sequence[int], at_ns: int) -> None:
        """A pause frame that some program has sent from a port: its peer does what it says."""
        peer = self.rules.peer(port)
        for tc, length in enumerate(quanta):
            if classes >> tc & 1 and (peer, tc) in self.gates.keys:
                until_ns = at_ns + round(self.rules.quanta_ns(port, length) * self._dilation)
                self._control.wish(port, tc, FRAME, at_ns, paused=length > 0, until_ns=until_ns)

    def _tell(self, port: int, tc: int, *, paused: bool) -> None:
        """Sends the frame that says so, and again in time for as long as the pause lasts."""
        self.gates.tell(port, tc, paused=paused)
        self._told[port, tc] = number = self._told.get((port, tc), 0) + 1
        if paused and self.gates.tells(port, tc):
            every_ns = round(self.rules.refresh_ns(port) * self._dilation)

            def again(now_ns: int) -> int | None:
                if self._told[port, tc] != number:
                    return None
                self.gates.tell(port, tc, paused=True)
                return now_ns + every_ns

            self._control.later(self._now_ns() + every_ns, again)

    def _look_at_receiver(self, port: int, tc: int, now_ns: int) -> int | None:
        """Whether a slow receiver has come down to XON; else when to look again."""
        receivers = self._plane.receivers
        calm_ns = receivers.calm_ns(port, tc, now_ns)
        if calm_ns is None or calm_ns > now_ns:
            return calm_ns
        self._tell(port, tc, paused=False)
        self._control.crossed(port, tc, receivers.resume(port, tc), now_ns, 0)
        return None

    def on_time(self) -> None:
        """It is `next_ns`, or later."""
        self._perform()

    def next_ns(self) -> int | None:
        """When something is due, monotonic ns; None = nothing is."""
        return self._control.next_ns()

    def wish(self, port: int, tc: int, *, paused: bool, for_ns: int | None = None) -> None:
        """A policy wants an ingress port to pause its peer, or to let it go on.

        Where the policy answers to a crossing, the reaction is counted from there.

        Args:
            port: index of the ingress port.
            tc: class.
            paused: pause or resume.
            for_ns: the pause ends by itself after so long, model ns; None = it does not.
        """
        now = self._now_ns()
        told, crossed_ns = self._untold.pop((port, tc), (not paused, now))
        self._tell(port, tc, paused=paused)
        until = None if for_ns is None else now + round(for_ns * self._dilation)
        asked_ns = crossed_ns if told == paused else now
        self._control.wish(port, tc, POLICY, now, paused=paused, until_ns=until, asked_ns=asked_ns)
        self._perform()

    def set_rule(self, port: int, tc: int, rule: PfcRule | None) -> None:
        """Changes the rule of an ingress port and class; a class that becomes lossy is resumed."""
        self.rules.put(port, tc, rule)
        self._plane.set_pause(port, tc, rule)
        if rule is None:
            self._control.wish(port, tc, MMU, self._now_ns(), paused=False)
            self._perform()

    def wakers(self) -> list[tuple[int, Callable[[], None]]]:
        """(descriptor, what to call when it is readable) of all that wakes it."""
        refusals = [(fd, self.gates.check) for fd in self.gates.refusal_fds]
        wakers = [(waker.fileno(), partial(self._woken, waker)) for waker in self.gates.wakers]
        return [*wakers, *refusals]

    def _woken(self, waker: Wakes) -> None:
        waker.clear()
        self.on_crossing()

    def paused(self) -> list[tuple[int, int]]:
        """(port, class) of all gates that are closed."""
        return self._control.paused()

    def close(self) -> None:
        """Writes the end of the log."""
        self._log.close()

    def _perform(self) -> None:
        for order in self._orders():
            self._carry_out(order)
            self._log.add(order, self._now_ns())
        self._log.flush()

    def _orders(self) -> Iterator[Order]:
        """What is due now, and what becomes so while that is being done."""
        while (at_ns := self._control.next_ns()) is not None and at_ns <= (now := self._now_ns()):
            yield from self._control.due(now)

    def _carry_out(self, order: Order) -> None:
        port, tc, closed = order.port, order.tc, order.act is Act.CLOSE
        if order.act is Act.RESTORE:
            self._plane.set_discard(port, tc, on=False)
            return
        if order.act is Act.STORM_DROP:
            self._plane.set_discard(port, tc, on=True)
        self._plane.set_gate(port, tc, closed=closed)
        if (port, tc) in self.gates.keys:
            self.gates.set(port, tc, closed=closed)
