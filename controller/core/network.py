"""All switches of a run: events and the time in, messages per switch out.

Nothing here sends, waits or reads a clock. The links are those of the fabric's file; what the
switches report only says which of them work, and is checked against the file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import count

from controller.core.events import (
    BarrierDone,
    Event,
    PortChanged,
    PortState,
    SwitchConnected,
    SwitchGone,
)
from controller.core.messages import Message
from controller.core.pipeline import PIPELINE, Pipeline
from controller.core.routing import Routing, Rules
from controller.core.switch import SwitchState, next_generation
from controller.policies.base import Policy
from topologies.addressing import dpid
from topologies.model import Fabric, Node, Port

Sent = tuple[int, Message]
"""A datapath id and a message for it."""

FIRST_RESERVED_PORT = 0xFFFFFF01
"""Port numbers from here on (the bridge's own port, ...) are none of the fabric's."""


@dataclass(frozen=True)
class SwitchStatus:
    """What is known of one switch."""

    name: str
    dpid: int
    connected: bool
    acknowledged: bool
    connects: int
    rules: int
    install_ns: int | None


@dataclass(frozen=True)
class Status:
    """What is known of the whole network.

    Attributes:
        ready: every switch is connected and has confirmed all its rules.
        switches: one entry per switch of the fabric.
        rules: number of rules that the switches should have, together.
        rules_hash: a digest of these rules, without their generation: equal for equal forwarding.
        links_down: names of the interfaces, both ends, of links that do not work.
        problems: what the switches reported that contradicts the fabric's file.
    """

    ready: bool
    switches: tuple[SwitchStatus, ...]
    rules: int
    rules_hash: str
    links_down: tuple[tuple[str, str], ...]
    problems: tuple[str, ...]


@dataclass
class _Wanted:
    """The rules that a switch should have, and their digest once someone asks for it."""

    rules: Rules
    digest: bytes = field(default=b"", compare=False)


class Network:
    """The brain of the controller.

    Args:
        fabric: what exists.
        policy: shares out the buckets.
        seed: the run's seed.
        generation: the first generation; not one that a controller of this run has used last.
        pipeline: refuses messages that it does not declare.
    """

    def __init__(
        self,
        fabric: Fabric,
        policy: Policy,
        seed: int,
        *,
        generation: int = 1,
        pipeline: Pipeline = PIPELINE,
    ) -> None:
        self.routing = Routing(fabric, policy, seed)
        self.generation = generation
        self._fabric = fabric
        self._pipeline = pipeline
        self._nodes = {dpid(node): node for node in fabric.switches}
        tokens = count(1)
        self._switches = {
            number: SwitchState(node.name, number, lambda: next(tokens) & 0xFFFFFFFF)
            for number, node in self._nodes.items()
        }
        self._ports_down: set[int] = set()
        self._down: frozenset[int] = frozenset()
        self._problems: dict[str, None] = {}
        self._wanted = self._plan(fabric.switches)

    def handle(self, event: Event, now_ns: int) -> list[Sent]:
        """What to send after an event at this time, in this order for each switch."""
        if event.dpid not in self._nodes:
            self._problems[f"switch {event.dpid:#x} is not in the fabric"] = None
            return []
        sent = self._dispatch(event, now_ns)
        for _, message in sent:
            self._pipeline.check(message)
        return sent

    def _dispatch(self, event: Event, now_ns: int) -> list[Sent]:
        switch = self._switches[event.dpid]
        match event:
            case SwitchConnected(ports=ports):
                return self._connect(switch, ports, now_ns)
            case PortChanged(port=port):
                self._see(switch, {port.number: port}, [port.number])
                return self._reroute()
            case BarrierDone(token=token):
                switch.acknowledge(token, now_ns)
            case SwitchGone():
                switch.disconnect()
        return []

    def _connect(
        self, switch: SwitchState, ports: tuple[PortState, ...], now_ns: int
    ) -> list[Sent]:
        reported = {port.number: port for port in ports}
        own = [port.number for port in self._fabric.ports_of[switch.name]]
        self._see(switch, reported, {*own, *reported})
        switch.disconnect()  # the rest of this connection is not sent differences twice
        sent = self._reroute()
        messages = switch.connect(self._wanted[switch.name].rules, self.generation, now_ns)
        self.generation = next_generation(self.generation)
        return sent + [(switch.dpid, message) for message in messages]

    def _see(
        self, switch: SwitchState, reported: dict[int, PortState], numbers: Iterable[int]
    ) -> None:
        """Note the state of some ports of a switch, and what contradicts the fabric."""
        own = {port.number: port for port in self._fabric.ports_of[switch.name]}
        for number in numbers:
            if number not in own:
                if number < FIRST_RESERVED_PORT:
                    self._note(switch, number, reported[number].name, "no port of the fabric")
                continue
            port, state = own[number], reported.get(number)
            if state is not None and state.name != port.name:
                self._note(switch, number, state.name, f"not {port.name}")
            up = state is not None and state.up
            (self._ports_down.discard if up else self._ports_down.add)(port.index)

    def _note(self, switch: SwitchState, number: int, name: str, what: str) -> None:
        self._problems[f"port {number} of {switch.name} is {name}, {what}"] = None

    def _reroute(self) -> list[Sent]:
        """Adapt the rules of all switches when links have failed or come back."""
        down = frozenset(self._fabric.port(index).link for index in self._ports_down)
        if down == self._down:
            return []
        planes = {self._fabric.links[link].plane for link in down ^ self._down}
        self._down = down
        affected = [node for node in self._fabric.switches if node.plane in planes]
        self._wanted |= self._plan(affected)
        sent: list[Sent] = []
        for node in affected:
            switch = self._switches[dpid(node)]
            messages = switch.update(self._wanted[node.name].rules)
            sent.extend((switch.dpid, message) for message in messages)
        return sent

    def _plan(self, nodes: Iterable[Node]) -> dict[str, _Wanted]:
        made = self.routing.all_rules(list(nodes), self._down)
        return {name: _Wanted(rules) for name, rules in made.items()}

    def path_of(
        self, src: str, dst: str, source_port: int, *, protocol: str = "udp", plane: int = 1
    ) -> tuple[Port, ...]:
        """The ports that a flow's packets leave by now; see `Routing.path_of`."""
        return self.routing.path_of(
            src, dst, source_port, protocol=protocol, plane=plane, down=self._down
        )

    def status(self) -> Status:
        """What is known of the network now."""
        switches = tuple(self._status_of(switch) for switch in self._switches.values())
        return Status(
            ready=all(entry.acknowledged for entry in switches),
            switches=switches,
            rules=sum(entry.rules for entry in switches),
            rules_hash=self._rules_hash(),
            links_down=tuple(self._ends(link) for link in sorted(self._down)),
            problems=tuple(self._problems),
        )

    def _status_of(self, switch: SwitchState) -> SwitchStatus:
        return SwitchStatus(
            switch.name,
            switch.dpid,
            switch.connected,
            switch.acknowledged,
            switch.connects,
            len(self._wanted[switch.name].rules),
            switch.install_ns,
        )

    def _ends(self, link: int) -> tuple[str, str]:
        first, second = (port for port in self._fabric.ports if port.link == link)
        return first.name, second.name

    def _rules_hash(self) -> str:
        whole = hashlib.blake2b(digest_size=8)
        for name, wanted in sorted(self._wanted.items()):
            if not wanted.digest:
                text = "\n".join(sorted(map(str, wanted.rules.values())))
                wanted.digest = hashlib.blake2b(text.encode(), digest_size=16).digest()
            whole.update(name.encode() + wanted.digest)
        return whole.hexdigest()
