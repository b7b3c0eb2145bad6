"""Is this fabric one that can be built? Names, addresses, links, connectivity, limits.

Builders check what the user wrote; these checks look at the result, whoever made it.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator

from topologies.addressing import MAX_INDEX
from topologies.errors import SpecError
from topologies.model import Fabric, Node, Role
from topologies.reading import join

MAX_INTERFACE_NAME = 15
"""Linux: IFNAMSIZ is 16, the last byte is 0."""
MIN_MTU_BYTES, MAX_MTU_BYTES = 68, 65_535
"""RFC 791: every IPv4 link carries 68 bytes, no datagram exceeds 65,535."""
ETHERNET_OVERHEAD_BYTES = 18
"""Ethernet header and frame check sequence (IEEE 802.3)."""
_SEPARATOR = "-eth"


def verify(fabric: Fabric, path: str = "fabric") -> None:
    """Raise the first problem of a fabric, if it has one."""
    for problem in problems(fabric, path):
        raise problem


def problems(fabric: Fabric, path: str = "fabric") -> list[SpecError]:
    """All problems of a fabric, the gravest first; none for one that can be built."""
    structural = [*_node_problems(fabric, path), *_link_problems(fabric, path)]
    if structural:
        return structural
    return [
        *_limit_problems(fabric, path),
        *_name_problems(fabric, path),
        *_address_problems(fabric, path),
        *_seat_problems(fabric, path),
        *_connection_problems(fabric, path),
    ]


def _node_problems(fabric: Fabric, path: str) -> Iterator[SpecError]:
    """Names and datapath ids must be unique."""
    for name, times in Counter(node.name for node in fabric.nodes).items():
        if times > 1:
            yield SpecError(path, name, "names several nodes", "names must be unique")
    keys = Counter((node.role, node.plane, node.index) for node in fabric.nodes)
    for node in fabric.nodes:
        if keys[node.role, node.plane, node.index] > 1:
            place = f"number {node.index} among the {node.role}s of plane {node.plane}"
            yield SpecError(path, node.name, f"is not the only one with {place}")
    if not fabric.hosts:
        yield SpecError(path, [node.name for node in fabric.nodes], "has no host")


def _link_problems(fabric: Fabric, path: str) -> Iterator[SpecError]:
    """Links must be numbered in order and join two nodes that exist."""
    lanes = Counter((frozenset((link.a, link.b)), link.lane) for link in fabric.links)
    for position, link in enumerate(fabric.links):
        place, ends = join(join(path, "links"), position), [link.a, link.b]
        if link.id != position:
            yield SpecError(place, link.id, f"must have the id {position}, its position")
        for name in ends:
            if name not in fabric.by_name:
                yield SpecError(place, name, "is not a node of this fabric")
        if link.a == link.b:
            yield SpecError(place, ends, "links a node to itself")
        elif {fabric.by_name[name].role for name in ends if name in fabric.by_name} == {Role.HOST}:
            yield SpecError(place, ends, "links two hosts without a switch")
        if lanes[frozenset(ends), link.lane] > 1:
            yield SpecError(place, ends, f"have several links in lane {link.lane}")


def _limit_problems(fabric: Fabric, path: str) -> Iterator[SpecError]:
    """Rates, delays, MTU and buffer must be possible."""
    for link in fabric.links:
        place = f"{join(join(path, 'links'), link.id)} ({link.a} to {link.b})"
        if link.rate_bps <= 0:
            yield SpecError(place, link.rate_bps, "is not a rate above 0 bit/s")
        if link.delay_ns < 0:
            yield SpecError(place, link.delay_ns, "is a negative delay")
    mtu, buffer = fabric.mtu_bytes, fabric.buffer_bytes
    if not MIN_MTU_BYTES <= mtu <= MAX_MTU_BYTES:
        rule = f"must be within {MIN_MTU_BYTES} and {MAX_MTU_BYTES} bytes"
        yield SpecError(join(path, "mtu"), mtu, rule, "write e.g. 4200 B")
    frame = mtu + ETHERNET_OVERHEAD_BYTES
    if buffer < frame:
        rule = f"is smaller than one frame of {frame} bytes, so nothing could pass"
        yield SpecError(join(path, "buffer"), buffer, rule, "write e.g. 16 MB")


def _name_problems(fabric: Fabric, path: str) -> Iterator[SpecError]:
    """Interface names must fit the kernel; at most one error per node."""
    for node in fabric.nodes:
        if not node.name.isascii() or not node.name.isalnum():
            rule = "must be made of letters and digits"
            yield SpecError(path, node.name, rule, "write e.g. leaf1")
        longest = max((p.name for p in fabric.ports_of[node.name]), key=len, default=node.name)
        if len(longest) > MAX_INTERFACE_NAME:
            rule = (
                f"is an interface name of {len(longest)} characters, "
                f"and Linux allows {MAX_INTERFACE_NAME}"
            )
            yield SpecError(path, longest, rule, _shorter(node))


def _shorter(node: Node) -> str:
    digits = MAX_INTERFACE_NAME - len(node.name) - len(_SEPARATOR)
    if digits < 1:
        most = MAX_INTERFACE_NAME - len(_SEPARATOR) - 1
        return f"give {node.name} a name of at most {most} characters"
    advice = f"give {node.name} at most {10**digits - 1} links"
    if node.index >= 10:
        advice += f", or use fewer than {10 ** (len(str(node.index)) - 1)} {node.role}s"
    return advice


def _address_problems(fabric: Fabric, path: str) -> Iterator[SpecError]:
    """Every number in an address must be 1..254, and every address must have one host."""
    for node in fabric.switches:
        if not (1 <= node.index <= MAX_INDEX and 1 <= node.plane <= MAX_INDEX):
            rule = f"has index {node.index} in plane {node.plane}; both must be 1 to {MAX_INDEX}"
            yield SpecError(path, node.name, rule)
    holders: dict[tuple[int, int, int], str] = {}
    for (host, plane), (leaf, number) in fabric.attachment.items():
        if not all(1 <= part <= MAX_INDEX for part in (plane, leaf, number)):
            rule = f"would get 10.{plane}.{leaf}.{number}; each number must be 1 to {MAX_INDEX}"
            yield SpecError(path, host, rule, f"use at most {MAX_INDEX} hosts per leaf")
        other = holders.setdefault((plane, leaf, number), host)
        if other != host:
            yield SpecError(path, host, f"has the address 10.{plane}.{leaf}.{number} of {other}")


def _seat_problems(fabric: Fabric, path: str) -> Iterator[SpecError]:
    """The attachment of hosts and the host links must say the same."""
    linked = Counter(
        (link.a, link.plane, fabric.by_name[link.b].index)
        for link in fabric.links
        if not fabric.by_name[link.a].is_switch
    )
    seats = {(host, plane, leaf) for (host, plane), (leaf, _) in fabric.attachment.items()}
    for host, plane, leaf in seats - linked.keys():
        yield SpecError(path, host, f"is not linked to leaf {leaf} of plane {plane}, its seat")
    for host, plane, leaf in linked.keys() - seats:
        yield SpecError(
            path, host, f"is linked to leaf {leaf} of plane {plane} without a seat there"
        )
    for (host, plane, _), times in linked.items():
        if times > 1:
            yield SpecError(path, host, f"has {times} links in plane {plane}, and one is allowed")


def _connection_problems(fabric: Fabric, path: str) -> Iterator[SpecError]:
    """Within a plane everything must reach everything; every node must have a link."""
    for node in fabric.nodes:
        if not fabric.ports_of[node.name]:
            yield SpecError(path, node.name, "has no link")
    for plane in fabric.planes:
        members = {n for link in fabric.links if link.plane == plane for n in (link.a, link.b)}
        start = min(name for name in members if fabric.by_name[name].is_switch)
        lost = sorted(members - _reachable(fabric, plane, start))
        if lost:
            yield SpecError(path, lost, f"cannot be reached from {start} in plane {plane}")


def _reachable(fabric: Fabric, plane: int, start: str) -> set[str]:
    """Nodes that packets from a switch can reach; hosts do not forward."""
    seen, queue = {start}, deque([start])
    while queue:
        name = queue.popleft()
        if not fabric.by_name[name].is_switch:
            continue
        for port in fabric.ports_of[name]:
            peer = fabric.port(port.peer).node
            if fabric.link_of(port).plane == plane and peer not in seen:
                seen.add(peer)
                queue.append(peer)
    return seen
