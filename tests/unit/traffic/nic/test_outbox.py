"""The frames of one tick, bit for bit what Scapy builds, grouped by port."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import numpy.typing as npt
import pytest

from tests.fakes.nic_rig import PARAMETERS, PAYLOAD, address, endpoints, flow
from traffic import headers
from traffic.nic import outbox as outbox_module
from traffic.nic.connection import Connection
from traffic.nic.frames import book
from traffic.nic.outbox import Outbox
from traffic.nic.pacing import Grant
from traffic.nic.sender import Burst
from traffic.wire import Opcode

WRAP = 1 << 24


class Wire:
    """A medium that keeps whole frames, and takes all but `leaves` of each batch."""

    def __init__(self, leaves: int = 0) -> None:
        self.frames: list[tuple[int, bytes]] = []
        self.batches = 0
        self._leaves = leaves

    def send(self, ports: npt.NDArray[np.intp], rows: npt.NDArray[np.uint8],
             header_bytes: npt.NDArray[np.intp], body_bytes: npt.NDArray[np.intp],
             icrc: npt.NDArray[np.uint8]) -> int:  # fmt: skip
        """Puts frames together."""
        self.batches += 1
        for port, row, head, body, tail in zip(
            ports.tolist(), rows, header_bytes, body_bytes, icrc, strict=True
        ):
            self.frames.append((port, row.tobytes()[:head] + bytes(int(body)) + tail.tobytes()))
        return len(ports) - self._leaves

    def receive(self) -> npt.NDArray[np.void]:
        """Nothing."""
        raise NotImplementedError

    def backlog(self) -> npt.NDArray[np.int64]:
        """Nothing."""
        raise NotImplementedError

    def inside_switches(self) -> int:
        """Nothing."""
        return 0


def outbox(wire: Wire, *sizes_bytes: int, start: int = 0) -> tuple[Outbox, Connection]:
    """An outbox and a connection from h1 to h2 with messages of these sizes, first PSN `start`."""
    connection = Connection(5, endpoints(), replace(PARAMETERS, window_packets=None))
    connection.sender.oldest = connection.sender.next = connection.sender.end = start
    bank = book([connection], {5: sizes_bytes}, PAYLOAD, 48).finish()
    for number, size in enumerate(sizes_bytes):
        connection.enqueue(flow(number, size))
    return Outbox(bank, wire), connection


def forward(connection: Connection) -> headers.FlowAddress:
    """Headers of its data."""
    return replace(address("h1", "h2"), dest_qp=connection.receiver_qp)


def back(connection: Connection) -> headers.FlowAddress:
    """Headers of what its receiving end sends."""
    return replace(address("h2", "h1", 48), dest_qp=connection.sender_qp)


def grant(connection: Connection, count: int) -> Grant:
    """The next packets of a connection."""
    return Grant(connection, connection.sender.take(count, 0))


def test_a_message_is_first_middles_and_last() -> None:
    """Three packets and a rest, each as Scapy builds it; the last one asks for an ACK."""
    wire = Wire()
    box, one = outbox(wire, 3 * PAYLOAD + 10)
    box.add_burst(grant(one, 2))
    box.add_burst(grant(one, 2))
    assert box.flush() == 0
    to = forward(one)
    assert wire.frames == [
        (1, headers.data_frame(to, Opcode.SEND_FIRST, 0, PAYLOAD)),
        (1, headers.data_frame(to, Opcode.SEND_MIDDLE, 1, PAYLOAD)),
        (1, headers.data_frame(to, Opcode.SEND_MIDDLE, 2, PAYLOAD)),
        (1, headers.data_frame(to, Opcode.SEND_LAST, 3, 10, ack_request=True)),
    ]


@pytest.mark.parametrize("size", [1, 77, PAYLOAD])
def test_a_message_of_one_packet_is_an_only(size: int) -> None:
    """SEND Only, with its own length and pad."""
    wire = Wire()
    box, one = outbox(wire, size)
    box.add_burst(grant(one, 1))
    box.flush()
    expected = headers.data_frame(forward(one), Opcode.SEND_ONLY, 0, size, ack_request=True)
    assert wire.frames == [(1, expected)]


def test_packets_sent_again_keep_their_opcodes() -> None:
    """Going back into the middle of a message sends the same frames once more."""
    wire = Wire()
    box, one = outbox(wire, 3 * PAYLOAD)
    box.add_burst(grant(one, 3))
    one.sender.on_nak(1, 10)
    box.add_burst(grant(one, 2))
    box.flush()
    assert wire.frames[3:] == wire.frames[1:3]


@pytest.mark.parametrize("psn", [0, 1234, WRAP - 1, WRAP, 3 * WRAP + 5])
def test_acknowledgements_are_scapy_s(psn: int) -> None:
    """ACK and NAK name the low 24 bits and carry the number of finished messages."""
    wire = Wire()
    box, one = outbox(wire, 100)
    one.receiver.completed = WRAP + 7
    box.add_ack(one, False, psn)
    box.add_ack(one, True, psn)
    box.flush()
    assert wire.frames == [
        (2, headers.ack_frame(back(one), psn, 7)),
        (2, headers.nak_frame(back(one), psn, 7)),
    ]


def test_a_congestion_notification_is_scapy_s() -> None:
    """A CNP goes from the receiving host to the sender's queue pair."""
    wire = Wire()
    box, one = outbox(wire, 100)
    box.add_cnp(one)
    box.flush()
    assert wire.frames == [(2, headers.cnp_frame(back(one)))]


