"""PURE: a fabric as text: a tree of switches and hosts, tables of links and paths, a graph."""

from __future__ import annotations

from emulator.pairs import pair_classes
from emulator.results.format import duration_ns, rate_bps, significant, size_bytes
from emulator.tables import aligned, section
from topologies.addressing import dpid, host_ip, host_mac
from topologies.bisection import bisection_bps
from topologies.model import Fabric, Link, Node, Port, Role
from topologies.paths import oversubscription


def render(fabric: Fabric) -> str:
    """Everything about a fabric, without a final newline."""
    lines = [_headline(fabric), ""]
    for plane in fabric.planes:
        lines += section(f"Plane {plane}", _tree(fabric, plane))
    lines += section("Links between switches", _switch_links(fabric))
    lines += section("Paths between hosts", _paths(fabric))
    return "\n".join(lines).rstrip()


def _headline(fabric: Fabric) -> str:
    count = {role: sum(node.role is role for node in fabric.nodes) for role in Role}
    between = f"{count[Role.AGG]} aggregation switches, " if count[Role.AGG] else ""
    return (
        f"{fabric.kind}: {count[Role.HOST]} hosts, {count[Role.LEAF]} leaves, {between}"
        f"{count[Role.SPINE]} spines, {len(fabric.links)} links; "
        f"{size_bytes(fabric.buffer_bytes)} of buffer per switch, MTU {fabric.mtu_bytes} B"
    )


def _tree(fabric: Fabric, plane: int) -> list[str]:
    """Spines and what is below them, then each leaf with its hosts."""
    ratios = oversubscription(fabric, plane)
    bisection = rate_bps(bisection_bps(fabric, plane))
    rows: list[tuple[str, ...]] = [(f"bisection {bisection} in each direction",)]
    members = [node for node in fabric.switches if node.plane == plane]
    for role in (Role.SPINE, Role.AGG):
        rows += [(n.name, f"dpid {dpid(n):#x}") for n in members if n.role is role]
    for node in (member for member in members if member.role is Role.LEAF):
        ratio = (
            f"oversubscription {significant(ratios[node.name])}:1" if node.name in ratios else ""
        )
        rows.append((node.name, f"dpid {dpid(node):#x}", ratio))
        rows += [_host_row(fabric, node, port) for port in _host_ports(fabric, node)]
    return [*aligned(rows[:1]), *aligned(rows[1:])]


def _host_ports(fabric: Fabric, leaf: Node) -> list[Port]:
    """Ports of a leaf that lead to hosts."""
    ports = fabric.ports_of[leaf.name]
    return [p for p in ports if not fabric.by_name[fabric.port(p.peer).node].is_switch]


def _host_row(fabric: Fabric, leaf: Node, port: Port) -> tuple[str, ...]:
    link, host = fabric.link_of(port), fabric.port(port.peer)
    return (
        f"  {host.node}",
        host_ip(fabric, host.node, leaf.plane),
        host_mac(fabric, host.node, leaf.plane),
        f"{host.name} to {port.name}",
        rate_bps(link.rate_bps),
        duration_ns(link.delay_ns),
    )


def _switch_links(fabric: Fabric) -> list[str]:
    rows: list[tuple[str, ...]] = [("link", "plane", "lane", "interfaces", "rate", "delay")]
    for link in fabric.links:
        if fabric.by_name[link.a].is_switch:
            a, b = _ends(fabric, link)
            rows.append(
                (
                    f"{link.a} {link.b}",
                    str(link.plane),
                    str(link.lane),
                    f"{a} to {b}",
                    rate_bps(link.rate_bps),
                    duration_ns(link.delay_ns),
                )
            )
    return aligned(rows, right=(1, 2, 4, 5)) if len(rows) > 1 else []


def _ends(fabric: Fabric, link: Link) -> tuple[str, str]:
    first = fabric.ports[2 * link.id]
    return first.name, fabric.port(first.peer).name


def _paths(fabric: Fabric) -> list[str]:
    rows: list[tuple[str, ...]] = [
        ("kind", "plane", "example", "links", "slowest", "delay", "paths")
    ]
    rows += [
        (
            pair.name,
            str(pair.plane),
            f"{pair.src} to {pair.dst}",
            str(len(pair.links)),
            rate_bps(min(link.rate_bps for link in pair.links)),
            duration_ns(sum(link.delay_ns for link in pair.links)),
            f"{pair.paths:,}",
        )
        for pair in pair_classes(fabric)
    ]
    return aligned(rows, right=(1, 3, 4, 5, 6)) if len(rows) > 1 else []


_SHAPES = {Role.HOST: "ellipse", Role.LEAF: "box", Role.AGG: "box", Role.SPINE: "box"}


def dot(fabric: Fabric) -> str:
    """The fabric as an undirected Graphviz graph, spines on top."""
    lines = ["graph fabric {", "  rankdir=BT;", f'  label="{fabric.kind}";']
    for role in Role:
        nodes = [node for node in fabric.nodes if node.role is role]
        names = "; ".join(f'"{node.name}"' for node in nodes)
        lines.append(f"  {{ rank=same; node [shape={_SHAPES[role]}]; {names} }}")
    for link in fabric.links:
        label = f"{rate_bps(link.rate_bps)}\\n{duration_ns(link.delay_ns)}"
        lines.append(f'  "{link.a}" -- "{link.b}" [label="{label}"];')
    return "\n".join([*lines, "}"])
