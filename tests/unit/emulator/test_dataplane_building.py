"""What a fabric asks of the kernel: pure lists of messages that fit together."""

from __future__ import annotations

import struct
from collections import Counter

import pytest

from emulator.dataplane import building, layout
from emulator.dataplane.plane import Programs
from emulator.kernel import links, queues
from emulator.kernel.netlink import Message
from tests.fakes.fabrics import leaf_spine
from tests.fakes.netlink import attributes, parse
from topologies.addressing import host_ip, host_mac
from topologies.model import Fabric, Port
from topologies.registry import build_fabric
from topologies.settings import ClassRule

FABRIC = leaf_spine(2, 2, 2, parallel=2)
TWO_PLANES = build_fabric(
    {
        "kind": "front-back",
        "front": {"leaves": 2, "spines": 1, "hosts_per_leaf": 2},
        "back": {"leaves": 1, "spines": 0, "hosts_per_leaf": 4},
    }
)
PROGRAMS = Programs(egress=31, wire_out=32, nic_receive=33, wire_delay=34)
CREATES_LINK, CREATES_QDISC, CREATES_CLASS, CREATES_FILTER = 16, 36, 40, 44


def index_of(message: Message) -> int:
    """Interface index that a message is about."""
    index: int = struct.unpack_from("=i", message.data, 20)[0]
    return index


def peer_of(message: Message) -> tuple[int, dict[int, bytes]]:
    """Index and attributes of the other end that a veth message makes."""
    info = attributes(parse(message).attributes[18])
    assert info[1] == b"veth\0"
    peer = attributes(info[2])[1]
    index: int = struct.unpack_from("=i", peer, 4)[0]
    return index, attributes(peer[16:])


def port(fabric: Fabric, name: str) -> Port:
    """A port by its interface's name."""
    return fabric.port_named(name)


def port_messages(
    name: str, bps: int = 100_000_000, burst_ns: int = queues.BURST_NS, delays: bool = False
) -> list[Message]:
    """The messages of a port with the default service."""
    classes = building.leaf_classes(None)
    one = port(FABRIC, name)
    return building.port_messages(FABRIC, one, bps, PROGRAMS, classes, burst_ns, delays)


@pytest.mark.parametrize("fabric", [FABRIC, TWO_PLANES], ids=["one plane", "two planes"])
def test_every_link_is_a_pair_whose_ends_are_its_ports(fabric: Fabric) -> None:
    """Names, indices, MTU and namespaces of both ends are those of the link's two ports."""
    fds = {node.name: 100 + number for number, node in enumerate(fabric.nodes)}
    messages = building.veth_pairs(fabric, fds.__getitem__)
    assert len(messages) == len(fabric.links)
    made = {}
    for message in messages:
        ends = [(index_of(message), parse(message).attributes), peer_of(message)]
        for index, found in ends:
            made[found[3].rstrip(b"\0").decode()] = index
            assert struct.unpack("=I", found[4])[0] == fabric.mtu_bytes
            node = port(fabric, found[3].rstrip(b"\0").decode()).node
            assert struct.unpack("=I", found[28])[0] == fds[node]
    assert made == {one.name: building.interface_index(one.index) for one in fabric.ports}


@pytest.mark.parametrize("fabric", [FABRIC, TWO_PLANES], ids=["one plane", "two planes"])
def test_indices_and_addresses_are_unique(fabric: Fabric) -> None:
    """Switch ports share a namespace, and no two ports of a fabric share a MAC address."""
    indices = [building.interface_index(one.index) for one in fabric.ports]
    assert len(set(indices)) == len(indices)
    assert min(indices) > 1  # the loopback interface has index 1
    macs = [building.port_mac(fabric, one) for one in fabric.ports]
    assert max(Counter(macs).values()) == 1
    assert all(int(mac[:2], 16) & 3 == 2 for mac in macs), "locally administered, unicast"


