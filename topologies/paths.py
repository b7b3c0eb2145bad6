"""Ways through a fabric: equal-cost paths, hop counts, delays, and what its cuts can carry.

A path is the tuple of the ports that a packet leaves through: the host's, the first leaf's, and
so on up to the port that faces the destination. Its length is the number of links.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from functools import cached_property

from topologies.model import Fabric, Port, Role

Path = tuple[int, ...]
"""Port indices (`Port.index`) in travelling order."""


class Paths:
    """Equal-cost (fewest links) paths of one fabric; answers are kept, so ask one object.

    Attributes:
        fabric: the fabric.
    """

    def __init__(self, fabric: Fabric) -> None:
        self.fabric = fabric
        self._distances: dict[tuple[str, int], dict[str, int]] = {}
        self._delays: dict[tuple[str, int], dict[str, int]] = {}

    @cached_property
    def _neighbours(self) -> dict[tuple[str, int], list[tuple[Port, str]]]:
        """(node, plane) -> its ports in that plane and the nodes behind them."""
        result: dict[tuple[str, int], list[tuple[Port, str]]] = {}
        for port in self.fabric.ports:
            plane = self.fabric.link_of(port).plane
            peer = self.fabric.port(port.peer).node
            result.setdefault((port.node, plane), []).append((port, peer))
        return result

    def between(self, src: str, dst: str, plane: int = 1) -> tuple[Path, ...]:
        """All equal-cost paths, in the order of port numbers; one empty path for src == dst.

        Raises:
            KeyError: a host is not in that plane.
        """
        self._require(src, plane)
        return tuple(self._walk(src, self._to(dst, plane), plane))

    def hops(self, src: str, dst: str, plane: int = 1) -> int:
        """Number of links of an equal-cost path: 2 below one leaf, 4 across a spine."""
        self._require(src, plane)
        return self._to(dst, plane)[src]

    def delay_ns(self, src: str, dst: str, plane: int = 1) -> int:
        """Smallest sum of propagation delays among the equal-cost paths, ns."""
        self._require(src, plane)
        return self._delays_to(dst, plane)[src]

    def _require(self, host: str, plane: int) -> None:
        if (host, plane) not in self.fabric.attachment:
            raise KeyError(f"{host} is not in plane {plane}")

    def _to(self, dst: str, plane: int) -> dict[str, int]:
        """Links from every node to a host; hosts do not forward."""
        self._require(dst, plane)
        if (dst, plane) not in self._distances:
            self._distances[dst, plane] = self._search(dst, plane)
        return self._distances[dst, plane]

    def _search(self, dst: str, plane: int) -> dict[str, int]:
        distances, queue = {dst: 0}, deque([dst])
        while queue:
            node = queue.popleft()
            if node != dst and not self.fabric.by_name[node].is_switch:
                continue
            for _, peer in self._neighbours[node, plane]:
                if peer not in distances:
                    distances[peer] = distances[node] + 1
                    queue.append(peer)
        return distances

    def _delays_to(self, dst: str, plane: int) -> dict[str, int]:
        """Smallest delay from every node to a host over equal-cost paths, nearest nodes first."""
        if (dst, plane) not in self._delays:
            distances, delays = self._to(dst, plane), {dst: 0}
            for node in list(distances)[1:]:
                delays[node] = min(
                    self.fabric.link_of(port).delay_ns + delays[peer]
                    for port, peer in self._onward(node, distances, plane)
                )
            self._delays[dst, plane] = delays
        return self._delays[dst, plane]

    def _onward(
        self, node: str, distances: dict[str, int], plane: int
    ) -> Iterator[tuple[Port, str]]:
        """The ports of a node that lead one link closer, and the nodes behind them."""
        for port, peer in self._neighbours[node, plane]:
            closer = distances[peer] == distances[node] - 1
            if closer and (not distances[peer] or self.fabric.by_name[peer].is_switch):
                yield port, peer

    def _walk(self, node: str, distances: dict[str, int], plane: int) -> Iterator[Path]:
        if not distances[node]:
            yield ()
            return
        for port, peer in self._onward(node, distances, plane):
            for rest in self._walk(peer, distances, plane):
                yield (port.index, *rest)


def links_of(fabric: Fabric, path: Path) -> tuple[int, ...]:
    """Ids of the links of a path, in travelling order."""
    return tuple(fabric.port(index).link for index in path)


def nodes_of(fabric: Fabric, path: Path) -> tuple[str, ...]:
    """Names of the nodes of a path, both ends included; none for an empty path."""
    if not path:
        return ()
    last = fabric.port(fabric.port(path[-1]).peer).node
    return (*(fabric.port(index).node for index in path), last)


def path_delay_ns(fabric: Fabric, path: Path) -> int:
    """Sum of the propagation delays of a path, ns."""
    return sum(fabric.links[link].delay_ns for link in links_of(fabric, path))


def path_rate_bps(fabric: Fabric, path: Path) -> int:
    """Rate of the slowest link of a path, bit/s; ValueError for an empty path."""
    return min(fabric.links[link].rate_bps for link in links_of(fabric, path))


def downlink_bps(fabric: Fabric, plane: int = 1) -> dict[str, int]:
    """Sum of the host links of each leaf of a plane, bit/s."""
    leaves = [node for node in fabric.switches if node.role is Role.LEAF and node.plane == plane]
    sums = {leaf.name: 0 for leaf in leaves}
    for link in fabric.links:
        if link.plane == plane and not fabric.by_name[link.a].is_switch:
            sums[link.b] += link.rate_bps
    return sums


def uplink_bps(fabric: Fabric, plane: int = 1) -> dict[str, dict[str, int]]:
    """Capacity of each leaf of a plane to each switch above, parallel links added up, bit/s."""
    sums: dict[str, dict[str, int]] = {leaf: {} for leaf in downlink_bps(fabric, plane)}
    for link in fabric.links:
        if link.plane == plane and link.a in sums:
            sums[link.a][link.b] = sums[link.a].get(link.b, 0) + link.rate_bps
    return sums


def oversubscription(fabric: Fabric, plane: int = 1) -> dict[str, float]:
    """Host bandwidth over uplink bandwidth of each leaf that has uplinks; 1.0 is 1:1."""
    uplinks = uplink_bps(fabric, plane)
    return {
        leaf: down / sum(uplinks[leaf].values())
        for leaf, down in downlink_bps(fabric, plane).items()
        if uplinks[leaf]
    }
