"""What a fabric needs of the kernel, as lists of netlink messages. PURE.

Interface indices are chosen here (a base + port index), so nothing has to be looked up later.
Switch ports live in the run's one namespace for switches, host ports each in their host's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from emulator.dataplane.layout import FIRST_INTERFACE
from emulator.dataplane.plane import Programs
from emulator.kernel import links, netlink, queues
from topologies.addressing import host_ip, host_mac
from topologies.model import Fabric, Port
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
) -> list[netlink.Message]:
    """Everything that a port needs inside its namespace."""
    index, name = interface_index(port.index), port.name
    is_switch = fabric.by_name[port.node].is_switch
    ingress = programs.wire_out if is_switch else programs.nic_receive
    return [
        queues.clsact(index, name),
        queues.bpf_filter(index, name, programs.egress, port.index, egress=True),
        queues.bpf_filter(index, name, ingress, port.index, egress=False),
        *queues.shaper(index, name, emulated_bps, classes, quantum_bytes(fabric)),
        links.up(index, name),
    ]


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
