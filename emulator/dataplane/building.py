"""What a fabric needs of the kernel, as lists of netlink messages. PURE.

Interface indices are chosen here (a base + port index), so nothing has to be looked up later.
Switch ports live in the run's one namespace for switches, host ports each in their host's.

Where links delay packets, an ifb device holds what comes in and hands it back to its port when it
is time. One device serves many ports, but not all: fq lets no packet of a TCP socket go before an
earlier one of the same socket, so the links that a packet crosses one after the other need devices
of their own. They differ in what they come from: a host, a leaf or a spine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from emulator.dataplane.layout import FIRST_INTERFACE, MAX_PORTS
from emulator.dataplane.plane import Programs
from emulator.kernel import links, netlink, queues
from topologies.addressing import host_ip, host_mac
from topologies.model import Fabric, Port, Role
from topologies.settings import ClassRule

ETHERNET_BYTES = 14
PLANE_PREFIX = 16  # 10.<plane>.0.0/16 is on-link on the port of that plane
# Classes 6 and 7 (control, DSCP 48 and above) go first; the others share equally.
DEFAULT_LEAVES = (*(queues.LeafClass(1, 1) for _ in range(6)), *(queues.LeafClass(0, 1),) * 2)


def interface_index(port: int) -> int:
    """Interface index of a port in its namespace."""
    return FIRST_INTERFACE + port


def port_mac(fabric: Fabric, port: Port) -> str:
    """MAC address of a port: a host's from the address plan, a switch's from the port index."""
    if fabric.by_name[port.node].is_switch:
        return f"02:01:00:00:{port.index >> 8:02x}:{port.index & 255:02x}"
    return host_mac(fabric, port.node, fabric.link_of(port).plane)


def veth_pairs(fabric: Fabric, netns_fd: Callable[[str], int]) -> list[netlink.Message]:
    """All links; `netns_fd` gives a node's namespace."""

    def end(port: Port) -> links.End:
        index = interface_index(port.index)
        return links.End(port.name, index, port_mac(fabric, port), netns_fd(port.node))

    ports = fabric.ports
    return [
        links.veth_pair(end(ports[2 * link.id]), end(ports[2 * link.id + 1]), fabric.mtu_bytes)
        for link in fabric.links
    ]


@dataclass(frozen=True, slots=True)
class Delayer:
    """The device of a namespace that delays what comes from hosts, from leaves, or from spines."""

    name: str
    index: int
    mac: str


_FIRST_DELAYER = FIRST_INTERFACE + MAX_PORTS
_DELAYERS = {
    role: Delayer(f"delay-{role}", _FIRST_DELAYER + number, f"02:02:00:00:00:{number:02x}")
    for number, role in enumerate(Role)
}


def delayer(fabric: Fabric, port: Port) -> Delayer:
    """The device that delays what comes in at a port."""
    return _DELAYERS[fabric.by_name[fabric.port(port.peer).node].role]


def delayer_messages(
    fabric: Fabric, ports: Sequence[Port], programs: Programs
) -> list[netlink.Message]:
    """The devices that delay what comes in at these ports, which are all of a namespace."""
    needed = sorted({delayer(fabric, port) for port in ports}, key=lambda one: one.index)
    return [
        message
        for one in needed
        for message in (
            links.ifb(one.index, one.name, one.mac),
            queues.clsact(one.index, one.name),
            queues.bpf_filter(one.index, one.name, programs.wire_delay, 0, egress=True),
            queues.fq(one.index, one.name),
            links.up(one.index, one.name),
        )
    ]


def quantum_bytes(fabric: Fabric) -> int:
    """Bytes per turn of weight 1 in weighted sharing: one frame of the largest size."""
    return fabric.mtu_bytes + ETHERNET_BYTES


def leaf_classes(rules: Mapping[int, ClassRule] | None) -> tuple[queues.LeafClass, ...]:
    """Service of the eight classes of a port; `DEFAULT_LEAVES` where no rule says otherwise."""
    chosen = rules or {}
    return tuple(
        queues.LeafClass(chosen[tc].priority, chosen[tc].weight) if tc in chosen else default
        for tc, default in enumerate(DEFAULT_LEAVES)
    )


def port_messages(
    fabric: Fabric,
    port: Port,
    emulated_bps: int,
    programs: Programs,
    classes: Sequence[queues.LeafClass],
    burst_ns: int = queues.BURST_NS,
    delays_in_path: bool = False,
) -> list[netlink.Message]:
    """Everything that a port needs inside its namespace.

    Args:
        fabric: the fabric.
        port: of a switch or a host.
        emulated_bps: its rate.
        programs: to attach.
        classes: service of the eight classes.
        burst_ns: of the shaper.
        delays_in_path: what comes in is delayed, by the devices of `delayer_messages`.
    """
    index, name = interface_index(port.index), port.name
    return [
        queues.clsact(index, name),
        queues.bpf_filter(index, name, programs.egress, port.index, egress=True),
        *_ingress(fabric, port, programs, delays_in_path),
        *queues.shaper(index, name, emulated_bps, classes, quantum_bytes(fabric), burst_ns),
        links.up(index, name),
    ]


def _ingress(
    fabric: Fabric, port: Port, programs: Programs, delays_in_path: bool
) -> list[netlink.Message]:
    """Counts what comes in and gives RoCEv2 frames to a host's NIC; the rest may be delayed.

    At a switch the program of the delaying device counts, so that one program runs, not two.
    """
    index, name = interface_index(port.index), port.name
    is_switch = fabric.by_name[port.node].is_switch
    program = programs.wire_out if is_switch else programs.nic_receive
    counting = queues.bpf_filter(index, name, program, port.index, egress=False)
    if not delays_in_path:
        return [counting]
    delaying = queues.redirect(index, name, delayer(fabric, port).index)
    return [delaying] if is_switch else [counting, delaying]


def host_messages(fabric: Fabric, port: Port) -> list[netlink.Message]:
    """Address and permanent neighbours of a host port: no ARP ever reaches a switch."""
    plane = fabric.link_of(port).plane
    index = interface_index(port.index)
    own = links.address(index, host_ip(fabric, port.node, plane), PLANE_PREFIX)
    others = [
        links.neighbour(index, host_ip(fabric, host, plane), host_mac(fabric, host, plane))
        for host, member_of in fabric.attachment
        if member_of == plane and host != port.node
    ]
    return [own, *others]