def test_sequence_numbers_wrap_on_the_wire() -> None:
    """Packet 2**24 carries the number 0."""
    wire = Wire()
    box, one = outbox(wire, 100)
    box.add(1, one.templates.full, Opcode.SEND_MIDDLE, WRAP, 0)
    box.flush()
    assert wire.frames[0][1] == headers.data_frame(forward(one), Opcode.SEND_MIDDLE, 0, PAYLOAD)


def test_frames_are_grouped_by_port_and_keep_their_order() -> None:
    """One batch for all, one piece of it per port; within a port acknowledgements go first."""
    wire = Wire()
    box, one = outbox(wire, 100)
    for psn in range(100):
        box.add(3 - psn % 3, one.templates.full, Opcode.SEND_MIDDLE, psn, 0)
    box.add_ack(one, False, 999)
    box.flush()
    numbers = [(port, int.from_bytes(frame[51:54], "big")) for port, frame in wire.frames]
    of_port = {port: [psn for psn in range(100) if 3 - psn % 3 == port] for port in (1, 2, 3)}
    of_port[2] = [999, *of_port[2]]
    assert numbers == [(port, psn) for port in (1, 2, 3) for psn in of_port[port]]
    assert wire.batches == 1


def test_what_the_kernel_did_not_take_is_told() -> None:
    """`flush` returns how many frames were refused."""
    box, one = outbox(Wire(leaves=2), 2 * PAYLOAD)
    box.add_burst(grant(one, 2))
    box.add_ack(one, False, 0)
    assert box.flush() == 2


def packet_by_packet(box: Outbox, one: Connection, burst: Burst) -> None:
    """Adds a burst as single packets, each by its place in the message."""
    message, templates = burst.message, one.templates
    for psn in range(burst.first, burst.first + burst.count):
        is_first, is_last = psn == message.first, psn == message.end - 1
        if is_last:
            opcode = Opcode.SEND_ONLY if is_first else Opcode.SEND_LAST
            box.add(one.ends.src_port, templates.tails[message.tail_bytes], opcode, psn, 1)
        else:
            opcode = Opcode.SEND_FIRST if is_first else Opcode.SEND_MIDDLE
            box.add(one.ends.src_port, templates.full, opcode, psn, 0)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("start", [0, WRAP - 40])
@pytest.mark.parametrize("few", [0, 200])
def test_bursts_are_what_their_packets_are_one_by_one(
    seed: int, start: int, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Random bursts of random messages, in bulk or not, across the wrap of sequence numbers too."""
    rng = Random(seed)
    sizes = [rng.choice([1, PAYLOAD, PAYLOAD + 1, rng.randint(1, 9 * PAYLOAD)]) for _ in range(30)]
    bulk, single = Wire(), Wire()
    (box, one), (other, _) = outbox(bulk, *sizes, start=start), outbox(single, *sizes)

    def send() -> None:
        for sender, limit in ((box, few), (other, 0)):
            monkeypatch.setattr(outbox_module, "FEW", limit)
            sender.flush()

    while (allowed := one.sender.allowed()) > 0:
        made = grant(one, rng.randint(1, allowed))
        box.add_burst(made)
        packet_by_packet(other, one, made.burst)
        if rng.random() < 0.3:
            send()
    send()
    assert bulk.frames == single.frames
    assert len(bulk.frames) == sum(-(-size // PAYLOAD) for size in sizes)


def test_an_outbox_is_empty_after_it_was_sent() -> None:
    """Nothing goes twice, and an empty box sends nothing."""
    wire = Wire()
    box, one = outbox(wire, 100)
    box.add_burst(grant(one, 1))
    box.flush()
    assert box.flush() == 0
    assert len(wire.frames) == 1