def test_hosts_have_the_address_that_others_know_of() -> None:
    """The MAC address of a host's port is the one in every neighbour entry."""
    one = port(FABRIC, "h2-eth1")
    assert building.port_mac(FABRIC, one) == host_mac(FABRIC, "h2", 1)


def test_a_port_is_hooked_shaped_and_then_up() -> None:
    """Nothing passes before programs and queues are in place."""
    messages = port_messages("leaf1-eth1")
    assert [parse(message).kind for message in messages] == [
        CREATES_QDISC, CREATES_FILTER, CREATES_FILTER, CREATES_QDISC, *[CREATES_CLASS] * 9,
        CREATES_LINK,
    ]  # fmt: skip
    expected = building.interface_index(port(FABRIC, "leaf1-eth1").index)
    assert {index_of(message) for message in messages} == {expected}


@pytest.mark.parametrize(("name", "ingress"), [("leaf1-eth1", 32), ("h1-eth1", 33)])
def test_switches_count_and_hosts_receive(name: str, ingress: int) -> None:
    """A switch's ingress counts frames out of the peer's queue, a host's hands them to the NIC."""
    filters = [m for m in map(parse, port_messages(name)) if m.kind == CREATES_FILTER]
    programs = [attributes(message.attributes[2]) for message in filters]
    fds = [struct.unpack("=I", options[6])[0] for options in programs]
    assert fds == [PROGRAMS.egress, ingress]
    ports = {struct.unpack("=I", options[3])[0] for options in programs}
    assert ports == {port(FABRIC, name).index}


def test_with_delays_a_switch_port_hands_over_all_that_comes_in() -> None:
    """To the device for what comes from there; the program at that device counts, none here."""
    for name, peer in (("leaf1-eth1", "host"), ("leaf1-eth3", "spine"), ("spine1-eth1", "leaf")):
        clsact, egress, ingress, *rest = port_messages(name, delays=True)
        device = building.delayer(FABRIC, port(FABRIC, name))
        assert device.name == f"delay-{peer}"
        assert ingress == queues.redirect(index_of(clsact), name, device.index)
        assert [clsact, egress, *rest] == [*port_messages(name)[:2], *port_messages(name)[3:]]


def test_with_delays_a_host_port_hands_over_what_its_nic_leaves() -> None:
    """RoCEv2 frames go to the NIC at once, which holds them; the rest is delayed on the link."""
    plain, delayed = port_messages("h1-eth1"), port_messages("h1-eth1", delays=True)
    assert delayed[:3] + delayed[4:] == plain
    device = building.delayer(FABRIC, port(FABRIC, "h1-eth1"))
    assert device.name == "delay-leaf"
    assert delayed[3] == queues.redirect(index_of(plain[0]), "h1-eth1", device.index)


def test_links_that_a_packet_crosses_in_a_row_have_devices_of_their_own() -> None:
    """Three between the switches of a path; each of them holds packets, by its own program."""
    ports = [one for one in FABRIC.ports if FABRIC.by_name[one.node].is_switch]
    messages = building.delayer_messages(FABRIC, ports, PROGRAMS)
    kinds = [CREATES_LINK, CREATES_QDISC, CREATES_FILTER, CREATES_QDISC, CREATES_LINK]
    assert [parse(message).kind for message in messages] == kinds * 3
    names = [parse(message).attributes[3] for message in messages[::5]]
    assert names == [b"delay-host\0", b"delay-leaf\0", b"delay-spine\0"]
    used = {building.delayer(FABRIC, one) for one in ports}
    assert {index_of(message) for message in messages} == {one.index for one in used}
    assert len({one.mac for one in used}) == 3
    for message in messages[2::5]:
        options = attributes(parse(message).attributes[2])
        assert struct.unpack("=I", options[6])[0] == PROGRAMS.wire_delay


