"""The frames of a tick of NICs that spray, against Scapy's, bit for bit."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest

from tests.fakes.nic_rig import PARAMETERS, PAYLOAD, endpoints
from traffic import headers, sack, wire
from traffic.entropies import offsets
from traffic.nic.connection import Connection
from traffic.nic.frames import FrameBook
from traffic.nic.pacing import Grant
from traffic.nic.sender import Burst, Message
from traffic.nic.spraying import SprayOutbox
from traffic.wire import PSN_MASK, Opcode

UET = replace(PARAMETERS, transport="uet")
POOL = offsets(64, "a")
TAIL = 10


class Wire:
    """A medium that keeps frames as bytes, by port."""

    def __init__(self) -> None:
        self.frames: list[tuple[int, bytes]] = []

    def send(self, ports: Any, rows: Any, heads: Any, bodies: Any, icrc: Any) -> int:
        """Takes all."""
        for n, port in enumerate(ports.tolist()):
            frame = rows[n].tobytes()[: int(heads[n])] + bytes(int(bodies[n])) + icrc[n].tobytes()
            self.frames.append((port, frame))
        return len(ports)


class Desk:
    """Connections, their outbox, and what it sends."""

    def __init__(self, connections: int = 2) -> None:
        ends = [endpoints(f"h{n + 1}", f"h{n + 8}", entropy=n + 5) for n in range(connections)]
        self.connections = [Connection(n, end, UET) for n, end in enumerate(ends)]
        book = FrameBook(sprays=True)
        for one in self.connections:
            book.add(one, PAYLOAD, [5 * PAYLOAD + TAIL], 48)
        self.datagram = book.add_datagram(ends[0].address, 100)
        self.wire = Wire()
        self.box = SprayOutbox(book.finish(), self.wire, POOL)  # type: ignore[arg-type]

    def expected(self, one: Connection, psn: int, opcode: Opcode, entropy: int, word: int) -> bytes:
        """A data frame as Scapy makes it, with a word of its own in the payload."""
        base = replace(one.ends.address, dest_qp=one.receiver_qp)
        to = replace(base, entropy=base.entropy ^ POOL[entropy])
        last = opcode in (Opcode.SEND_LAST, Opcode.SEND_ONLY)
        packet = headers.data_packet(to, opcode, psn, TAIL if last else PAYLOAD, last)
        payload = bytearray(packet[headers.BTH].payload.load)
        payload[:4] = word.to_bytes(4, "big")
        packet[headers.BTH].payload.load = bytes(payload)
        return bytes(packet)


def burst(first: int, count: int, entropies: bytes, word: int = 0) -> Burst:
    """Packets of a message with the numbers 3 to 8."""
    return Burst(Message(0, 3, 9, TAIL), first, count, 0, 0.0, entropies, word)


def test_every_packet_goes_out_over_its_own_entropy() -> None:
    """First, middle and last packets of a message, with the word of their burst."""
    desk = Desk()
    one = desk.connections[0]
    desk.box.add_burst(Grant(one, burst(3, 6, bytes([9, 0, 63, 9, 7, 31]), 0xABCDEF)))
    assert desk.box.flush() == 0
    kinds = [Opcode.SEND_FIRST, *[Opcode.SEND_MIDDLE] * 4, Opcode.SEND_LAST]
    assert [frame for _, frame in desk.wire.frames] == [
        desk.expected(one, psn, kind, entropy, 0xABCDEF)
        for psn, kind, entropy in zip(range(3, 9), kinds, [9, 0, 63, 9, 7, 31], strict=True)
    ]


def test_repeated_packets_are_those_that_were_sent_before() -> None:
    """But for their entropy: any part of a message."""
    desk = Desk()
    one = desk.connections[1]
    for first, count in ((4, 2), (8, 1), (3, 1)):
        desk.box.add_burst(Grant(one, burst(first, count, bytes(range(count)))))
    desk.box.flush()
    kinds = {3: Opcode.SEND_FIRST, 8: Opcode.SEND_LAST}
    assert [frame for _, frame in desk.wire.frames] == [
        desk.expected(one, psn, kinds.get(psn, Opcode.SEND_MIDDLE), entropy, 0)
        for psn, entropy in ((4, 0), (5, 1), (8, 0), (3, 0))
    ]


def test_answers_leave_before_data_and_say_all_that_they_have_to() -> None:
    """Over the path of their connection, whatever the data's."""
    desk = Desk()
    one, other = desk.connections
    one.receiver.on_packets(4, 3)
    one.receiver.on_trimmed(9)
    one.receiver.on_newest(6, 0)
    expected = one.receiver.answers(500)
    one.receiver.on_packets(4, 3)
    one.receiver._new.append((4, 3))
    one.receiver._cut.append(9)
    one.receiver.on_newest(6, 0)
    desk.box.add_burst(Grant(other, burst(4, 1, b"\5")))
    desk.box.add(one.ends.dst_port, desk.datagram, Opcode.SEND_ONLY, 77, 0)
    assert desk.box.answer(one, 500) == (2, 1)
    assert desk.box.answer(other, 500) == (0, 0)
    desk.box.flush()
    back = replace(one.ends.address, dest_qp=one.receiver_qp).reverse(one.sender_qp, 48)
    frames = [frame for port, frame in desk.wire.frames if port == one.ends.dst_port]
    assert frames[:2] == [headers.sack_frame(back, psn & PSN_MASK, number)
                          for _, psn, number in expected]  # fmt: skip
    assert frames[2] == headers.probe_frame(one.ends.address, 77, 100)
    assert [is_nak for is_nak, _, _ in expected] == [True, False]


