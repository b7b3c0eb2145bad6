"""The pause rules in force while a fabric runs. PURE."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from topologies.model import Fabric, Port
from topologies.pause import MAX_QUANTA, notice_ns, pause_ns, response_ns
from topologies.settings import SWITCH, PauseWatchdog, PfcRule


class PauseRules:
    """The pause rules in force, and what they mean for gates.

    Args:
        fabric: whose ports.
        rules: as `topologies.pause.settled` gives them.
        in_flight_ns: what a packet takes from leaving a queue to being counted at a port and the
            emulation does not make it wait for, model ns: the pause comes so much later, for the
            same bytes to arrive.
    """

    def __init__(
        self,
        fabric: Fabric,
        rules: Mapping[int, Mapping[int, PfcRule]],
        in_flight_ns: Callable[[Port], int],
    ) -> None:
        self._fabric, self._in_flight_ns = fabric, in_flight_ns
        self._rules = {port: dict(classes) for port, classes in rules.items()}

    def get(self, port: int, tc: int) -> PfcRule | None:
        """The rule of an ingress port and class; None = lossy."""
        return self._rules.get(port, {}).get(tc)

    def is_local(self, port: int, tc: int) -> bool:
        """Whether a crossing is acted upon here, and not by the controller."""
        rule = self.get(port, tc)
        return rule is None or rule.control == SWITCH

    def put(self, port: int, tc: int, rule: PfcRule | None) -> None:
        """Changes it."""
        classes = self._rules.setdefault(port, {})
        if rule is None:
            classes.pop(tc, None)
        else:
            classes[tc] = rule

    def peer(self, port: int) -> int:
        """Index of the port at the other end."""
        return self._fabric.port(port).peer

    def by_port(self) -> dict[int, dict[int, PfcRule]]:
        """All of them."""
        return {port: dict(classes) for port, classes in self._rules.items()}

    def reaction_ns(self, port: int, tc: int) -> int:
        """From an ingress port's wish for a pause to its peer's silence, model ns."""
        one, rule = self._fabric.port(port), self.get(port, tc)
        link = self._fabric.link_of(one)
        peer_ns = rule.response_ns if rule else None
        if peer_ns is None:
            peer_ns = response_ns(link.rate_bps)
        return notice_ns(link) + peer_ns + self._in_flight_ns(one)

    def quanta_ns(self, port: int, quanta: int) -> int:
        """How long a pause frame of a port holds, model ns."""
        return pause_ns(quanta, self._fabric.link_of(self._fabric.port(port)).rate_bps)

    def refresh_ns(self, port: int) -> int:
        """After so long a pause frame is sent again, model ns: half of the time that it holds."""
        return self.quanta_ns(port, MAX_QUANTA) // 2

    def watchdog(self, port: int, tc: int) -> PauseWatchdog | None:
        """Of a port whose queue of a class is paused: that of its own rule."""
        rule = self.get(port, tc)
        return rule.watchdog if rule else None
