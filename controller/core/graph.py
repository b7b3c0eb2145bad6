"""The ways from each switch towards each leaf, and what they can carry while links are down.

The ways are the links on shortest paths of the fabric *as built*. They form a graph without
cycles per destination, so no mixture of old and new rules on different switches can loop. A link
that is down only takes ways (and capacity) out; it never adds one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property

from topologies.model import Fabric, Node, Role

NONE_DOWN: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Hop:
    """One direction of a link between switches.

    Attributes:
        port: number of the port on the switch that sends.
        name: name of that port's interface.
        link: id of the link.
        neighbour: name of the switch at the other end.
        rate_bps: line rate, bit/s.
    """

    port: int
    name: str
    link: int
    neighbour: str
    rate_bps: int


class Graph:
    """Shortest-path ways of a fabric, per plane."""

    def __init__(self, fabric: Fabric) -> None:
        self.fabric = fabric
        self._hops = {node.name: self._hops_of(node) for node in fabric.switches}
        self._ways: dict[tuple[str, str], tuple[Hop, ...]] = {}
        self._feeding: dict[str, tuple[str, ...]] = {}
        for leaf in self.leaves:
            self._explore(leaf)

    @cached_property
    def leaves(self) -> tuple[Node, ...]:
        """All leaves, of all planes."""
        return tuple(node for node in self.fabric.switches if node.role is Role.LEAF)

    def _hops_of(self, node: Node) -> tuple[Hop, ...]:
        hops = []
        for port in self.fabric.ports_of[node.name]:
            link = self.fabric.link_of(port)
            neighbour = self.fabric.by_name[self.fabric.port(port.peer).node]
            if neighbour.is_switch:
                hops.append(Hop(port.number, port.name, link.id, neighbour.name, link.rate_bps))
        return tuple(hops)

    def _explore(self, leaf: Node) -> None:
        """Find all ways towards one leaf by breadth-first search from it."""
        distance = {leaf.name: 0}
        order, queue = [], deque([leaf.name])
        while queue:
            here = queue.popleft()
            order.append(here)
            for hop in self._hops[here]:
                if hop.neighbour not in distance:
                    distance[hop.neighbour] = distance[here] + 1
                    queue.append(hop.neighbour)
        for name in order[1:]:
            nearer = distance[name] - 1
            hops = tuple(h for h in self._hops[name] if distance[h.neighbour] == nearer)
            self._ways[name, leaf.name] = hops
        self._feeding[leaf.name] = tuple(order[1:])

    def ways(self, switch: str, leaf: str) -> tuple[Hop, ...]:
        """The links on shortest paths, by port number; empty when there is none."""
        return self._ways.get((switch, leaf), ())

    def capacities(
        self, leaf: str, down: AbstractSet[int] = NONE_DOWN
    ) -> dict[str, dict[int, int]]:
        """What each way towards a leaf can carry, bit/s; 0 when it leads nowhere now.

        A way carries its own rate or its part of what the next switch can pass on, whichever is
        less; parallel links to one neighbour share that by their rates.

        Args:
            leaf: name of the destination.
            down: ids of the links that are down.

        Returns:
            switch -> port number -> bit/s, for every switch with a way as built.
        """
        carried: dict[str, dict[int, int]] = {}
        for switch in self._feeding[leaf]:
            carried[switch] = self._carried(switch, leaf, down, carried)
        return carried

    def _carried(
        self,
        switch: str,
        leaf: str,
        down: AbstractSet[int],
        nearer: dict[str, dict[int, int]],
    ) -> dict[int, int]:
        hops = self._ways[switch, leaf]
        live: dict[str, int] = {}
        for hop in hops:
            if hop.link not in down:
                live[hop.neighbour] = live.get(hop.neighbour, 0) + hop.rate_bps
        carried = {}
        for hop in hops:
            onward = hop.rate_bps
            if hop.neighbour != leaf and hop.link not in down:
                passed = sum(nearer[hop.neighbour].values())
                onward = min(onward, passed * hop.rate_bps // live[hop.neighbour])
            carried[hop.port] = 0 if hop.link in down else onward
        return carried
