"""One address plan from indices: IP, MAC, datapath id, and back.

Host 3 on leaf 2 of plane 1 is 10.1.2.3/8 and 02:00:0a:01:02:03. Datapath ids are assigned by
tier (0x1000 + leaf, 0x2000 + spine, 0x3000 + aggregation switch; the plane in the next 16 bits),
never parsed out of names.
"""

from __future__ import annotations

from topologies.model import Fabric, Node, Role

_TIER = {Role.LEAF: 0x1000, Role.SPINE: 0x2000, Role.AGG: 0x3000}
PREFIX_LENGTH = 8
MAX_INDEX = 254


def host_ip(fabric: Fabric, host: str, plane: int = 1) -> str:
    """IPv4 address of a host in a plane; KeyError when the host is not in that plane."""
    leaf, number = fabric.attachment[host, plane]
    return f"10.{plane}.{leaf}.{number}"


def host_mac(fabric: Fabric, host: str, plane: int = 1) -> str:
    """MAC address of a host in a plane, locally administered, made from its IPv4 address."""
    leaf, number = fabric.attachment[host, plane]
    return f"02:00:0a:{plane:02x}:{leaf:02x}:{number:02x}"


def leaf_prefix(plane: int, leaf: int) -> str:
    """The prefix of all hosts below one leaf, such as ``10.1.2.0/24``."""
    return f"10.{plane}.{leaf}.0/24"


def dpid(node: Node) -> int:
    """OpenFlow datapath id of a switch; KeyError for a host."""
    return (node.plane << 16) | (_TIER[node.role] + node.index)


def switch_of_dpid(fabric: Fabric, value: int) -> Node:
    """The switch with this datapath id; KeyError when the fabric has none."""
    for node in fabric.switches:
        if dpid(node) == value:
            return node
    raise KeyError(value)
