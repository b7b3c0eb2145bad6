"""RoCEv2 frames that Scapy builds, against the field positions and the CRC of the standards."""

from __future__ import annotations

import pytest
from scapy.contrib.roce import BTH
from scapy.layers.l2 import Ether

from traffic import headers, wire
from traffic.wire import FlowAddress, Opcode

ADDRESS = FlowAddress(
    src_mac="02:00:0a:01:01:01",
    dst_mac="02:00:0a:01:04:02",
    src_ip="10.1.1.1",
    dst_ip="10.1.4.2",
    entropy=0x1234,
    dest_qp=0xABCDEF,
    dscp=26,
)
SIZES = [0, 1, 2, 3, 4, 5, 255, 1024, 1027, 4096]


def crc32_bitwise(data: bytes) -> int:
    """CRC-32 of IEEE 802.3 one bit at a time, nothing shared with the code under test."""
    register = 0xFFFFFFFF
    for byte in data:
        register ^= byte
        for _ in range(8):
            register = (register >> 1) ^ (0xEDB88320 if register & 1 else 0)
    return register ^ 0xFFFFFFFF


def expected_icrc(frame: bytes) -> bytes:
    """ICRC by annex A17.3: eight 0xFF, then IP to payload with the mutable fields as ones."""
    ip = bytearray(frame[14:34])
    ip[1] = ip[8] = ip[10] = ip[11] = 0xFF
    udp = bytearray(frame[34:42])
    udp[6] = udp[7] = 0xFF
    bth = bytearray(frame[42:54])
    bth[4] = 0xFF
    crc = crc32_bitwise(b"\xff" * 8 + bytes(ip + udp + bth) + frame[54:-4])
    return crc.to_bytes(4, "little")


def one_of_each() -> list[bytes]:
    """A frame of every kind."""
    return [
        headers.data_frame(ADDRESS, Opcode.SEND_FIRST, 1, 1024),
        headers.data_frame(ADDRESS, Opcode.SEND_MIDDLE, 2, 1024),
        headers.data_frame(ADDRESS, Opcode.SEND_LAST, 3, 77, ack_request=True),
        headers.data_frame(ADDRESS, Opcode.SEND_ONLY, 4, 5, ack_request=True),
        headers.probe_frame(ADDRESS, 5),
        headers.ack_frame(ADDRESS, 6, 2),
        headers.nak_frame(ADDRESS, 7, 2),
        headers.cnp_frame(ADDRESS),
    ]


def test_ethernet_ip_and_udp_fields_stand_where_the_standards_put_them() -> None:
    """DF, TTL 64, DSCP with ECT(0), the entropy port, port 4791 and no UDP checksum."""
    frame = headers.data_frame(ADDRESS, Opcode.SEND_ONLY, 1, 100)
    assert frame[:14].hex() == "02000a01040202000a0101010800"
    assert frame[14] == 0x45
    assert frame[15] == 26 << 2 | 0b10
    assert int.from_bytes(frame[16:18], "big") == len(frame) - 14
    assert frame[18:24].hex() == "000040004011"
    assert frame[26:34] == bytes([10, 1, 1, 1, 10, 1, 4, 2])
    assert frame[34:38].hex() == "d23412b7"
    assert int.from_bytes(frame[38:40], "big") == len(frame) - 34
    assert frame[40:42] == b"\0\0"


def test_ip_header_checksum_is_right() -> None:
    """The one's complement sum over the IPv4 header is all ones (RFC 791)."""
    for frame in one_of_each():
        total = sum(int.from_bytes(frame[at : at + 2], "big") for at in range(14, 34, 2))
        assert total % 0xFFFF == 0


@pytest.mark.parametrize(
    ("opcode", "value"),
    [
        (Opcode.SEND_FIRST, 0x00),
        (Opcode.SEND_MIDDLE, 0x01),
        (Opcode.SEND_LAST, 0x02),
        (Opcode.SEND_ONLY, 0x04),
    ],
)
def test_bth_of_data(opcode: Opcode, value: int) -> None:
    """Opcode, P_Key, destination queue pair, AckReq bit and PSN follow the base header's layout."""
    frame = headers.data_frame(ADDRESS, opcode, 0x1000007, 8, ack_request=True)
    assert frame[42] == value
    assert frame[43:54].hex() == "00ffff00abcdef80000007"


