"""One switch: the rules that it should have, those that it was sent, and what it acknowledged.

On every connection the switch gets all its rules again under a new *generation* (the cookie), and
only then loses those of every other generation, so at no moment is a packet without a rule: a
controller that restarts, or a connection that breaks, does not interrupt forwarding. After that,
only differences are sent, additions first.

No knowledge of older generations is needed. A delete message can name cookies by some of their
bits only, so one message per bit that removes the rules whose bit differs from ours removes,
together, the rules of every generation but ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from controller.core.messages import ALL_TABLES, Barrier, Command, FlowMod, Message, RuleKey
from controller.core.routing import Rules

GENERATION_BITS = 32
MAX_GENERATION = (1 << GENERATION_BITS) - 1
"""Generations count from 1 to this and start again; 0 is the cookie of rules that are not ours."""


def next_generation(generation: int) -> int:
    """The generation after this one."""
    return generation % MAX_GENERATION + 1


def delete_others(generation: int) -> Iterator[FlowMod]:
    """Messages that together remove every rule whose cookie is not this generation."""
    for bit in range(GENERATION_BITS):
        mask = 1 << bit
        other = ~generation & mask
        yield FlowMod(Command.DELETE, cookie=other, cookie_mask=mask, table=ALL_TABLES)


class SwitchState:
    """The controller's view of one switch.

    Args:
        name: its name in the fabric.
        dpid: its datapath id.
        new_token: makes numbers for barriers, unique among all switches.

    Attributes:
        connects: how often it has connected.
        connected: whether it is connected now.
        generation: the cookie of the rules on this connection.
        installed: the rules that this connection has been sent.
        connected_ns: when it connected last, ns.
        install_ns: how long it took until it had acknowledged all its rules after that, ns.
    """

    def __init__(self, name: str, dpid: int, new_token: Callable[[], int]) -> None:
        self.name = name
        self.dpid = dpid
        self.connects = 0
        self.connected = False
        self.generation = 0
        self.installed: Rules = {}
        self.connected_ns = 0
        self.install_ns: int | None = None
        self._new_token = new_token
        self._awaited: int | None = None

    @property
    def acknowledged(self) -> bool:
        """Whether it is connected and has confirmed everything that it was sent."""
        return self.connected and self._awaited is None

    def connect(self, rules: Rules, generation: int, now_ns: int) -> list[Message]:
        """All rules under a new generation, then the end of all others."""
        self.connects += 1
        self.connected = True
        self.generation = generation
        self.installed = rules
        self.connected_ns, self.install_ns = now_ns, None
        messages: list[Message] = [FlowMod.add(rule, generation) for rule in rules.values()]
        messages.append(self._barrier())
        messages.extend(delete_others(generation))
        messages.append(self._barrier())
        return messages

    def update(self, rules: Rules) -> list[Message]:
        """What turns the installed rules into these; nothing while it is not connected."""
        if not self.connected:
            return []
        before = self.installed
        self.installed = rules
        added = [rule for key, rule in rules.items() if before.get(key) != rule]
        gone: list[RuleKey] = [key for key in before if key not in rules]
        messages: list[Message] = [FlowMod.add(rule, self.generation) for rule in added]
        if added:
            messages.append(self._barrier())
        messages.extend(FlowMod.remove(key) for key in gone)
        if gone:
            messages.append(self._barrier())
        return messages

    def acknowledge(self, token: int, now_ns: int) -> None:
        """The switch has answered a barrier; only the last one sent confirms everything."""
        if token != self._awaited:
            return
        self._awaited = None
        if self.install_ns is None:
            self.install_ns = now_ns - self.connected_ns

    def disconnect(self) -> None:
        """Its connection has ended."""
        self.connected = False
        self._awaited = None

    def _barrier(self) -> Barrier:
        self._awaited = self._new_token()
        return Barrier(self._awaited)
