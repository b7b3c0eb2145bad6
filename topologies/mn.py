"""Our fabrics in stock Mininet, with our names, addresses and datapath ids.

    mn --custom topologies/mn.py --topo leafspine,4,2,4 --switch ovsbr,stp=1 --arp

Parameters: leaves, spines, hosts per leaf; then ``parallel=2`` and, in Mbit/s, ``host_mbps=100``
and ``fabric_mbps=40``. Without the last two the links are not shaped: stock TCLink cannot shape
above 1000 Mbit/s, and it ignores a higher rate. From Python: ``Mininet(topo=FabricTopo(fabric))``.

A leaf-spine has loops. Use a controller that does not flood, or spanning tree as above (give it
half a minute). The rest of the project's data plane (marking, classes, exact queues) is not here.

The only module of this package that imports Mininet.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from mininet.link import TCLink  # type: ignore[import-not-found, import-untyped, unused-ignore]
from mininet.topo import Topo  # type: ignore[import-not-found, import-untyped, unused-ignore]

# mn executes this file without ``__file__`` and outside any package: make the checkout importable.
sys.path.insert(0, str(Path(sys._getframe().f_code.co_filename).resolve().parents[1]))

from topologies import addressing as _addressing
from topologies.errors import SpecError
from topologies.model import Fabric, Port
from topologies.registry import build_fabric

MAX_MBPS = 1000
"""Stock TCLink leaves a link unshaped above this rate, in Mbit/s."""
PLANE_PREFIX_LENGTH = 16
"""A host that is in several planes needs one network for each: 10.<plane>.0.0/16."""


class FabricTopo(Topo):  # type: ignore[misc, unused-ignore]
    """Any fabric as a Mininet topology: ``FabricTopo(fabric, host_mbps=100)``."""

    def build(
        self, fabric: Fabric, host_mbps: float | None = None, fabric_mbps: float | None = None
    ) -> None:
        """See `add_fabric`."""
        add_fabric(self, fabric, host_mbps, fabric_mbps)


class LeafSpineTopo(Topo):  # type: ignore[misc, unused-ignore]
    """``--topo leafspine,LEAVES,SPINES,HOSTS_PER_LEAF``."""

    def build(
        self,
        leaves: int = 2,
        spines: int = 2,
        hosts: int = 2,
        parallel: int = 1,
        host_mbps: float | None = None,
        fabric_mbps: float | None = None,
    ) -> None:
        """Build a leaf-spine; `SpecError` when a parameter is out of range."""
        shape = {"leaves": leaves, "spines": spines, "hosts_per_leaf": hosts}
        lanes = {"fabric_link": {"parallel": parallel}} if parallel != 1 else {}
        fabric = build_fabric({"kind": "leaf-spine"} | shape | lanes, "leafspine")
        add_fabric(self, fabric, host_mbps, fabric_mbps)


def add_fabric(
    topo: Any, fabric: Fabric, host_mbps: float | None = None, fabric_mbps: float | None = None
) -> None:
    """Add all nodes and links to a Mininet topology, with our names, ports, addresses, dpids.

    Args:
        topo: a ``mininet.topo.Topo``.
        fabric: what to add; its rates and delays are not applied.
        host_mbps: rate of host links, Mbit/s, at most `MAX_MBPS`; None for no shaping.
        fabric_mbps: the same for links between switches.
    """
    at_hosts, between = _shaping("host_mbps", host_mbps), _shaping("fabric_mbps", fabric_mbps)
    for host in fabric.hosts:
        plane = fabric.link_of(fabric.ports_of[host.name][0]).plane
        topo.addHost(host.name, **_address(fabric, host.name, plane))
    for switch in fabric.switches:
        topo.addSwitch(switch.name, dpid=f"{_addressing.dpid(switch):016x}")
    for link in fabric.links:
        lower, upper = fabric.ports[2 * link.id : 2 * link.id + 2]
        shaping = between if fabric.by_name[link.a].is_switch else at_hosts
        options = shaping | _further_address(fabric, lower)
        topo.addLink(link.a, link.b, port1=lower.number, port2=upper.number, **options)


def _shaping(name: str, mbps: float | None) -> dict[str, Any]:
    """Link options for a rate in Mbit/s."""
    if mbps is None:
        return {}
    if not 0 < mbps <= MAX_MBPS:
        rule = f"must be above 0 and at most {MAX_MBPS}, which is all that TCLink can shape"
        raise SpecError(name, mbps, rule, "leave it out for links that are not shaped")
    return {"cls": TCLink, "bw": mbps}


def _address(fabric: Fabric, host: str, plane: int) -> dict[str, str]:
    """IP address with prefix length, and MAC address, of a host in a plane."""
    several = len(fabric.planes) > 1
    length = PLANE_PREFIX_LENGTH if several else _addressing.PREFIX_LENGTH
    ip = f"{_addressing.host_ip(fabric, host, plane)}/{length}"
    return {"ip": ip, "mac": _addressing.host_mac(fabric, host, plane)}


def _further_address(fabric: Fabric, port: Port) -> dict[str, Any]:
    """Link options for the address of any but a host's first interface, which Mininet does."""
    if fabric.by_name[port.node].is_switch or port.number == 1:
        return {}
    address = _address(fabric, port.node, fabric.link_of(port).plane)
    return {"addr1": address["mac"], "params1": {"ip": address["ip"]}}


topos = {"leafspine": LeafSpineTopo}
