"""Netlink messages for interfaces, addresses and neighbours."""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass

from emulator.kernel import netlink as nl

_IFLA_ADDRESS, _IFLA_IFNAME, _IFLA_MTU, _IFLA_TXQLEN, _IFLA_LINKINFO = 1, 3, 4, 13, 18
_IFLA_NET_NS_FD, _IFLA_GSO_MAX_SEGS = 28, 40
_INFO_KIND, _INFO_DATA, _VETH_INFO_PEER = 1, 2, 1
_IFA_ADDRESS, _IFA_LOCAL = 1, 2
_NDA_DST, _NDA_LLADDR = 1, 2
_NUD_PERMANENT = 0x80
# A full queue must never be the interface's: the MMU alone drops. Unit: packets. A packet that this
# bound loses is lost without a counter, which makes a run INVALID. It bounds each class of a port;
# kernels from 6.12.117 on refuse more (ERANGE).
QUEUE_PACKETS = 32_767


@dataclass(frozen=True, slots=True)
class End:
    """One end of a veth pair: its name, index and MAC in the namespace behind `netns_fd`."""

    name: str
    index: int
    mac: str
    netns_fd: int


def _end_attributes(end: End, mtu_bytes: int) -> bytes:
    return (
        nl.text(_IFLA_IFNAME, end.name)
        + nl.u32(_IFLA_MTU, mtu_bytes)
        + nl.u32(_IFLA_TXQLEN, QUEUE_PACKETS)
        + nl.attr(_IFLA_ADDRESS, nl.mac_bytes(end.mac))
        + nl.u32(_IFLA_NET_NS_FD, end.netns_fd)
        + nl.u32(_IFLA_GSO_MAX_SEGS, 1)  # else TCP hands over many frames as one, offload or not
    )


def veth_pair(a: End, b: End, mtu_bytes: int) -> nl.Message:
    """Creates a veth pair with each end in its namespace (both down until `up`)."""
    peer = nl.ifinfo(b.index) + _end_attributes(b, mtu_bytes)
    info = nl.text(_INFO_KIND, "veth") + nl.attr(_INFO_DATA, nl.attr(_VETH_INFO_PEER, peer))
    body = nl.ifinfo(a.index) + _end_attributes(a, mtu_bytes) + nl.attr(_IFLA_LINKINFO, info)
    flags = nl.NLM_F_CREATE | nl.NLM_F_EXCL
    return nl.request(nl.RTM_NEWLINK, flags, body, f"create link {a.name} - {b.name}")


def ifb(index: int, name: str, mac: str) -> nl.Message:
    """Creates a device that hands what is redirected to it back to where it came in (down)."""
    body = nl.ifinfo(index) + nl.text(_IFLA_IFNAME, name) + nl.u32(_IFLA_TXQLEN, QUEUE_PACKETS)
    body += nl.attr(_IFLA_ADDRESS, nl.mac_bytes(mac))
    body += nl.attr(_IFLA_LINKINFO, nl.text(_INFO_KIND, "ifb"))
    flags = nl.NLM_F_CREATE | nl.NLM_F_EXCL
    return nl.request(nl.RTM_NEWLINK, flags, body, f"create ifb {name}")


def up(index: int, name: str) -> nl.Message:
    """Sets an interface up."""
    return nl.request(nl.RTM_NEWLINK, 0, nl.ifinfo(index, nl.IFF_UP, nl.IFF_UP), f"set {name} up")


def address(index: int, ip: str, prefix: int) -> nl.Message:
    """Adds an IPv4 address."""
    raw = socket.inet_aton(ip)
    body = struct.pack("=BBBBI", socket.AF_INET, prefix, 0, 0, index)
    body += nl.attr(_IFA_LOCAL, raw) + nl.attr(_IFA_ADDRESS, raw)
    return nl.request(nl.RTM_NEWADDR, nl.NLM_F_CREATE, body, f"add address {ip}")


def neighbour(index: int, ip: str, mac: str) -> nl.Message:
    """Adds a permanent neighbour, so that no ARP is ever asked."""
    body = struct.pack("=BxHiHBB", socket.AF_INET, 0, index, _NUD_PERMANENT, 0, 0)
    body += nl.attr(_NDA_DST, socket.inet_aton(ip)) + nl.attr(_NDA_LLADDR, nl.mac_bytes(mac))
    flags = nl.NLM_F_CREATE | nl.NLM_F_REPLACE
    return nl.request(nl.RTM_NEWNEIGH, flags, body, f"add neighbour {ip}")
