"""Stamped frames against Scapy's, bit for bit, in memory that is used again."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.fakes.nic_rig import address
from traffic import headers, wire
from traffic.icrc import icrc_of
from traffic.nic.stamping import ASK, PSN_ONE, Batch, Stamper, row_of
from traffic.template import FrameBank
from traffic.wire import Opcode

TO = replace(address("h1", "h2"), dest_qp=0xABCDEF)
SIZES = [0, 1, 3, 64, 1_022, 4_096, 8_940]
SENDS = list(wire.SEND_OPCODES)


def bank() -> FrameBank:
    """A data frame of each size, then an ACK and a CNP."""
    frames = [headers.data_frame(TO, Opcode.SEND_MIDDLE, 0, size) for size in SIZES]
    return FrameBank([*frames, headers.ack_frame(TO, 0, 0), headers.cnp_frame(TO)])


ACK, CNP = len(SIZES), len(SIZES) + 1


def whole(batch: Batch) -> list[bytes]:
    """The frames that a batch stands for."""
    return [
        row.tobytes()[:head] + bytes(int(body)) + icrc.tobytes()
        for row, head, body, icrc in zip(
            batch.headers, batch.header_bytes, batch.body_bytes, batch.icrc, strict=True
        )
    ]


def column(*numbers: int) -> np.ndarray:
    """Numbers as the stamper takes them."""
    return np.array(numbers, np.int64)


@pytest.mark.parametrize("count", [1, 7, 400])
def test_stamped_data_frames_equal_scapys(rng: np.random.Generator, count: int) -> None:
    """Opcode, AckReq and PSN at random over templates of many lengths in one batch."""
    template = rng.integers(0, len(SIZES), count)
    opcode = rng.choice(SENDS, count)
    asks = rng.integers(0, 2, count)
    psn = rng.integers(0, 1 << 24, count)
    rows = column(*(row_of(t, o) for t, o in zip(template.tolist(), opcode.tolist(), strict=True)))
    batch = Stamper(bank()).stamp(rows, psn * PSN_ONE | np.where(asks, ASK, 0))
    assert whole(batch) == [
        headers.data_frame(TO, Opcode(o), int(p), SIZES[t], bool(a))
        for t, o, p, a in zip(template, opcode, psn, asks, strict=True)
    ]


def test_stamped_acknowledgements_equal_scapys(rng: np.random.Generator) -> None:
    """PSN, syndrome and MSN are the packet's own."""
    psn, msn = rng.integers(0, 1 << 24, (2, 32))
    is_nak = rng.integers(0, 2, 32)
    syndrome = np.where(is_nak, wire.SYNDROME_NAK_SEQUENCE, wire.SYNDROME_ACK)
    rows = np.full(32, row_of(ACK, Opcode.ACKNOWLEDGE))
    batch = Stamper(bank()).stamp(rows, psn * PSN_ONE | syndrome << 24 | msn)
    build = (headers.ack_frame, headers.nak_frame)
    assert whole(batch) == [
        build[n](TO, int(p), int(m)) for n, p, m in zip(is_nak, psn, msn, strict=True)
    ]


@pytest.mark.parametrize("count", [1, 8, 100])
def test_frames_stamped_one_by_one_are_the_same(rng: np.random.Generator, count: int) -> None:
    """Any template, opcode, AckReq, PSN and, for an ACK, AETH."""
    template = rng.integers(0, len(SIZES) + 2, count)
    rows = template * 4 + rng.integers(0, 4, count)
    words = rng.integers(0, 1 << 24, count) * PSN_ONE | np.where(rng.integers(0, 2, count), ASK, 0)
    words |= np.where(template == ACK, rng.integers(0, 1 << 32, count), 0)
    in_bulk = whole(Stamper(bank()).stamp(rows, words))
    assert whole(Stamper(bank()).stamp_few(rows.tolist(), words.tolist())) == in_bulk


def test_frames_of_all_kinds_go_into_one_batch() -> None:
    """An ACK, a CNP and data side by side, each with its own lengths."""
    rows = column(row_of(ACK, 0x11), row_of(CNP, Opcode.CNP), row_of(3, Opcode.SEND_ONLY))
    batch = Stamper(bank()).stamp(rows, column(5 * PSN_ONE | 9, 0, 8 * PSN_ONE))
    assert whole(batch) == [
        headers.ack_frame(TO, 5, 9),
        headers.cnp_frame(TO),
        headers.data_frame(TO, Opcode.SEND_ONLY, 8, 64),
    ]


