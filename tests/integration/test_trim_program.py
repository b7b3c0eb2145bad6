"""The eBPF programs that cut packets and tell cut ones, run by the kernel on single frames."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Any

import pytest

from emulator.dataplane import compiling
from emulator.dataplane.plane import DataPlane
from emulator.kernel.queues import HTB_FIRST_LEAF
from tests.fakes.fabrics import leaf_spine
from tests.integration.program_run import Ran, run_program
from topologies.settings import MIN_TRIM_BYTES, BufferRule, EcnRule, TrimRule
from traffic import wire
from traffic.headers import ack_frame, data_frame

pytestmark = pytest.mark.root

FABRIC = leaf_spine(2, 1, 2)
PORT = FABRIC.port_named("leaf1-eth1").index
DATA, HEADERS, DSCP = 3, 5, 43
TC_ACT_OK, TC_ACT_SHOT, TC_ACT_STOLEN = 0, 2, 4
PAYLOAD = 3072
"""A page holds the whole frame, more than which the kernel does not run a program on."""
FULL = wire.data_frame_bytes(PAYLOAD)
ROOM = 1_000_000
FLOW = wire.FlowAddress(
    "02:00:0a:01:01:01", "02:00:0a:01:02:01", "10.1.1.1", "10.1.2.1", 77, 0x123, DATA << 3
)


@dataclass
class Bench:
    """The loaded programs. They take port 0 for theirs, which is made to be leaf1-eth1.

    Attributes:
        plane: programs and tables.
    """

    plane: DataPlane = field(
        default_factory=lambda: DataPlane(
            FABRIC, [link.rate_bps for link in FABRIC.links], 7, compiling.object_file()
        )
    )

    def set(self, rule: TrimRule | None = None, **buffer: Any) -> None:
        """Trimming by a rule, in a switch of 2 MB of which a queue may take a half."""
        self.plane.set_buffer("leaf1", buffer.get("size", 2 * ROOM), [1.0] * 8)
        if rule is not None:
            self.plane.set_trim(PORT, rule.tc, rule)
        self.plane.configs[0] = self.plane.configs[PORT]

    def fill(self, nbytes: int, tc: int = DATA) -> None:
        """So many bytes wait in a queue."""
        self.plane.states["classes"]["in_bytes"][0, tc] = nbytes
        self.plane.switches["in_bytes"][0] = nbytes

    def send(self, frame: bytes) -> Ran:
        """A frame leaves through the port."""
        return run_program(self.plane.programs.egress, frame)

    def receive(self, frame: bytes) -> Any:
        """A frame comes to a NIC; its record."""
        assert run_program(self.plane.programs.nic_receive, frame).result == TC_ACT_SHOT
        (record,) = self.plane.ring.drain()
        return record

    def counts(self, tc: int) -> dict[str, int]:
        """What the port has counted in a class, but for zeros and peaks."""
        entry = self.plane.states["classes"][0, tc]
        names = [name for name in entry.dtype.names or () if name != "peak_bytes"]
        return {name: int(entry[name]) for name in names if entry[name]}


@pytest.fixture
def bench() -> Bench:
    """Class 3 is cut to 80 bytes, which go on in class 5."""
    one = Bench()
    one.set(TrimRule(DATA, DSCP))
    return one


def frame(payload: int = PAYLOAD, psn: int = 4711, dscp: int = DATA << 3, ect: int = wire.ECT0,
          opcode: wire.Opcode = wire.Opcode.SEND_MIDDLE) -> bytes:  # fmt: skip
    """A data packet of a flow."""
    address = wire.FlowAddress(
        FLOW.src_mac, FLOW.dst_mac, FLOW.src_ip, FLOW.dst_ip, FLOW.entropy, FLOW.dest_qp, dscp, ect
    )
    return data_frame(address, opcode, psn, payload)


def patched(one: bytes, at: int, *octets: int) -> bytes:
    """A frame with other bytes at a place."""
    return one[:at] + bytes(octets) + one[at + len(octets) :]


def word(one: bytes, at: int) -> int:
    """Two bytes in the order of the network."""
    return int(struct.unpack_from(">H", one, at)[0])


def checksum(one: bytes) -> int:
    """Of the IP header with its checksum in it: 0 when that is right (RFC 1071)."""
    total = sum(word(one, at) for at in range(wire.AT_IP, wire.AT_UDP, 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


@pytest.mark.parametrize("size", [MIN_TRIM_BYTES, 64, 80, 128, 1_001, FULL - 1])
@pytest.mark.parametrize("ect", [0, 1, 2, 3])
def test_a_packet_without_room_goes_on_as_headers(bench: Bench, size: int, ect: int) -> None:
    """Its first bytes, another code point and the right lengths and checksum; marks are kept."""
    bench.set(TrimRule(DATA, DSCP, size))
    bench.fill(ROOM)
    whole = frame(ect=ect)
    ran = bench.send(whole)
    cut = ran.frame
    assert ran.result == TC_ACT_OK
    assert ran.priority == HTB_FIRST_LEAF + HEADERS
    assert len(cut) == size
    assert cut[wire.AT_TOS] == DSCP << 2 | ect
    assert word(cut, wire.AT_IP_LENGTH) == size - wire.ETHERNET_BYTES
    assert word(cut, wire.AT_UDP_LENGTH) == size - wire.AT_UDP
    assert word(cut, wire.AT_IP_LENGTH + 2) == word(whole, wire.AT_IP_LENGTH)
    assert checksum(whole) == checksum(cut) == 0
    changed = {wire.AT_TOS, *range(wire.AT_IP_LENGTH, wire.AT_IP_LENGTH + 4), wire.AT_IP_CHECKSUM}
    changed |= {wire.AT_IP_CHECKSUM + 1, wire.AT_UDP_LENGTH, wire.AT_UDP_LENGTH + 1}
    assert {at for at in range(size) if cut[at] != whole[at]} <= changed


def test_a_cut_packet_is_counted_where_it_goes_on(bench: Bench) -> None:
    """Not in the queue that had no room, whose cut it is; the buffer holds what is left of it."""
    bench.fill(ROOM)
    bench.send(frame())
    assert bench.counts(DATA) == {
        "in_bytes": ROOM, "trim_packets": 1, "trim_bytes": FULL - 80,
    }  # fmt: skip
    assert bench.counts(HEADERS) == {"in_packets": 1, "in_bytes": 80}
    assert bench.plane.switches["in_bytes"][0] == ROOM + 80


def test_what_has_room_is_left_alone(bench: Bench) -> None:
    """To the last byte."""
    bench.fill(ROOM - 2)
    ran = bench.send(frame())
    assert (ran.result, ran.frame, ran.priority) == (TC_ACT_OK, frame(), HTB_FIRST_LEAF + DATA)
    assert bench.counts(DATA) == {"in_packets": 1, "in_bytes": ROOM - 2 + FULL}
    assert bench.counts(HEADERS) == {}


def test_a_queue_grows_up_to_its_threshold_and_no_longer(bench: Bench) -> None:
    """Although the buffer has room for more."""
    bench.set(TrimRule(DATA, DSCP, threshold_bytes=200_000))
    bench.fill(200_000 - FULL)
    assert bench.send(frame()).frame == frame()
    assert bench.counts(DATA)["in_bytes"] == 200_000
    bench.fill(200_000 - FULL + 1)
    assert len(bench.send(frame()).frame) == 80
    assert bench.counts(DATA)["in_bytes"] == 200_000 - FULL + 1


UNCUT = {
    "short": frame(16),
    "of the size": frame(24),
    "acknowledgement": ack_frame(FLOW, 5, 1),
    "another UDP port": patched(frame(), wire.AT_DPORT, 0x12, 0xB8),
    "TCP": patched(frame(), wire.AT_PROTOCOL, 6),
    "may be fragmented": patched(frame(), wire.AT_IP + 6, 0),
    "IP options": patched(frame(), wire.AT_IP, 0x46),
    "cut before": patched(frame(), wire.AT_IP + 4, 0x20, 0),
}


@pytest.mark.parametrize("kind", UNCUT)
def test_what_cannot_be_cut_is_dropped_without_room(bench: Bench, kind: str) -> None:
    """What has no payload to lose, is not of a NIC's transport, or has been cut already."""
    bench.set(TrimRule(DATA, DSCP, len(UNCUT["of the size"])))
    bench.fill(ROOM)
    ran = bench.send(UNCUT[kind])
    assert ran.result == TC_ACT_STOLEN
    assert bench.counts(DATA) == {
        "in_bytes": ROOM, "drop_packets": 1, "drop_bytes": len(UNCUT[kind]),
        **({"trim_drops": 1} if kind == "cut before" else {}),
    }  # fmt: skip
    assert bench.counts(HEADERS) == {}


