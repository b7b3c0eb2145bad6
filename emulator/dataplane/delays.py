"""PURE: what links and switches add to a packet's way where they delay packets themselves.

A frame leaves a queue when its transmission starts, so all the rest is added where it comes in: the
time of the link until its last byte (or, cut-through, its header) is there, and then the latency of
the switch. The eBPF program `wire_delay` does the sum; this says with which numbers. Added up over
a path they are `emulator.timing.one_way_ns`, which the tests hold them against.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from emulator import timing
from emulator.spec.model import CUT_THROUGH, SwitchSpec
from topologies.errors import SpecError
from topologies.model import Fabric, Node, Port, Role
from traffic.wire import wire_bytes

NUMBERS = frozenset(range(256))
"""All numbers that a leaf or a host can have in an address."""

_PS_PER_NS = 1_000
_PS_PER_S = 1_000_000_000_000
_MAX_NS = 2**32 - 1


@dataclass(frozen=True, slots=True)
class LinkDelay:
    """Between the moment at which a frame leaves a queue and that at which it comes out of a link.

    Attributes:
        link_ns: propagation, and the latency of the switch at whose port the link ends.
        header_ns: until the header is there, which a cut-through switch waits for.
        ps_per_byte: picoseconds that a byte takes (100 Gbit/s: 80).
        leaf: number of the leaf to which the port belongs; 0 on all other nodes.
        whole_hosts: numbers of the leaf's hosts, frames to which must be there in whole.
        whole_leaves: numbers of other leaves, frames to whose hosts must be there in whole.
    """

    link_ns: int
    header_ns: int
    ps_per_byte: int
    leaf: int
    whole_hosts: frozenset[int]
    whole_leaves: frozenset[int]

    def of(self, frame_bytes: int, leaf: int, host: int) -> int:
        """The delay of a frame to a host, ns, as the eBPF program computes it.

        Args:
            frame_bytes: Ethernet header to ICRC, without FCS.
            leaf: number of the destination's leaf.
            host: number of the destination below that leaf.
        """
        whole = host in self.whole_hosts if leaf == self.leaf else leaf in self.whole_leaves
        line_ps = wire_bytes(frame_bytes) * self.ps_per_byte
        taken_ns = (line_ps + _PS_PER_NS // 2) // _PS_PER_NS if whole else self.header_ns
        return self.link_ns + taken_ns


def link_delays(
    fabric: Fabric, emulated_bps: Sequence[int], switch: SwitchSpec, dilation: float
) -> dict[int, LinkDelay]:
    """What is added at every port, by port index.

    A cut-through switch waits for the whole frame where the egress is faster than the ingress.
    Where equal-cost egresses differ, the fastest one counts: the program does not know the choice.

    Args:
        fabric: the fabric, target units.
        emulated_bps: emulated line rate of each link, bit/s by link id.
        switch: forwarding mode and latency of every switch.
        dilation: emulated ns per target ns.

    Raises:
        SpecError: a delay is longer than the data plane can count.
    """
    return {
        port.index: _delay(fabric, port, emulated_bps[port.link], switch, dilation)
        for port in fabric.ports
    }


def _delay(
    fabric: Fabric, port: Port, emulated_bps: int, switch: SwitchSpec, dilation: float
) -> LinkDelay:
    node, link = fabric.by_name[port.node], fabric.link_of(port)
    latency_ns = switch.latency_ns if node.is_switch else 0
    link_ns = round((link.delay_ns + latency_ns) * dilation)
    if link_ns > _MAX_NS:
        rule = f"of {port.name} is more than 4.2 s when it is emulated"
        raise SpecError("delay", f"{link_ns} ns", rule, "lower dilation:")
    hosts = leaves = NUMBERS
    if node.is_switch and switch.mode == CUT_THROUGH:
        hosts, leaves = _faster(fabric, node, link.rate_bps)
    return LinkDelay(
        link_ns,
        round(timing.CUT_THROUGH_HEADER_BYTES * timing.BITS * timing.NS_PER_S / emulated_bps),
        round(timing.BITS * _PS_PER_S / emulated_bps),
        node.index if node.role is Role.LEAF else 0,
        hosts,
        leaves,
    )


def _faster(fabric: Fabric, node: Node, rate_bps: int) -> tuple[frozenset[int], frozenset[int]]:
    """Numbers of the node's own hosts and of leaves towards which it can send faster than this."""
    hosts: set[int] = set()
    leaves: set[int] = set()
    for port in fabric.ports_of[node.name]:
        if fabric.link_of(port).rate_bps > rate_bps:
            peer = fabric.by_name[fabric.port(port.peer).node]
            if peer.role is Role.HOST:
                hosts.add(fabric.attachment[peer.name, node.plane][1])
            elif peer.role is Role.LEAF:
                leaves.add(peer.index)
            else:
                leaves.update(_leaves_beyond(fabric, node, peer))
    return frozenset(hosts), frozenset(leaves - {node.index if node.role is Role.LEAF else 0})


def _leaves_beyond(fabric: Fabric, node: Node, peer: Node) -> Iterator[int]:
    """Numbers of the leaves that are nearer to a neighbour of a switch than to the switch."""
    here, there = _distances(fabric, node.name), _distances(fabric, peer.name)
    for leaf in fabric.switches:
        if leaf.role is Role.LEAF and leaf.name in there and there[leaf.name] < here[leaf.name]:
            yield leaf.index


def _distances(fabric: Fabric, start: str) -> dict[str, int]:
    """Links from one switch to all others of its plane."""
    found, queue = {start: 0}, deque([start])
    while queue:
        name = queue.popleft()
        for port in fabric.ports_of[name]:
            other = fabric.port(port.peer).node
            if other not in found and fabric.by_name[other].is_switch:
                found[other] = found[name] + 1
                queue.append(other)
    return found
