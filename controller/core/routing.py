"""From the fabric and a policy's buckets to the rules of each switch, and to the path of a flow.

A switch sends its own hosts' packets to their ports (one rule each). For each other leaf of its
plane it has one rule per bucket and transport, which compares six bits of the UDP or TCP source
port, and one rule for all other IP packets, which take the way of bucket 0. Leaves compare bits
0-5, spines bits 6-11 and the switches between them bits 8-13, so that a later choice does not
depend on the first one (polarisation).
Everything else is dropped: nothing floods, and addresses are resolved on the hosts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network

from controller.core import pipeline
from controller.core.buckets import BUCKETS
from controller.core.graph import NONE_DOWN, Graph
from controller.core.messages import (
    ETH_TYPE_IPV4,
    IP_PROTO_TCP,
    IP_PROTO_UDP,
    Match,
    Output,
    Rule,
    RuleKey,
)
from controller.policies.base import Candidate, Group, Policy, Spread, check_spread
from topologies.addressing import host_ip, leaf_prefix
from topologies.errors import SpecError
from topologies.model import Fabric, Node, Port, Role

Rules = Mapping[RuleKey, Rule]

PORT_SHIFT = {Role.LEAF: 0, Role.SPINE: 6, Role.AGG: 8}
"""Lowest bit of the source port that a switch of this role compares. RoCEv2 has 14 random bits, so
spines and aggregation switches have four in common; their tables are shuffled each in its own way.
"""

BUCKET_BITS = BUCKETS - 1
PROTOCOLS = {"tcp": IP_PROTO_TCP, "udp": IP_PROTO_UDP}
"""Transports whose source port chooses the bucket; all other packets are in bucket 0."""

_MISS = Rule(pipeline.MISS.priority, Match())


def bucket_of(protocol: str, source_port: int, role: Role) -> int:
    """The bucket of a packet at a switch of this role."""
    return source_port >> PORT_SHIFT[role] & BUCKET_BITS if protocol in PROTOCOLS else 0


@dataclass(frozen=True, slots=True)
class _Answer:
    """What the policy said for a state of the ways, and the rules that say the same."""

    candidates: tuple[Candidate, ...]
    spread: Spread
    rules: tuple[Rule, ...]


class Routing:
    """Rules and paths of a whole fabric; pure, and quick when only a few links have changed.

    Args:
        fabric: what to route in.
        policy: shares out the buckets.
        seed: the run's seed; the same seed gives the same paths.

    Raises:
        SpecError: a switch has more ways to a leaf than there are buckets.
    """

    def __init__(self, fabric: Fabric, policy: Policy, seed: int) -> None:
        self.fabric = fabric
        self.policy = policy
        self._seed = seed
        self._graph = Graph(fabric)
        self._hosts = self._hosts_by_leaf()
        self._live: dict[str, tuple[frozenset[int], dict[str, tuple[Candidate, ...]]]] = {}
        self._normal = {leaf.name: self._candidates(leaf, NONE_DOWN) for leaf in self._graph.leaves}
        self._answers: dict[tuple[str, str], _Answer] = {}
        self._check_widths()

    def rules(self, switch: Node, down: AbstractSet[int] = NONE_DOWN) -> Rules:
        """All rules of a switch while the links with these ids are down."""
        return self.all_rules([switch], down)[switch.name]

    def all_rules(
        self, switches: list[Node], down: AbstractSet[int] = NONE_DOWN
    ) -> dict[str, Rules]:
        """The rules of some switches, by name; quicker than one after the other."""
        made = {node.name: {rule.key: rule for rule in self._own_rules(node)} for node in switches}
        for leaf in self._graph.leaves:
            candidates = self._candidates(leaf, down)
            for node in switches:
                if node.name in candidates:
                    answer = self._answer(node, leaf, candidates[node.name])
                    made[node.name].update((rule.key, rule) for rule in answer.rules)
        return dict(made)

    def spread(self, switch: Node, leaf: Node, down: AbstractSet[int] = NONE_DOWN) -> Spread:
        """The policy's answer for a switch and a destination leaf of its plane."""
        candidates = self._candidates(leaf, down)
        if switch.name not in candidates:
            return Spread()
        return self._answer(switch, leaf, candidates[switch.name]).spread

    def path_of(
        self,
        src: str,
        dst: str,
        source_port: int,
        *,
        protocol: str = "udp",
        plane: int = 1,
        down: AbstractSet[int] = NONE_DOWN,
    ) -> tuple[Port, ...]:
        """The ports that the packets of a flow leave by, from the sending host's on.

        Args:
            src: name of the sending host.
            dst: name of the receiving host.
            source_port: UDP or TCP source port, as it is in the packets.
            protocol: ``udp``, ``tcp``, or any other IP protocol.
            plane: the plane that it travels in; KeyError when a host is not attached to it.
            down: ids of the links that are down.

        Returns:
            The ports in order, the last one towards `dst`; empty when there is no way.
        """
        leaf_index, number = self.fabric.attachment[dst, plane]
        goal = self._leaf(plane, leaf_index)
        port = self._port_towards_leaf(src, plane)
        path = [port]
        while (here := self._peer(port)).name != goal.name:
            spread = self.spread(here, goal, down)
            found = spread.port(bucket_of(protocol, source_port, here.role), number)
            if found is None:
                return ()
            port = self.fabric.ports_of[here.name][found - 1]
            path.append(port)
        path.append(self.fabric.port(self._port_towards_leaf(dst, plane).peer))
        return () if any(port.link in down for port in path) else tuple(path)

    def _peer(self, port: Port) -> Node:
        return self.fabric.by_name[self.fabric.port(port.peer).node]

    def _leaf(self, plane: int, index: int) -> Node:
        for leaf in self._graph.leaves:
            if (leaf.plane, leaf.index) == (plane, index):
                return leaf
        raise KeyError((plane, index))

    def _port_towards_leaf(self, host: str, plane: int) -> Port:
        for port in self.fabric.ports_of[host]:
            if self.fabric.link_of(port).plane == plane:
                return port
        raise KeyError((host, plane))

    def _hosts_by_leaf(self) -> dict[str, tuple[tuple[str, int], ...]]:
        names = {(leaf.plane, leaf.index): leaf.name for leaf in self._graph.leaves}
        hosts: dict[str, list[tuple[str, int]]] = {leaf.name: [] for leaf in self._graph.leaves}
        for (host, plane), (leaf, number) in self.fabric.attachment.items():
            hosts[names[plane, leaf]].append((host, number))
        return {leaf: tuple(entries) for leaf, entries in hosts.items()}

    def _check_widths(self) -> None:
        for leaf in self._graph.leaves:
            for switch, candidates in self._normal[leaf.name].items():
                if len(candidates) > BUCKETS:
                    rule = f"is more ways from {switch} to {leaf.name} than the {BUCKETS} buckets"
                    way_out = "use fewer spines or fewer parallel links"
                    raise SpecError("fabric", len(candidates), rule, way_out)

    def _candidates(self, leaf: Node, down: AbstractSet[int]) -> dict[str, tuple[Candidate, ...]]:
        """The ways of every switch towards a leaf, by the switch's name."""
        known = self._live.get(leaf.name)
        if known is not None and known[0] == down:
            return known[1]
        made = {}
        for switch, carried in self._graph.capacities(leaf.name, down).items():
            made[switch] = tuple(
                Candidate(hop.port, hop.name, hop.neighbour, hop.rate_bps, carried[hop.port])
                for hop in self._graph.ways(switch, leaf.name)
            )
        self._live[leaf.name] = (frozenset(down), made)
        return made

    def _answer(self, switch: Node, leaf: Node, candidates: tuple[Candidate, ...]) -> _Answer:
        known = self._answers.get((switch.name, leaf.name))
        if known is not None and known.candidates == candidates:
            return known
        normal = self._normal[leaf.name][switch.name]
        group = Group(switch, leaf, self._seed, candidates, normal, self._hosts[leaf.name])
        spread = self.policy.spread(group)
        check_spread(self.policy.name, group, spread)
        answer = _Answer(candidates, spread, tuple(self._rules_towards(group, spread)))
        self._answers[switch.name, leaf.name] = answer
        return answer

    def _own_rules(self, switch: Node) -> Iterator[Rule]:
        yield _MISS
        if switch.role is not Role.LEAF:
            return
        for host, _ in self._hosts[switch.name]:
            port = self.fabric.port(self._port_towards_leaf(host, switch.plane).peer)
            match = _host_match(host_ip(self.fabric, host, switch.plane))
            yield Rule(pipeline.OWN_HOST.priority, match, (Output(port.number),))

    def _rules_towards(self, group: Group, spread: Spread) -> Iterator[Rule]:
        if not spread.buckets:
            return
        leaf = group.leaf
        names = {number: host for host, number in group.hosts}
        for number, port in spread.hosts:
            match = _host_match(host_ip(self.fabric, names[number], leaf.plane))
            yield Rule(pipeline.REMOTE_HOST.priority, match, (Output(port),))
        prefix = leaf_prefix(leaf.plane, leaf.index)
        yield Rule(
            pipeline.REMOTE_LEAF.priority,
            _leaf_match(prefix),
            (Output(spread.buckets[0]),),
        )
        if len(spread.buckets) == 1 or len(group.candidates) == 1:
            return
        for bucket, port in enumerate(spread.buckets):
            for protocol in PROTOCOLS:
                match = _bucket_match(prefix, protocol, bucket, group.switch.role)
                yield Rule(pipeline.BUCKET.priority, match, (Output(port),))


@lru_cache(maxsize=1 << 14)
def _host_match(host: str) -> Match:
    return Match.of(eth_type=ETH_TYPE_IPV4, ipv4_dst=int(IPv4Address(host)))


@lru_cache(maxsize=1 << 12)
def _masked(prefix: str) -> tuple[int, int]:
    network = IPv4Network(prefix)
    return int(network.network_address), int(network.netmask)


@lru_cache(maxsize=1 << 12)
def _leaf_match(prefix: str) -> Match:
    return Match.of(eth_type=ETH_TYPE_IPV4, ipv4_dst=_masked(prefix))


@lru_cache(maxsize=1 << 16)
def _bucket_match(prefix: str, protocol: str, bucket: int, role: Role) -> Match:
    shift = PORT_SHIFT[role]
    return Match.of(
        eth_type=ETH_TYPE_IPV4,
        ip_proto=PROTOCOLS[protocol],
        ipv4_dst=_masked(prefix),
        **{f"{protocol}_src": (bucket << shift, BUCKET_BITS << shift)},
    )