@pytest.mark.parametrize("size", SIZES)
def test_payload_is_padded_to_four_bytes_and_the_pad_is_counted(size: int) -> None:
    """The pad count says how many zero bytes bring the payload to a multiple of 4."""
    frame = headers.data_frame(ADDRESS, Opcode.SEND_ONLY, 1, size)
    pad = frame[43] >> 4 & 3
    assert (size + pad) % 4 == 0
    assert len(frame) == 54 + size + pad + 4 == wire.data_frame_bytes(size)
    assert not any(frame[54:-4])


def test_acknowledgement_and_nak_carry_syndrome_and_msn() -> None:
    """AETH: syndrome 0 for ACK, 0x60 for a PSN sequence error, then 24 bits of MSN."""
    ack = headers.ack_frame(ADDRESS, 0x010203, 0x040506)
    nak = headers.nak_frame(ADDRESS, 0x010203, 0x040506)
    assert ack[42] == nak[42] == 0x11
    assert ack[51:54] == nak[51:54] == bytes([1, 2, 3])
    assert ack[54:58].hex() == "00040506"
    assert nak[54:58].hex() == "60040506"
    assert len(ack) == len(nak) == wire.ACK_FRAME_BYTES == 62


def test_congestion_notification_packet() -> None:
    """Opcode 0x81, BECN set and FECN not, PSN 0, 16 reserved zero bytes, 74 bytes in all."""
    frame = headers.cnp_frame(ADDRESS)
    assert frame[42] == 0x81
    assert frame[46] == 0x40
    assert frame[47:50].hex() == "abcdef"
    assert frame[50:54] == bytes(4)
    assert frame[54:70] == bytes(16)
    assert len(frame) == wire.CNP_FRAME_BYTES == 74


def test_probe_is_a_small_send_only_without_acknowledgement_request() -> None:
    """A probe is the smallest disturbance: SEND Only, AckReq 0, no shorter than Ethernet allows."""
    frame = headers.probe_frame(ADDRESS, 9)
    assert frame[42] == 0x04
    assert frame[50] == 0
    assert wire.MIN_FRAME_BYTES <= len(frame) <= 80


def test_icrc_of_every_kind_agrees_with_a_bitwise_crc_over_the_masked_packet() -> None:
    """The ICRC is CRC-32 over the pseudo packet with mutable fields as ones, least byte first."""
    for frame in one_of_each():
        assert frame[-4:] == expected_icrc(frame)


@pytest.mark.parametrize("size", SIZES)
def test_icrc_for_payloads_of_any_length(size: int) -> None:
    """Padding does not displace the ICRC."""
    frame = headers.data_frame(ADDRESS, Opcode.SEND_LAST, 0xFFFFFF, size)
    assert frame[-4:] == expected_icrc(frame)


def test_marking_and_forwarding_leave_the_icrc_valid() -> None:
    """CE in place of ECT(0), a decremented TTL with its new checksum and BECN are all masked."""
    for frame in one_of_each():
        changed = bytearray(frame)
        changed[15] |= 0b11
        changed[22] -= 1
        changed[24] ^= 0x01
        changed[46] ^= 0xC0
        assert bytes(changed[-4:]) == expected_icrc(bytes(changed))


def test_a_changed_psn_does_not_leave_the_icrc_valid() -> None:
    """The check above could fail: the PSN is covered."""
    frame = bytearray(headers.data_frame(ADDRESS, Opcode.SEND_ONLY, 1, 64))
    frame[53] ^= 1
    assert bytes(frame[-4:]) != expected_icrc(bytes(frame))