@pytest.mark.parametrize("seed", range(6))
def test_many_frames_of_a_tick_are_those_of_each_alone(seed: int) -> None:
    """By port, in the order in which they were added; the next tick begins anew."""
    rng, desk, alone = Random(seed), Desk(3), Desk(3)
    for _ in range(3):
        steps = [(rng.randrange(3), rng.randint(3, 8), rng.randrange(1 << 24)) for _ in range(12)]
        for number, first, word in steps:
            count = rng.randint(1, 9 - first)
            entropies = bytes(rng.randrange(64) for _ in range(count))
            made = burst(first, count, entropies, word)
            for place in (desk, alone):
                place.box.add_burst(Grant(place.connections[number], made))
            alone.box.flush()
        desk.box.flush()
    by_port = [sorted(place.wire.frames, key=lambda row: row[0]) for place in (desk, alone)]
    assert sorted(by_port[0]) == sorted(by_port[1])
    assert len(by_port[0]) > 36


def test_sequence_numbers_wrap_within_a_burst() -> None:
    """AckReq and the reserved bits stay as they are."""
    desk = Desk(1)
    one = desk.connections[0]
    first = PSN_MASK - 1
    message = Message(0, first - 1, first + 9, TAIL)
    desk.box.add_burst(Grant(one, Burst(message, first, 4, 0, 0.0, bytes(4), 5)))
    desk.box.flush()
    assert [frame for _, frame in desk.wire.frames] == [
        desk.expected(one, psn & PSN_MASK, Opcode.SEND_MIDDLE, 0, 5)
        for psn in range(first, first + 4)
    ]


def test_what_the_kernel_does_not_take_is_counted() -> None:
    """And a tick without frames sends nothing."""
    desk = Desk(1)
    assert desk.box.flush() == 0
    desk.box.add_burst(Grant(desk.connections[0], burst(4, 3, bytes(3))))
    desk.wire.send = lambda ports, *_: len(ports) - 2  # type: ignore[method-assign]
    assert desk.box.flush() == 2


def test_an_answer_s_number_fits_its_frame() -> None:
    """192 bits: the AETH and twenty bytes."""
    number = sack.pack(sack.Answer(-1, 0, 0, sack.MASK, sack.MASK, 255, PSN_MASK))
    assert (number >> 32).bit_length() <= 8 * wire.SACK_BYTES
    assert np.uint32(number & 0xFFFFFFFF) == 0xFFFFFFFF