def test_a_namespace_has_the_devices_that_it_needs() -> None:
    """A host's traffic comes from a leaf only, in every plane."""
    ports = TWO_PLANES.ports_of["h1"]
    assert len(ports) == 2
    messages = building.delayer_messages(TWO_PLANES, ports, PROGRAMS)
    assert [message.label for message in messages[::4]] == [
        "create ifb delay-leaf", "set delay-leaf up",
    ]  # fmt: skip


def test_no_device_has_the_index_or_address_of_a_port() -> None:
    """The most ports that there can be included."""
    last = building.interface_index(layout.MAX_PORTS - 1)
    macs = {building.port_mac(FABRIC, one) for one in FABRIC.ports}
    for one in FABRIC.ports:
        device = building.delayer(FABRIC, one)
        assert device.index > last
        assert device.mac not in macs
        assert len(device.name) <= 15


def test_the_burst_of_the_shaper_is_passed_on() -> None:
    """It depends on how late the clock's timers are."""
    classes = building.leaf_classes(None)
    index = building.interface_index(port(FABRIC, "leaf1-eth1").index)
    quantum = building.quantum_bytes(FABRIC)
    expected = queues.shaper(index, "leaf1-eth1", 8_000, classes, quantum, burst_ns=640)
    assert port_messages("leaf1-eth1", 8_000, burst_ns=640)[3:-1] == expected


def test_the_rate_is_the_emulated_one() -> None:
    """The top class has the rate that is given, in bytes per second."""
    top = port_messages("h1-eth1", 80_000_000)[4]
    parms = attributes(parse(top).attributes[2])[1]
    assert struct.unpack_from("=I", parms, 8)[0] == 10_000_000


def test_the_quantum_is_a_frame_so_that_sharing_is_fair_and_smooth() -> None:
    """Less than the largest frame would let weights go wrong; the weight multiplies it."""
    assert building.quantum_bytes(FABRIC) == FABRIC.mtu_bytes + 14
    rules = {3: ClassRule(3, 0, 4)}
    leaves = building.port_messages(
        FABRIC, port(FABRIC, "leaf1-eth1"), 10**8, PROGRAMS, building.leaf_classes(rules)
    )[5:13]
    quanta = [
        struct.unpack_from("=III", attributes(parse(leaf).attributes[2])[1], 24)[2]
        for leaf in leaves
    ]
    frame = building.quantum_bytes(FABRIC)
    assert quanta == [frame, frame, frame, 4 * frame, frame, frame, frame, frame]


def test_control_goes_first_unless_a_rule_says_otherwise() -> None:
    """Classes 6 and 7 before the others, which share; a rule changes its own class only."""
    default = building.leaf_classes(None)
    assert default == building.DEFAULT_LEAVES == building.leaf_classes({})
    assert [leaf.priority for leaf in default] == [1] * 6 + [0] * 2
    assert {leaf.weight for leaf in default} == {1}
    changed = building.leaf_classes({6: ClassRule(6, 5, 9)})
    assert changed[6] == queues.LeafClass(5, 9)
    assert changed[:6] + changed[7:] == default[:6] + default[7:]


def test_hosts_know_all_others_of_their_plane_and_nobody_else() -> None:
    """One address and one permanent neighbour for each other host of the plane: no ARP."""
    for one in TWO_PLANES.ports:
        if TWO_PLANES.by_name[one.node].is_switch:
            continue
        plane = TWO_PLANES.link_of(one).plane
        own, *others = building.host_messages(TWO_PLANES, one)
        index = building.interface_index(one.index)
        address = host_ip(TWO_PLANES, one.node, plane)
        assert own == links.address(index, address, building.PLANE_PREFIX)
        hosts = [host for host, where in TWO_PLANES.attachment if where == plane]
        assert others == [
            links.neighbour(
                index, host_ip(TWO_PLANES, host, plane), host_mac(TWO_PLANES, host, plane)
            )
            for host in hosts
            if host != one.node
        ]