@pytest.mark.parametrize("kind", UNCUT)
def test_what_cannot_be_cut_may_pass_the_threshold(bench: Bench, kind: str) -> None:
    """It is dropped only where there is no room."""
    bench.set(TrimRule(DATA, DSCP, len(UNCUT["of the size"]), 5_000))
    bench.fill(5_000)
    ran = bench.send(UNCUT[kind])
    assert (ran.result, ran.frame) == (TC_ACT_OK, UNCUT[kind])


def test_a_class_that_is_not_trimmable_is_dropped(bench: Bench) -> None:
    """As without the setting; also when trimming was switched off again."""
    bench.fill(ROOM, 2)
    assert bench.send(frame(dscp=2 << 3)).result == TC_ACT_STOLEN
    assert bench.counts(2)["drop_packets"] == 1
    bench.plane.set_trim(PORT, DATA, None)
    bench.set()
    bench.fill(ROOM)
    assert bench.send(frame()).result == TC_ACT_STOLEN
    assert bench.counts(DATA)["drop_packets"] == 1


def test_headers_without_room_are_dropped_in_their_class(bench: Bench) -> None:
    """Cut first and then dropped: both are counted, so that every cut can be followed."""
    bench.set(TrimRule(DATA, DSCP), size=ROOM)
    bench.fill(ROOM)
    assert bench.send(frame()).result == TC_ACT_STOLEN
    assert bench.counts(DATA)["trim_packets"] == 1
    assert "drop_packets" not in bench.counts(DATA)
    assert bench.counts(HEADERS) == {"drop_packets": 1, "drop_bytes": 80, "trim_drops": 1}
    assert bench.plane.switches["in_bytes"][0] == ROOM


