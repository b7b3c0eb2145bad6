"""Netlink messages: golden bytes made by hand from the kernel's structures, and their answers."""

from __future__ import annotations

import errno
import socket
import struct
from collections.abc import Iterator

import pytest

from emulator.kernel import links, netlink, queues
from emulator.kernel.netlink import KernelError, Message, Session
from tests.fakes.netlink import attributes, parse

REQUEST, ACK, REPLACE, EXCL, CREATE = 1, 4, 0x100, 0x200, 0x400
MAC_A, MAC_B = bytes.fromhex("020000000001"), bytes.fromhex("020000000002")


@pytest.mark.parametrize(
    ("value", "golden"),
    [
        (b"", "04000700"),
        (b"\x01", "0500070001000000"),
        (b"\x01\x02\x03\x04", "0800070001020304"),
        (b"\x01\x02\x03\x04\x05", "090007000102030405000000"),
    ],
)
def test_attributes_are_aligned_to_four_bytes(value: bytes, golden: str) -> None:
    """Their length does not count the padding."""
    assert netlink.attr(7, value) == bytes.fromhex(golden)


def test_texts_end_with_a_zero_byte() -> None:
    """As the kernel's strings do."""
    assert netlink.text(3, "eth0") == struct.pack("=HH5s3x", 9, 3, b"eth0")


def test_an_interface_is_set_up() -> None:
    """RTM_NEWLINK for its index, IFF_UP in flags and mask."""
    golden = struct.pack("=IHHII", 32, 16, REQUEST | ACK, 0, 0)
    golden += struct.pack("=BxHiII", 0, 0, 1005, 1, 1)
    assert links.up(1005, "leaf1-eth1").data == golden


def test_an_address_is_added() -> None:
    """RTM_NEWADDR: family, prefix and index, then the address as local and as address."""
    raw = bytes([10, 1, 2, 3])
    golden = struct.pack("=IHHII", 40, 20, REQUEST | ACK | CREATE, 0, 0)
    golden += struct.pack("=BBBBI", socket.AF_INET, 16, 0, 0, 1001)
    golden += struct.pack("=HH4sHH4s", 8, 2, raw, 8, 1, raw)
    assert links.address(1001, "10.1.2.3", 16).data == golden


def test_a_neighbour_is_permanent() -> None:
    """RTM_NEWNEIGH in state NUD_PERMANENT, so that no ARP is asked."""
    golden = struct.pack("=IHHII", 48, 28, REQUEST | ACK | CREATE | REPLACE, 0, 0)
    golden += struct.pack("=BxHiHBB", socket.AF_INET, 0, 1001, 0x80, 0, 0)
    golden += struct.pack("=HH4sHH6s2x", 8, 1, bytes([10, 1, 2, 3]), 10, 2, MAC_B)
    assert links.neighbour(1001, "10.1.2.3", "02:00:00:00:00:02").data == golden


def end_attributes(name: bytes, mac: bytes, fd: int) -> bytes:
    """Name, MTU 4200, queue length, MAC, namespace, one segment per packet: an end of a pair."""
    padding = -(len(name) + 1) % 4
    return (
        struct.pack("=HH", 5 + len(name), 3) + name + bytes(1 + padding)
        + struct.pack("=HHI", 8, 4, 4200)
        + struct.pack("=HHI", 8, 13, links.QUEUE_PACKETS)
        + struct.pack("=HH6s2x", 10, 1, mac)
        + struct.pack("=HHI", 8, 28, fd)
        + struct.pack("=HHI", 8, 40, 1)
    )  # fmt: skip


def test_a_veth_pair_is_made_in_two_namespaces() -> None:
    """RTM_NEWLINK of kind veth; the peer is a whole ifinfomsg of its own."""
    a = links.End("h1-eth1", 1001, "02:00:00:00:00:01", 20)
    b = links.End("leaf1-eth1", 1002, "02:00:00:00:00:02", 21)
    peer = struct.pack("=BxHiII", 0, 0, 1002, 0, 0) + end_attributes(b"leaf1-eth1", MAC_B, 21)
    peer = struct.pack("=HH", 4 + len(peer), 1) + peer
    info = struct.pack("=HH5s3x", 9, 1, b"veth") + struct.pack("=HH", 4 + len(peer), 2) + peer
    body = struct.pack("=BxHiII", 0, 0, 1001, 0, 0) + end_attributes(b"h1-eth1", MAC_A, 20)
    body += struct.pack("=HH", 4 + len(info), 18) + info
    header = struct.pack("=IHHII", 16 + len(body), 16, REQUEST | ACK | EXCL | CREATE, 0, 0)
    assert links.veth_pair(a, b, 4200).data == header + body


def test_an_ifb_is_made_with_index_and_address() -> None:
    """RTM_NEWLINK of kind ifb; a random address would make runs differ."""
    body = struct.pack("=BxHiII", 0, 0, 5096, 0, 0)
    body += struct.pack("=HH11sx", 15, 3, b"delay-leaf\0")
    body += struct.pack("=HHI", 8, 13, links.QUEUE_PACKETS)
    body += struct.pack("=HH6s2x", 10, 1, MAC_A)
    body += struct.pack("=HH", 12, 18) + struct.pack("=HH4s", 8, 1, b"ifb\0")
    header = struct.pack("=IHHII", 16 + len(body), 16, REQUEST | ACK | EXCL | CREATE, 0, 0)
    assert links.ifb(5096, "delay-leaf", "02:00:00:00:00:01").data == header + body