def test_a_batch_is_as_if_it_were_the_first() -> None:
    """Nothing of an earlier batch is left, whether it was larger or smaller."""
    stamper = Stamper(bank())
    for count in (300, 1, 1_000, 2):
        rows = np.full(count, row_of(4, Opcode.SEND_MIDDLE))
        stamper.stamp(np.full(count, row_of(ACK, 0x11)), np.full(count, 77 * PSN_ONE | 0x60000005))
        frames = whole(stamper.stamp(rows, np.arange(count) * PSN_ONE))
        assert len(frames) == count
        assert frames[-1] == headers.data_frame(TO, Opcode.SEND_MIDDLE, count - 1, 1_022)


def test_memory_is_used_again() -> None:
    """A batch that is no larger than one before takes no new memory."""
    stamper = Stamper(bank())
    first = stamper.stamp(np.full(500, 0), np.zeros(500, np.int64))
    again = stamper.stamp(np.full(499, 0), np.zeros(499, np.int64))
    assert np.shares_memory(first.headers, again.headers)


@pytest.mark.parametrize("frame", [headers.nak_frame(TO, 0, 0), headers.ack_frame(TO, 0, 4)])
def test_a_template_with_an_aeth_of_its_own_is_refused(frame: bytes) -> None:
    """What is stamped would be mixed with it."""
    with pytest.raises(ValueError, match="of its own"):
        Stamper(FrameBank([frame]))


def test_a_template_s_own_number_is_written_over() -> None:
    """PSN and AckReq are the packet's, whatever the template has."""
    made = headers.data_frame(TO, Opcode.SEND_LAST, 77, 64, ack_request=True)
    rows = column(row_of(0, Opcode.SEND_FIRST))
    batch = Stamper(FrameBank([made])).stamp(rows, column(5 * PSN_ONE))
    assert whole(batch) == [headers.data_frame(TO, Opcode.SEND_FIRST, 5, 64)]


def test_a_run_without_frames_has_nothing_to_stamp() -> None:
    """Computations alone need no frames."""
    assert (
        whole(
            Stamper(FrameBank.derive([headers.ack_frame(TO, 0, 0)], [])).stamp(column(), column())
        )
        == []
    )


def test_source_ports_are_changed_in_bulk(rng: np.random.Generator) -> None:
    """Each frame's by its own number; a 0 changes nothing, whatever kind of frame it is."""
    count = 64
    template = rng.integers(0, len(SIZES) + 2, count)
    rows = template * 4 + rng.integers(0, 4, count)
    words = rng.integers(0, 1 << 24, count) * PSN_ONE
    deltas = np.where(rng.integers(0, 4, count), rng.integers(0, 1 << 14, count), 0)
    stamper = Stamper(bank())
    plain = whole(stamper.stamp(rows, words))
    batch = stamper.stamp(rows, words)
    stamper.spread(deltas)
    for before, after, delta in zip(plain, whole(batch), deltas.tolist(), strict=True):
        sport = int.from_bytes(before[wire.AT_SPORT : wire.AT_SPORT + 2], "big") ^ delta
        expected = bytearray(before)
        expected[wire.AT_SPORT : wire.AT_SPORT + 2] = sport.to_bytes(2, "big")
        expected[-4:] = icrc_of(bytes(expected[:-4])).to_bytes(4, "little")
        assert after == bytes(expected)


def test_stamped_selective_acknowledgements_equal_scapys(rng: np.random.Generator) -> None:
    """Some among other frames of a batch."""
    made = FrameBank(
        [headers.data_frame(TO, Opcode.SEND_FIRST, 0, 64), headers.sack_frame(TO, 0, 0)]
    )
    made.widen(1, wire.SACK_BYTES)
    answers = [int.from_bytes(rng.bytes(20), "big") << 32 | n for n in range(9)]
    rows = column(*[row_of(0, Opcode.SEND_FIRST), row_of(1, Opcode.ACKNOWLEDGE)] * 9)
    words = column(*[part for n in range(9) for part in (n * PSN_ONE, n * PSN_ONE | n)])
    stamper = Stamper(made)
    batch = stamper.stamp(rows, words)
    behind = b"".join((answer >> 32).to_bytes(20, "big") for answer in answers)
    octets = np.frombuffer(behind, np.uint8).reshape(9, 20)
    stamper.extend(np.arange(1, 18, 2), octets)
    assert whole(batch) == [
        frame
        for n, answer in enumerate(answers)
        for frame in (
            headers.data_frame(TO, Opcode.SEND_FIRST, n, 64),
            headers.sack_frame(TO, n, answer),
        )
    ]
