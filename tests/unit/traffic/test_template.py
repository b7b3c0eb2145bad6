"""Patched frames against Scapy's, bit for bit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from traffic import headers, wire
from traffic.icrc import flips, icrc_of
from traffic.template import HEADER_COLUMNS, FrameBank, derive, resized
from traffic.wire import FlowAddress, Opcode

ADDRESS = FlowAddress(
    "02:00:0a:01:01:01", "02:00:0a:01:04:02", "10.1.1.1", "10.1.4.2", 0x1234, 0xABCDEF, 26
)
SIZES = [0, 1, 2, 3, 4, 63, 64, 257, 1024, 1030, 4036, 8940]
SENDS = list(wire.SEND_OPCODES)


def random_address(rng: np.random.Generator) -> FlowAddress:
    """An address with every field drawn at random."""
    octets = [int(value) for value in rng.integers(0, 256, 20)]
    macs = [":".join(f"{value:02x}" for value in octets[at : at + 6]) for at in (0, 6)]
    ips = [".".join(str(value) for value in octets[at : at + 4]) for at in (12, 16)]
    return FlowAddress(
        src_mac=macs[0],
        dst_mac=macs[1],
        src_ip=ips[0],
        dst_ip=ips[1],
        entropy=int(rng.integers(0, 1 << 14)),
        dest_qp=int(rng.integers(0, 1 << 24)),
        dscp=int(rng.integers(0, 64)),
        ect=int(rng.integers(0, 4)),
    )


def assembled(
    bank: FrameBank, index: np.ndarray, rows: np.ndarray, icrc: np.ndarray
) -> list[bytes]:
    """The frames that one call of `patch` stands for."""
    return [
        bank.assemble(int(index[i]), rows[i].tobytes(), icrc[i].tobytes())
        for i in range(len(index))
    ]


def test_an_unpatched_template_is_the_frame_it_was_made_of() -> None:
    """Taking a frame apart loses nothing."""
    frames = [headers.data_frame(ADDRESS, Opcode.SEND_ONLY, 3, size) for size in SIZES]
    frames += [headers.ack_frame(ADDRESS, 1, 2), headers.cnp_frame(ADDRESS)]
    bank = FrameBank(frames)
    assert [bank.frame(i) for i in range(len(bank))] == frames
    assert bank.frame_bytes.tolist() == [len(frame) for frame in frames]
    assert (bank.header_bytes + bank.body_bytes + 4 == bank.frame_bytes).all()


def test_patched_data_frames_equal_scapys(rng: np.random.Generator) -> None:
    """Opcode, AckReq and PSN at random over templates of many lengths in one batch."""
    bank = FrameBank([headers.data_frame(ADDRESS, Opcode.SEND_ONLY, 7, size) for size in SIZES])
    index = rng.integers(0, len(SIZES), 48)
    opcode = rng.choice(SENDS, 48)
    ack_request = rng.integers(0, 2, 48)
    psn = rng.integers(0, 1 << 24, 48)
    rows, icrc = bank.patch(index, opcode, ack_request, psn)
    expected = [
        headers.data_frame(ADDRESS, Opcode(o), int(p), SIZES[i], bool(a))
        for i, o, p, a in zip(index, opcode, psn, ack_request, strict=True)
    ]
    assert assembled(bank, index, rows, icrc) == expected


def test_patched_port_and_queue_pair_equal_scapys(rng: np.random.Generator) -> None:
    """The UDP source port and the destination queue pair can differ per packet too."""
    bank = FrameBank([headers.data_frame(ADDRESS, Opcode.SEND_FIRST, 7, 1022)])
    index = np.zeros(32, np.intp)
    psn = rng.integers(0, 1 << 24, 32)
    entropy = rng.integers(0, 1 << 14, 32)
    qp = rng.integers(0, 1 << 24, 32)
    rows, icrc = bank.patch(
        index, Opcode.SEND_LAST, 1, psn, sport=wire.ENTROPY_BASE | entropy, dest_qp=qp
    )
    expected = [
        headers.data_frame(
            replace(ADDRESS, entropy=int(e), dest_qp=int(q)), Opcode.SEND_LAST, int(p), 1022, True
        )
        for e, q, p in zip(entropy, qp, psn, strict=True)
    ]
    assert assembled(bank, index, rows, icrc) == expected


def test_patched_acknowledgements_equal_scapys(rng: np.random.Generator) -> None:
    """One template serves ACK and NAK with any PSN and MSN."""
    bank = FrameBank([headers.ack_frame(ADDRESS, 1, 1)])
    index = np.zeros(32, np.intp)
    psn, msn = rng.integers(0, 1 << 24, (2, 32))
    is_nak = rng.integers(0, 2, 32)
    syndrome = np.where(is_nak, wire.SYNDROME_NAK_SEQUENCE, wire.SYNDROME_ACK)
    rows, icrc = bank.patch(index, Opcode.ACKNOWLEDGE, 0, psn, syndrome=syndrome, msn=msn)
    build = (headers.ack_frame, headers.nak_frame)
    expected = [build[n](ADDRESS, int(p), int(m)) for n, p, m in zip(is_nak, psn, msn, strict=True)]
    assert assembled(bank, index, rows, icrc) == expected


def test_patching_msn_alone_keeps_the_templates_syndrome() -> None:
    """An AETH field that is not given stays as it is in the template."""
    bank = FrameBank([headers.nak_frame(ADDRESS, 1, 1)])
    index = np.zeros(1, np.intp)
    rows, icrc = bank.patch(index, Opcode.ACKNOWLEDGE, 0, 5, msn=6)
    assert assembled(bank, index, rows, icrc) == [headers.nak_frame(ADDRESS, 5, 6)]
    rows, icrc = bank.patch(index, Opcode.ACKNOWLEDGE, 0, 5, syndrome=0)
    assert assembled(bank, index, rows, icrc) == [headers.ack_frame(ADDRESS, 5, 1)]


def test_a_psn_wraps_at_24_bits_and_leaves_its_neighbour_alone() -> None:
    """A sequence number past 2**24 continues at 0 and does not set AckReq."""
    bank = FrameBank([headers.data_frame(ADDRESS, Opcode.SEND_MIDDLE, 1, 64)])
    index = np.zeros(2, np.intp)
    rows, icrc = bank.patch(index, Opcode.SEND_MIDDLE, 0, np.array([(1 << 24) - 1, 1 << 24]))
    expected = [headers.data_frame(ADDRESS, Opcode.SEND_MIDDLE, psn, 64) for psn in (0xFFFFFF, 0)]
    assert assembled(bank, index, rows, icrc) == expected


def test_patching_leaves_the_templates_alone() -> None:
    """The same call gives the same answer twice."""
    bank = FrameBank([headers.ack_frame(ADDRESS, 1, 1)])
    before = bank.frame(0)
    bank.patch(np.zeros(3, np.intp), Opcode.ACKNOWLEDGE, 1, 77, sport=1, dest_qp=2, msn=3)
    assert bank.frame(0) == before


def test_an_empty_batch_is_no_special_case() -> None:
    """A tick with nothing to send gets empty arrays."""
    bank = FrameBank([headers.ack_frame(ADDRESS, 1, 1)])
    rows, icrc = bank.patch(np.zeros(0, np.intp), Opcode.ACKNOWLEDGE, 0, np.zeros(0, np.int64))
    assert rows.shape == (0, HEADER_COLUMNS)
    assert icrc.shape == (0, 4)


def test_derived_templates_equal_scapys(rng: np.random.Generator) -> None:
    """Any flow's frames come from any other flow's: MACs, IPs, checksum, ports, DSCP, QP, ICRC."""
    flows = [random_address(rng) for _ in range(12)]
    bases = [
        headers.data_frame(ADDRESS, Opcode.SEND_FIRST, 9, 1021),
        headers.data_frame(ADDRESS, Opcode.SEND_LAST, 9, 0, True),
        headers.ack_frame(ADDRESS, 9, 8),
        headers.cnp_frame(ADDRESS),
    ]
    bank = FrameBank.derive(bases, flows)
    expected = []
    for flow in flows:
        expected.append(headers.data_frame(flow, Opcode.SEND_FIRST, 9, 1021))
        expected.append(headers.data_frame(flow, Opcode.SEND_LAST, 9, 0, True))
        expected.append(headers.ack_frame(flow, 9, 8))
        expected.append(headers.cnp_frame(flow))
    assert [bank.frame(i) for i in range(len(bank))] == expected
    assert derive(bases[0], flows[3]) == expected[12]


def test_derived_pairs_stand_in_the_order_given(rng: np.random.Generator) -> None:
    """Only the pairs of base and flow that are asked for are made."""
    flows = [random_address(rng) for _ in range(3)]
    bases = [headers.data_frame(ADDRESS, Opcode.SEND_ONLY, 1, size) for size in (10, 20)]
    bank = FrameBank.derive(bases, flows, [(1, 2), (0, 0)])
    assert [bank.frame(0), bank.frame(1)] == [
        headers.data_frame(flows[2], Opcode.SEND_ONLY, 1, 20),
        headers.data_frame(flows[0], Opcode.SEND_ONLY, 1, 10),
    ]
    assert len(bank) == 2


def test_a_derived_bank_patches_like_a_built_one(rng: np.random.Generator) -> None:
    """Deriving and patching compose."""
    flows = [random_address(rng) for _ in range(6)]
    bank = FrameBank.derive([headers.data_frame(ADDRESS, Opcode.SEND_ONLY, 1, 99)], flows)
    index = np.arange(6)
    psn = rng.integers(0, 1 << 24, 6)
    rows, icrc = bank.patch(index, Opcode.SEND_MIDDLE, 1, psn)
    expected = [
        headers.data_frame(flow, Opcode.SEND_MIDDLE, int(number), 99, True)
        for flow, number in zip(flows, psn, strict=True)
    ]
    assert assembled(bank, index, rows, icrc) == expected


@pytest.mark.parametrize("size", SIZES)
def test_a_resized_frame_equals_scapys(size: int) -> None:
    """Another length of payload changes lengths, pad count, checksum and ICRC, nothing else."""
    base = headers.data_frame(ADDRESS, Opcode.SEND_LAST, 77, 1021, True)
    assert resized(base, size) == headers.data_frame(ADDRESS, Opcode.SEND_LAST, 77, size, True)


@pytest.mark.parametrize("build", [headers.cnp_frame, lambda a: headers.ack_frame(a, 1, 1)])
def test_only_data_frames_are_resized(build: object) -> None:
    """ACK and CNP have bodies of fixed length."""
    assert callable(build)
    with pytest.raises(ValueError, match="no payload"):
        resized(build(ADDRESS), 4)


def test_marking_a_patched_frame_leaves_its_icrc_valid() -> None:
    """What the fabric does to a frame (CE, TTL, header checksum) is outside the ICRC."""
    bank = FrameBank([headers.data_frame(ADDRESS, Opcode.SEND_ONLY, 1, 1000)])
    index = np.zeros(1, np.intp)
    rows, icrc = bank.patch(index, Opcode.SEND_ONLY, 0, 4711)
    rows[:, wire.AT_TOS] |= wire.CE
    rows[:, wire.AT_TTL] -= 3
    rows[:, wire.AT_IP_CHECKSUM] ^= 0x55
    (frame,) = assembled(bank, index, rows, icrc)
    assert icrc_of(frame[:-4]) == int.from_bytes(frame[-4:], "little")


def test_acknowledgement_fields_are_refused_on_data_frames() -> None:
    """An MSN written into a payload would be a silent fault."""
    bank = FrameBank(
        [headers.ack_frame(ADDRESS, 1, 1), headers.data_frame(ADDRESS, Opcode.SEND_ONLY, 1, 64)]
    )
    with pytest.raises(ValueError, match="acknowledgements only"):
        bank.patch(np.array([0, 1]), Opcode.ACKNOWLEDGE, 0, 1, msn=5)


def damaged(at: int, value: int) -> bytes:
    """A data frame with one byte replaced."""
    frame = bytearray(headers.data_frame(ADDRESS, Opcode.SEND_ONLY, 1, 64))
    frame[at] = value
    return bytes(frame)


@pytest.mark.parametrize(
    ("frame", "why"),
    [
        (b"\0" * 57, "too short"),
        (damaged(12, 0x86), "IPv4"),
        (damaged(14, 0x46), "options"),
        (damaged(23, 6), "4791"),
        (damaged(37, 0), "4791"),
        (damaged(60, 1), "zeros"),
        (damaged(53, 2), "ICRC"),
    ],
)
def test_a_frame_that_cannot_be_a_template_is_refused(frame: bytes, why: str) -> None:
    """The linear patching is right for intact RoCEv2 frames with a body of zeros only."""
    with pytest.raises(ValueError, match=why):
        FrameBank([frame])


@pytest.mark.parametrize(
    "flow", [replace(ADDRESS, src_ip="10.1.1"), replace(ADDRESS, dst_mac="02:00:0a:01:04")]
)
def test_an_address_that_is_none_is_refused(flow: FlowAddress) -> None:
    """A short address must not shift the ones behind it."""
    base = headers.data_frame(ADDRESS, Opcode.SEND_ONLY, 1, 64)
    with pytest.raises(ValueError, match="not a MAC or an IPv4 address"):
        derive(base, flow)


def test_flips_are_the_linear_part_of_the_crc(rng: np.random.Generator) -> None:
    """Changing one byte anywhere changes the ICRC by the table's entry, at any distance."""
    frame = bytearray(rng.integers(0, 256, 3000, np.uint8).tobytes())
    table = flips(3000)
    for at in [int(value) for value in rng.integers(wire.AT_AETH, 3000, 64)]:
        before, change = icrc_of(bytes(frame)), int(rng.integers(1, 256))
        frame[at] ^= change
        assert icrc_of(bytes(frame)) == before ^ int(table[(2999 - at) * 256 + change])