def test_no_kernel_refuses_the_length_of_a_queue() -> None:
    """From 6.12.117 on the limit of an interface is that of a signed 16-bit number."""
    assert links.QUEUE_PACKETS == 0x7FFF


def test_clsact_is_added() -> None:
    """RTM_NEWQDISC with the handle and parent that only clsact has."""
    golden = struct.pack("=IHHII", 48, 36, REQUEST | ACK | EXCL | CREATE, 0, 0)
    golden += struct.pack("=BxHiIII", 0, 0, 1005, 0xFFFF0000, 0xFFFFFFF1, 0)
    golden += struct.pack("=HH7sx", 11, 1, b"clsact")
    assert queues.clsact(1005, "x").data == golden


@pytest.mark.parametrize(("egress", "parent"), [(True, 0xFFFFFFF3), (False, 0xFFFFFFF2)])
def test_a_program_is_attached_with_its_port(egress: bool, parent: int) -> None:
    """RTM_NEWTFILTER of kind bpf, direct action, the port as class id."""
    message = parse(queues.bpf_filter(1005, "x", 33, 7, egress=egress))
    assert (message.kind, message.flags) == (44, REQUEST | ACK | EXCL | CREATE)
    all_protocols = socket.htons(0x0003)
    fixed = struct.pack("=BxHiIII", 0, 0, 1005, 0, parent, 1 << 16 | all_protocols)
    assert message.fixed == fixed
    assert message.attributes[1] == b"bpf\0"
    options = attributes(message.attributes[2])
    assert {kind: struct.unpack("=I", options[kind])[0] for kind in (6, 8, 3)} == {
        6: 33,
        8: 1,
        3: 7,
    }


def test_what_comes_in_is_redirected() -> None:
    """RTM_NEWTFILTER of kind matchall after the programs, with one action: mirred, egress."""
    message = parse(queues.redirect(1005, "x", 5097))
    assert (message.kind, message.flags) == (44, REQUEST | ACK | EXCL | CREATE)
    all_protocols = socket.htons(0x0003)
    info = 2 << 16 | all_protocols
    assert message.fixed == struct.pack("=BxHiIII", 0, 0, 1005, 0, 0xFFFFFFF2, info)
    assert message.attributes[1] == b"matchall\0"
    actions = attributes(attributes(message.attributes[2])[2])
    assert set(actions) == {1}
    action = attributes(actions[1])
    assert action[1] == b"mirred\0"
    stolen, egress_redirect = 4, 1
    parms = struct.pack("=IIiii", 0, 0, stolen, 0, 0) + struct.pack("=iI", egress_redirect, 5097)
    assert attributes(action[2]) == {2: parms}


def test_fq_holds_packets_and_limits_nothing() -> None:
    """Numbers of linux/pkt_sched.h: no pacing, no slack, no horizon, room for everything."""
    message = parse(queues.fq(5097, "delay-leaf"))
    assert (message.kind, message.flags) == (36, REQUEST | ACK | EXCL | CREATE)
    assert message.fixed == struct.pack("=BxHiIII", 0, 0, 5097, 1 << 16, 0xFFFFFFFF, 0)
    assert message.attributes[1] == b"fq\0"
    options = attributes(message.attributes[2])
    assert options.pop(15) == b"\0"  # packets beyond the horizon are not dropped
    numbers = {kind: struct.unpack("=I", value)[0] for kind, value in options.items()}
    assert numbers == {
        1: 2**31 - 1,  # packets in all
        2: 2**31 - 1,  # packets of a flow
        3: 1 << 20,  # quantum, the most that the kernel takes
        4: 1 << 20,  # of a new flow
        5: 0,  # rate limiting
        10: 2**32 - 1,  # flows are told apart by all bits of the hash
        13: 0,  # timer slack, ns
        14: 2**32 - 1,  # horizon, us
    }


def test_fq_is_asked_for_as_tc_does() -> None:
    """What tc 6.1 sends for the same settings, byte by byte."""
    golden = """
        0700010066710000 4c000200
        08000100ffffff7f 08000200ffffff7f 0800030000001000 0800040000001000 0800050000000000
        08000a00ffffffff 08000d0000000000 08000e00ffffffff 05000f0000000000
    """
    assert queues.fq(5097, "x").data[36:] == bytes.fromhex(golden)


def test_a_redirection_is_asked_for_as_tc_does() -> None:
    """What tc 6.1 sends, byte by byte, but for its flag for nested attributes (24000280)."""
    golden = """
        0d0001006d61746368616c6c00000000 3c000200 38000200 34000100
        0b0001006d69727265640000 24000200 20000200
        0000000000000000 04000000 0000000000000000 01000000 03000000
    """
    assert queues.redirect(1005, "x", 3).data[36:] == bytes.fromhex(golden)


