"""A network of fake switches over a fabric: applies messages and walks packets through it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address

from controller.core.events import BarrierDone, Event, PortChanged, PortState, SwitchConnected
from controller.core.messages import Barrier, Message
from controller.core.network import Network
from tests.fakes.of_table import FakeTable
from topologies.addressing import dpid, host_ip
from topologies.model import Fabric, Port

ETH_TYPE_ARP = 0x0806
MAX_HOPS = 32


class BlackHole(Exception):
    """A packet was dropped on its way; the text says where."""


class Loop(Exception):
    """A packet came to a switch for the second time; the text says which."""


class WrongHost(Exception):
    """A packet arrived at a host that it was not addressed to."""


@dataclass(frozen=True)
class Packet:
    """The header fields of a packet that rules look at."""

    src: str
    dst: str
    protocol: str = "udp"
    source_port: int = 0xC000
    plane: int = 1

    def fields(self, fabric: Fabric) -> dict[str, int]:
        """Its fields by the names that matches use."""
        number = {"udp": 17, "tcp": 6, "icmp": 1}[self.protocol]
        fields = {
            "eth_type": 0x0800,
            "ip_proto": number,
            "ipv4_dst": int(IPv4Address(host_ip(fabric, self.dst, self.plane))),
        }
        if self.protocol != "icmp":
            fields[f"{self.protocol}_src"] = self.source_port
        return fields


class FakeNetwork:
    """Fake switches wired as a fabric says.

    Attributes:
        tables: the flow table of each switch, by datapath id.
        down: ids of the links that are down.
    """

    def __init__(self, fabric: Fabric) -> None:
        self.fabric = fabric
        self.down: set[int] = set()
        self.tables = {
            dpid(node): FakeTable(frozenset(p.number for p in fabric.ports_of[node.name]))
            for node in fabric.switches
        }
        self._dpids = {node.name: dpid(node) for node in fabric.switches}

    def table(self, switch: str) -> FakeTable:
        """The flow table of a switch by its name."""
        return self.tables[self._dpids[switch]]

    def apply(self, sent: Iterable[tuple[int, Message]]) -> list[Event]:
        """Deliver messages; returns the answers of the barriers among them."""
        answers: list[Event] = []
        for number, message in sent:
            self.tables[number].apply(message)
            if isinstance(message, Barrier):
                answers.append(BarrierDone(number, message.token))
        return answers

    def ports_as_reported(self, switch: str) -> tuple[PortState, ...]:
        """What a switch tells of its ports when it connects."""
        return tuple(
            PortState(port.number, port.name, port.link not in self.down)
            for port in self.fabric.ports_of[switch]
        )

    def connect_all(self, network: Network, now_ns: int = 0) -> None:
        """Connect every switch to a controller and let both talk until nothing is left to say."""
        for node in self.fabric.switches:
            self.connect(network, node.name, now_ns)

    def connect(self, network: Network, switch: str, now_ns: int = 0) -> None:
        """Connect one switch to a controller."""
        event = SwitchConnected(self._dpids[switch], self.ports_as_reported(switch))
        self.settle(network, [event], now_ns)

    def settle(self, network: Network, events: Iterable[Event], now_ns: int = 0) -> None:
        """Hand events to a controller, deliver what it sends, hand it the answers."""
        pending = list(events)
        while pending:
            pending += self.apply(network.handle(pending.pop(0), now_ns))

    def set_link(self, network: Network, link: int, up: bool) -> None:
        """Cut or restore a link; both of its switches tell the controller."""
        (self.down.discard if up else self.down.add)(link)
        ends = [port for port in self.fabric.ports if port.link == link]
        events: list[Event] = [
            PortChanged(self._dpids[port.node], PortState(port.number, port.name, up))
            for port in ends
            if port.node in self._dpids
        ]
        self.settle(network, events)

    def walk(self, packet: Packet) -> tuple[Port, ...]:
        """The ports that a packet leaves by, from its host to its destination.

        Raises:
            BlackHole: no rule, a rule that drops, or a link that is down.
            Loop: it came to a switch twice.
            WrongHost: it arrived elsewhere.
        """
        fields = packet.fields(self.fabric)
        port = self._host_port(packet.src, packet.plane)
        path = [port]
        seen: list[str] = []
        while True:
            if port.link in self.down:
                raise BlackHole(f"{packet}: the link of {port.name} is down")
            into = self.fabric.port(port.peer)
            if into.node not in self._dpids:
                break
            if into.node in seen:
                raise Loop(f"{packet}: {' '.join(seen)} {into.node}")
            seen.append(into.node)
            number = self.table(into.node).output(fields, into.number)
            if number is None:
                raise BlackHole(f"{packet}: dropped at {into.node}")
            port = self.fabric.ports_of[into.node][number - 1]
            path.append(port)
        if into.node != packet.dst:
            raise WrongHost(f"{packet}: arrived at {into.node}")
        return tuple(path)

    def _host_port(self, host: str, plane: int) -> Port:
        for port in self.fabric.ports_of[host]:
            if self.fabric.link_of(port).plane == plane:
                return port
        raise KeyError((host, plane))
