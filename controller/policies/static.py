"""Fixed paths: the destination host chooses the way, or the user does, whatever the flow.

By default the destination host's number chooses the spine, by remainder ("D-mod-k" routing, as
InfiniBand subnet managers lay it out): all packets to a host take one path, the hosts of a leaf
are spread evenly over the spines and then over parallel links, and flows of a permutation that
keeps its offset never meet. Where aggregation switches stand between leaves and spines, the number
is divided by how many a pod has before they choose a spine. ``paths`` overrides it for single
destinations. While a fixed way is down, its destinations are spread over the ways that work.

Options:
    by: ``host`` (default) or ``leaf``: whose number chooses the way.
    paths: {SWITCH: {DESTINATION: WAY}}; the destination is a host or a leaf, the way a
        neighbouring switch or an interface: ``{leaf1: {h9: spine2, leaf4: leaf1-eth6}}``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from controller.core.graph import Graph
from controller.policies.base import Candidate, Group, Spread
from topologies.errors import UnknownNameError
from topologies.model import Fabric, Role
from topologies.paths import uplink_bps
from topologies.reading import Reader, as_choice, as_mapping, join

Paths = Mapping[tuple[str, str], str]
"""(switch, destination leaf or host) -> name of a neighbour or of an interface."""


class Static:
    """The policy ``static``.

    Args:
        above: plane -> how many switches a leaf is linked to.
        by: ``host`` or ``leaf``.
        paths: the destinations with a way of their own.
    """

    name = "static"

    def __init__(
        self, above: Mapping[int, int], by: str = "host", paths: Paths | None = None
    ) -> None:
        self._above = above
        self._by = by
        self._paths = dict(paths or {})

    def spread(self, group: Group) -> Spread:
        """One port for the leaf as a whole, and one for each host that differs from it."""
        if not any(candidate.usable for candidate in group.candidates):
            return Spread()
        for_leaf = self._choose(group, group.leaf.index, group.leaf.name)
        single = []
        for name, number in group.hosts:
            chosen_by = number if self._by == "host" else group.leaf.index
            port = self._choose(group, chosen_by, name, group.leaf.name)
            if port != for_leaf:
                single.append((number, port))
        return Spread((for_leaf,), tuple(single))

    def _choose(self, group: Group, number: int, *names: str) -> int:
        """The port for a destination with this number and, most specific first, these names."""
        wishes = (self._paths.get((group.switch.name, name)) for name in names)
        wish = next(filter(None, wishes), None)
        pool = [c for c in group.candidates if wish in (None, c.neighbour, c.name)]
        number -= 1
        if group.switch.role is Role.AGG:
            number //= self._above.get(group.leaf.plane, 1)
        chosen = self._by_remainder(pool, number, group.leaf.plane)
        if chosen.usable:
            return chosen.port
        usable = [c for c in group.candidates if c.usable]
        return self._by_remainder(usable, number, group.leaf.plane).port

    def _by_remainder(self, pool: Sequence[Candidate], number: int, plane: int) -> Candidate:
        neighbours = list(dict.fromkeys(candidate.neighbour for candidate in pool))
        neighbour = neighbours[number % len(neighbours)]
        lanes = [candidate for candidate in pool if candidate.neighbour == neighbour]
        stride = max(len(neighbours), self._above.get(plane, 1))
        return lanes[number // stride % len(lanes)]


def build(options: Reader, fabric: Fabric) -> Static:
    """Make the policy from its options, whose names must be those of the fabric."""
    above = {
        plane: max((len(ways) for ways in uplink_bps(fabric, plane).values()), default=1)
        for plane in fabric.planes
    }
    by = options.choice("by", ("host", "leaf"), "host", what="way to choose")
    return Static(above, by, _read_paths(options, fabric))


def _read_paths(options: Reader, fabric: Fabric) -> Paths:
    graph = Graph(fabric)
    switches = {node.name for node in fabric.switches}
    paths: dict[tuple[str, str], str] = {}
    for switch, wishes in options.get("paths", as_mapping, {}).items():
        place = join(options.at("paths"), switch)
        if switch not in switches:
            raise UnknownNameError(place, "switch", switch, switches)
        ways = _ways_by_goal(graph, switch)
        for goal, way in as_mapping(wishes, place).items():
            if goal not in ways:
                raise UnknownNameError(join(place, goal), "remote host or leaf", goal, ways)
            paths[switch, goal] = as_choice(way, join(place, goal), ways[goal], "way there")
    return paths


def _ways_by_goal(graph: Graph, switch: str) -> dict[str, list[str]]:
    """Neighbours and interfaces that lead from a switch to each remote leaf and host."""
    ways: dict[str, list[str]] = {}
    below: dict[tuple[int, int], list[str]] = {}
    for (host, plane), (leaf_index, _) in graph.fabric.attachment.items():
        below.setdefault((plane, leaf_index), []).append(host)
    for leaf in graph.leaves:
        hops = graph.ways(switch, leaf.name)
        names = [name for hop in hops for name in (hop.neighbour, hop.name)]
        if names:
            for goal in (leaf.name, *below.get((leaf.plane, leaf.index), ())):
                ways[goal] = list(dict.fromkeys(names))
    return ways