@pytest.mark.parametrize("entropy", [0, 53, wire.ENTROPY_MASK])
def test_frames_parse_back_as_roce_in_both_directions(entropy: int) -> None:
    """Whatever the entropy, no dissector takes the source port for another protocol."""
    there = FlowAddress(
        "02:00:0a:01:01:01", "02:00:0a:01:04:02", "10.1.1.1", "10.1.4.2", entropy, 7
    )
    for address in (there, there.reverse(dest_qp=8, dscp=48)):
        frame = headers.data_frame(address, Opcode.SEND_ONLY, 5, 6)
        parsed = Ether(frame)
        assert parsed[BTH].psn == 5
        assert parsed[BTH].dqpn == address.dest_qp
        assert bytes(parsed) == frame


def test_the_way_back_swaps_the_ends_and_keeps_the_entropy() -> None:
    """An acknowledgement travels from receiver to sender in the class that is asked for."""
    back = ADDRESS.reverse(dest_qp=3, dscp=48)
    assert (back.src_mac, back.src_ip) == (ADDRESS.dst_mac, ADDRESS.dst_ip)
    assert (back.dst_mac, back.dst_ip) == (ADDRESS.src_mac, ADDRESS.src_ip)
    assert (back.sport, back.dest_qp, back.dscp) == (ADDRESS.sport, 3, 48)
    assert ADDRESS.reverse(3).dscp == ADDRESS.dscp


@pytest.mark.parametrize(
    ("field", "value"),
    [("entropy", 0x4000), ("entropy", -1), ("dest_qp", 1 << 24), ("dscp", 64), ("ect", 4)],
)
def test_an_address_field_out_of_range_is_refused(field: str, value: int) -> None:
    """Nothing is cut to its field's width in silence."""
    given = {"entropy": 1, "dest_qp": 1, "dscp": 1, "ect": 1, field: value}
    with pytest.raises(ValueError, match=field):
        FlowAddress("02:00:0a:01:01:01", "02:00:0a:01:04:02", "10.1.1.1", "10.1.4.2", **given)


def test_only_send_opcodes_make_data_frames() -> None:
    """A CNP has another body, so it is not a data frame."""
    with pytest.raises(ValueError, match="CNP"):
        headers.data_frame(ADDRESS, Opcode.CNP, 1, 0)


def test_wire_bytes_count_padding_fcs_preamble_and_gap() -> None:
    """Line time of a frame (IEEE 802.3): 84 bytes at least, else its length plus 24."""
    assert wire.wire_bytes(58) == wire.wire_bytes(60) == 84
    assert wire.wire_bytes(61) == 85
    assert wire.wire_bytes(wire.data_frame_bytes(4096)) == 4096 + 58 + 24


@pytest.mark.parametrize("mtu", [576, 1500, 4096, 9000])
def test_the_largest_payload_fills_the_mtu_and_no_more(mtu: int) -> None:
    """The IP packet of the largest payload fits the MTU; four bytes more do not."""
    payload = wire.max_payload_bytes(mtu)
    frame = headers.data_frame(ADDRESS, Opcode.SEND_MIDDLE, 1, payload)
    assert len(frame) - 14 <= mtu < len(frame) - 14 + 4


def test_traffic_class_is_the_upper_half_of_the_dscp() -> None:
    """DSCP 26 belongs to class 3, class 6 is CS6 = 48, and every class comes back."""
    assert wire.traffic_class(26) == 3
    assert wire.dscp_of(6) == 48
    assert [wire.traffic_class(wire.dscp_of(number)) for number in range(8)] == list(range(8))


def test_a_pause_frame_is_as_the_standard_has_it() -> None:
    """Destination, type, opcode, the vector of enabled classes, a time for each class, padding."""
    frame = headers.pause_frame("02:01:00:00:00:05", {3: 0xFFFF, 5: 0})
    assert frame[:14] == bytes.fromhex("0180c2000001 020100000005 8808")
    assert frame[14:18] == bytes.fromhex("0101 0028")
    assert frame[18:34] == bytes(6) + b"\xff\xff" + bytes(8)
    assert frame[34:] == bytes(26)
    assert len(frame) == 60
