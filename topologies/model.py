"""Frozen dataclasses that say what exists: nodes, links, ports, fabric.

Rates are bit/s, delays ns, sizes bytes, all in target units (what the user wrote).
Indices of planes, leaves, spines and hosts start at 1, as in the names that people read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property


class Role(StrEnum):
    """What a node is."""

    HOST = "host"
    LEAF = "leaf"
    AGG = "agg"
    SPINE = "spine"


@dataclass(frozen=True)
class Node:
    """A host or a switch.

    Attributes:
        name: unique in the fabric, such as ``h1``, ``leaf2``, ``spine1`` (plane 2: ``p2leaf1``).
        role: host, leaf, aggregation switch (between leaves and spines) or spine.
        plane: the fabric plane of a switch; 0 for hosts, which may be in several.
        index: number of the node within its role and plane.
    """

    name: str
    role: Role
    plane: int
    index: int

    @property
    def is_switch(self) -> bool:
        """True for all but hosts."""
        return self.role is not Role.HOST


@dataclass(frozen=True)
class Link:
    """A full-duplex cable between two nodes; the ends' ports are numbered by `Fabric.ports`.

    Attributes:
        id: position in `Fabric.links`.
        a: name of the lower end (the host, the leaf, or the aggregation switch).
        b: name of the upper end (the leaf, the aggregation switch, or the spine).
        rate_bps: line rate of each direction, bit/s (preamble and gap included).
        delay_ns: propagation delay, ns.
        plane: the plane that it belongs to.
        lane: 1-based number among the parallel links of the same two nodes.
    """

    id: int
    a: str
    b: str
    rate_bps: int
    delay_ns: int
    plane: int = 1
    lane: int = 1


@dataclass(frozen=True)
class Port:
    """One end of a link.

    Attributes:
        index: position in `Fabric.ports` plus 1; identifies the port in all maps of the data plane.
        node: the node that it belongs to.
        number: 1-based number on its node, the OpenFlow port number on switches.
        link: id of its link.
        peer: index of the port at the other end.
    """

    index: int
    node: str
    number: int
    link: int
    peer: int

    @property
    def name(self) -> str:
        """The interface's name, as Mininet forms it: ``leaf1-eth3``."""
        return f"{self.node}-eth{self.number}"


@dataclass(frozen=True)
class Fabric:
    """The graph of hosts, switches and links.

    Attributes:
        kind: name of the builder that made it.
        nodes: hosts, then leaves, then aggregation switches, then spines.
        links: host links, then fabric links.
        buffer_bytes: shared packet buffer of each switch, bytes.
        mtu_bytes: IP MTU of every interface, bytes.
        attachment: (host, plane) -> (leaf index, host index on that leaf), the base of addresses.
    """

    kind: str
    nodes: tuple[Node, ...]
    links: tuple[Link, ...]
    buffer_bytes: int
    mtu_bytes: int
    attachment: Mapping[tuple[str, int], tuple[int, int]] = field(default_factory=dict)

    @cached_property
    def by_name(self) -> dict[str, Node]:
        """Node of each name."""
        return {node.name: node for node in self.nodes}

    @cached_property
    def ports(self) -> tuple[Port, ...]:
        """All ports: link 0's end a, its end b, link 1's end a, and so on."""
        numbers: dict[str, int] = {}
        ports: list[Port] = []
        for link in self.links:
            first = len(ports) + 1
            for node, index, peer in ((link.a, first, first + 1), (link.b, first + 1, first)):
                numbers[node] = numbers.get(node, 0) + 1
                ports.append(Port(index, node, numbers[node], link.id, peer))
        return tuple(ports)

    @cached_property
    def ports_of(self) -> dict[str, tuple[Port, ...]]:
        """Ports of each node, by ascending number."""
        grouped: dict[str, list[Port]] = {node.name: [] for node in self.nodes}
        for port in self.ports:
            grouped[port.node].append(port)
        return {name: tuple(ports) for name, ports in grouped.items()}

    @cached_property
    def hosts(self) -> tuple[Node, ...]:
        """All hosts."""
        return tuple(node for node in self.nodes if node.role is Role.HOST)

    @cached_property
    def switches(self) -> tuple[Node, ...]:
        """All switches, of all planes."""
        return tuple(node for node in self.nodes if node.is_switch)

    @cached_property
    def planes(self) -> tuple[int, ...]:
        """Numbers of the planes, ascending."""
        return tuple(sorted({link.plane for link in self.links}))

    def port(self, index: int) -> Port:
        """The port with this index (1-based)."""
        return self.ports[index - 1]

    def port_named(self, name: str) -> Port:
        """The port with this interface name; KeyError when there is none."""
        return self._port_names[name]

    @cached_property
    def _port_names(self) -> dict[str, Port]:
        return {port.name: port for port in self.ports}

    def link_of(self, port: Port) -> Link:
        """The link that a port ends."""
        return self.links[port.link]
