"""The templates that a run needs: all of them, once each, as Scapy would build the frames."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.fakes.nic_rig import PARAMETERS, PAYLOAD, address, endpoints
from traffic import headers
from traffic.nic.connection import Connection
from traffic.nic.frames import FrameBook, book
from traffic.wire import Opcode

CONTROL_DSCP = 48


def connection(number: int = 3) -> Connection:
    """A connection from h1 to h2 with entropy 77."""
    return Connection(number, endpoints(entropy=77), PARAMETERS)


def test_a_connection_s_templates_are_scapy_s_frames() -> None:
    """Data forward to the receiver's queue pair, ACK and CNP back to the sender's."""
    one = connection()
    bank = book([one], {3: [10_000]}, PAYLOAD, CONTROL_DSCP).finish()
    forward = replace(address("h1", "h2", entropy=77), dest_qp=one.receiver_qp)
    back = replace(address("h2", "h1", CONTROL_DSCP, entropy=77), dest_qp=one.sender_qp)
    templates = one.templates
    middle = Opcode.SEND_MIDDLE
    assert bank.frame(templates.full) == headers.data_frame(forward, middle, 0, PAYLOAD)
    tail = bank.frame(templates.tails[10_000 - 2 * PAYLOAD])
    assert tail == headers.data_frame(forward, middle, 0, 10_000 - 2 * PAYLOAD)
    assert bank.frame(templates.ack) == headers.ack_frame(back, 0, 0)
    assert bank.frame(templates.cnp) == headers.cnp_frame(back)


@pytest.mark.parametrize("size", [1, PAYLOAD - 1, PAYLOAD, PAYLOAD + 1, 7 * PAYLOAD, 12_345])
def test_every_message_s_last_packet_has_a_template(size: int) -> None:
    """The rest that the sender computes is the rest that the book has prepared."""
    one = connection()
    book([one], {3: [size]}, PAYLOAD, CONTROL_DSCP).finish()
    assert one.sender.enqueue(1, size).tail_bytes in one.templates.tails


def test_templates_are_shared_within_a_connection_but_not_between_two() -> None:
    """Messages of equal rest need one template; each connection has its own addresses."""
    pair = [connection(0), connection(1)]
    sizes = {0: [PAYLOAD, 2 * PAYLOAD, 100, PAYLOAD + 100], 1: [100]}
    bank = book(pair, sizes, PAYLOAD, CONTROL_DSCP).finish()
    assert set(pair[0].templates.tails) == {PAYLOAD, 100}
    numbers = [
        number
        for one in pair
        for number in (one.templates.full, *one.templates.tails.values(),
                       one.templates.ack, one.templates.cnp)
    ]  # fmt: skip
    assert sorted(numbers) == list(range(len(bank)))


def test_datagrams_are_frames_of_their_own() -> None:
    """A probe's template carries its queue pair and size."""
    frames = FrameBook()
    flow = replace(address("h2", "h5", 40), dest_qp=0x800007)
    number = frames.add_datagram(flow, 30)
    assert frames.finish().frame(number) == headers.data_frame(flow, Opcode.SEND_MIDDLE, 0, 30)


def test_a_run_without_anything_to_send_has_no_templates() -> None:
    """Computations alone need no frames."""
    assert len(book([], {}, PAYLOAD, CONTROL_DSCP).finish()) == 0