def ratespec(rate: int) -> bytes:
    """struct tc_ratespec for Ethernet with 24 bytes of overhead per frame."""
    return struct.pack("=BBHhHI", 0, 1, 24, -1, 0, rate)


def htb_options(message: Message) -> dict[int, bytes]:
    """Options of an HTB class."""
    parsed = parse(message)
    assert parsed.attributes[1] == b"htb\0"
    return attributes(parsed.attributes[2])


def tcm(message: Message) -> tuple[int, int, int]:
    """Index, handle and parent of a tc message."""
    index, handle, parent = struct.unpack_from("=iII", message.data, 20)
    return index, handle, parent


def test_a_shaper_is_a_qdisc_a_class_and_eight_leaves() -> None:
    """The top class has the port's rate; each leaf borrows up to it."""
    classes = [queues.LeafClass(tc % 3, tc + 1) for tc in range(8)]
    qdisc, top, *leaves = queues.shaper(1005, "x", 80_000_000, classes, 4214)
    major = 1 << 16
    assert tcm(qdisc) == (1005, major, 0xFFFFFFFF)
    init = struct.unpack("=IIIII", htb_options(qdisc)[2])
    assert init[:3] == (3, 1, 0x10)
    assert parse(qdisc).attributes[8] == struct.pack("=HH", 28, 1) + bytes(24)
    assert tcm(top) == (1005, major + 1, major)
    burst = queues.BURST_NS // 64
    parms = ratespec(10_000_000) * 2 + struct.pack("=IIIII", burst, burst, 4214, 0, 0)
    assert htb_options(top) == {1: parms}
    for tc, leaf in enumerate(leaves):
        assert tcm(leaf) == (1005, major + 0x10 + tc, major + 1)
        parms = ratespec(125) + ratespec(10_000_000)
        parms += struct.pack("=IIIII", burst, burst, 4214 * (tc + 1), 0, tc % 3)
        assert htb_options(leaf) == {1: parms}
    kinds = [parse(message).kind for message in (qdisc, top, *leaves)]
    assert kinds == [36, *[40] * 9]


@pytest.mark.parametrize(("burst_ns", "ticks"), [(64, 1), (1_000, 15), (0, 0)])
def test_the_burst_of_all_classes_can_be_chosen(burst_ns: int, ticks: int) -> None:
    """A time in steps of 64 ns; 0 for timers that are never late."""
    _, *classes = queues.shaper(5, "x", 8_000, [queues.LeafClass(0, 1)] * 8, 1500, burst_ns)
    assert len(classes) == 9
    for message in classes:
        assert struct.unpack_from("=II", htb_options(message)[1], 24) == (ticks, ticks)


def test_rates_above_32_bits_are_given_in_64() -> None:
    """400 Gbit/s are 50 GB/s: the 32-bit field is full and the 64-bit one counts."""
    _, top, leaf, *_ = queues.shaper(5, "x", 400_000_000_000, [queues.LeafClass(0, 1)] * 8, 1500)
    assert htb_options(top)[7] == htb_options(top)[6] == struct.pack("=Q", 50_000_000_000)
    assert htb_options(top)[1][:24] == ratespec(0xFFFFFFFF) * 2
    assert 6 not in htb_options(leaf)
    assert htb_options(leaf)[7] == struct.pack("=Q", 50_000_000_000)


def test_leaves_of_a_shaper_that_stands_are_changed() -> None:
    """Without create and exclusive flags; the rest is the same."""
    classes = [queues.LeafClass(0, 1)] * 8
    made = queues.shaper(5, "x", 8_000_000, classes, 1500)[2:]
    changed = queues.leaves(5, "x", 8_000_000, classes, 1500)
    assert [parse(message).flags for message in changed] == [REQUEST | ACK] * 8
    assert [one.data[8:] for one in made] == [one.data[8:] for one in changed]


@pytest.fixture
def session() -> Iterator[Session]:
    """A session with the kernel, which this test only asks for what it must refuse."""
    try:
        opened = Session()
    except PermissionError:
        pytest.skip("needs root: the receive buffer is beyond the user's limit")
    with opened:
        yield opened


def refused(number: int) -> Message:
    """Sets an interface up that does not exist, which changes nothing."""
    return links.up(2_000_000_000 + number, f"nothing{number}")


def test_a_refusal_names_the_request_that_was_refused(session: Session) -> None:
    """The first of a batch, by its label."""
    with pytest.raises(KernelError, match="set nothing0 up") as caught:
        session.run(refused(number) for number in range(3))
    assert caught.value.errno == errno.ENODEV


def test_refusals_that_do_not_matter_are_passed_over(session: Session) -> None:
    """Every answer of a large batch is read, over several exchanges, and none is left over."""
    session.run(map(refused, range(3_000)), ignore=(errno.ENODEV,))
    with pytest.raises(KernelError, match="nothing7 "):
        session.run([refused(7)])


def test_nothing_to_do_asks_nothing(session: Session) -> None:
    """An empty batch is no request."""
    session.run([])