def test_headers_are_dropped_on_their_further_way_and_not_cut_again(bench: Bench) -> None:
    """They come to the next switch in their class, as cut packets, even if that could be cut."""
    bench.fill(ROOM)
    headers = bench.send(frame()).frame
    next_one = Bench()
    next_one.set(TrimRule(HEADERS, 60, MIN_TRIM_BYTES))
    next_one.fill(ROOM, HEADERS)
    assert next_one.send(headers).result == TC_ACT_STOLEN
    assert next_one.counts(HEADERS) == {
        "in_bytes": ROOM, "drop_packets": 1, "drop_bytes": 80, "trim_drops": 1,
    }  # fmt: skip


@pytest.mark.parametrize(("tc", "marked"), [(DATA, False), (HEADERS, True)])
def test_headers_are_marked_by_the_queue_in_which_they_wait(
    bench: Bench, tc: int, marked: bool
) -> None:
    """Not by the full one."""
    bench.plane.apply_ecn([EcnRule(tc, 0, 1, 1.0)])
    bench.set(TrimRule(DATA, DSCP))
    bench.fill(1, HEADERS)
    bench.fill(ROOM)
    cut = bench.send(frame()).frame
    assert len(cut) == 80
    assert (cut[wire.AT_TOS] & wire.ECN_MASK == wire.CE) is marked
    assert checksum(cut) == 0
    assert bench.counts(HEADERS).get("mark_packets", 0) == marked


def test_a_dynamic_threshold_cuts_where_it_would_drop(bench: Bench) -> None:
    """A queue may be alpha times what is free; its headers have an alpha of their own."""
    bench.plane.apply_buffers([BufferRule(DATA, 1 / 4)])
    bench.plane.configs[0] = bench.plane.configs[PORT]
    size = int(bench.plane.switches["buffer_bytes"][0])
    bench.fill(size // 5 - 1)
    assert bench.send(frame()).frame == frame()
    bench.fill(size // 5 + 1)
    assert len(bench.send(frame()).frame) == 80


@pytest.mark.parametrize("opcode", wire.SEND_OPCODES)
def test_a_nic_is_told_that_only_headers_came(bench: Bench, opcode: wire.Opcode) -> None:
    """With all that the headers say; and it counts them."""
    bench.fill(ROOM)
    whole = frame(psn=0xABCDEF, opcode=opcode)
    record = bench.receive(bench.send(whole).frame)
    assert (record["trimmed"], record["length"], record["tos"] >> 2) == (1, 80, DSCP)
    assert (record["psn"], record["dest_qp"], record["opcode"]) == (0xABCDEF, 0x123, opcode)
    assert record["udp_source"] == FLOW.sport
    assert bench.plane.states["trimmed_packets"][0] == 1
    record = bench.receive(whole)
    assert (record["trimmed"], record["length"]) == (0, FULL)
    assert bench.plane.states["trimmed_packets"][0] == 1


def test_the_shortest_headers_are_those_of_a_frame() -> None:
    """What a NIC reads of every frame is what the least size keeps."""
    assert wire.HEADER_BYTES + wire.ICRC_BYTES == MIN_TRIM_BYTES
