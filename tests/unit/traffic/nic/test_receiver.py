"""The receiving half of a connection: order, gaps, duplicates, answers."""

from __future__ import annotations

import pytest

from traffic.nic.receiver import Receiver
from traffic.wire import Opcode

WRAP = 1 << 24
MIDDLE, LAST, ONLY = Opcode.SEND_MIDDLE, Opcode.SEND_LAST, Opcode.SEND_ONLY


def receiver(expected: int = 0, *psns: int) -> Receiver:
    """A receiver that expects a packet and has then got some middle packets."""
    one = Receiver()
    one.expected = expected
    for psn in psns:
        one.on_packet(psn, MIDDLE)
    return one


def test_packets_in_order_are_acknowledged_once_per_batch() -> None:
    """The ACK names the last of them; asked again, there is nothing to say."""
    one = receiver(0, 0, 1, 2)
    assert one.pop_answer() == (False, 2)
    assert one.pop_answer() is None
    assert (one.expected, one.discarded, one.duplicates) == (3, 0, 0)


@pytest.mark.parametrize("opcode", [LAST, ONLY])
def test_a_message_is_complete_with_its_last_packet(opcode: Opcode) -> None:
    """SEND Last and SEND Only end a message, First and Middle do not."""
    one = Receiver()
    assert not one.on_packet(0, Opcode.SEND_FIRST)
    assert not one.on_packet(1, MIDDLE)
    assert one.on_packet(2, opcode)
    assert one.completed == 1


def test_a_gap_is_answered_by_a_nak_for_the_missing_packet() -> None:
    """What follows the gap is thrown away, last packets too."""
    one = receiver(0, 0, 2)
    assert not one.on_packet(3, LAST)
    assert one.pop_answer() == (True, 1)
    assert (one.expected, one.discarded, one.completed) == (1, 2, 0)


def test_one_gap_gets_one_nak() -> None:
    """More packets after the gap get no answer until the missing one is there (9.7.5.2.8)."""
    one = receiver(0, 1)
    assert one.pop_answer() == (True, 0)
    for psn in (2, 3, 1, 2):
        one.on_packet(psn, MIDDLE)
        assert one.pop_answer() is None


def test_the_next_gap_gets_its_own_nak() -> None:
    """After the missing packet has come, another gap is another NAK."""
    one = receiver(0, 1)
    one.pop_answer()
    one.on_packet(0, MIDDLE)
    assert one.pop_answer() == (False, 0)
    one.on_packet(2, MIDDLE)
    assert one.pop_answer() == (True, 1)


def test_a_nak_names_what_is_missing_when_it_is_sent() -> None:
    """Packets that filled the gap in the same batch are acknowledged by it, and it is the one."""
    one = receiver(0, 1, 0)
    assert one.pop_answer() == (True, 1)
    one.on_packet(2, MIDDLE)
    assert one.pop_answer() is None


def test_duplicates_are_acknowledged_again() -> None:
    """The sender may not have heard the first acknowledgement."""
    one = receiver(0, 0, 1)
    one.pop_answer()
    assert not one.on_packet(0, LAST)
    assert one.pop_answer() == (False, 1)
    assert (one.duplicates, one.completed) == (1, 0)


def test_sequence_numbers_wrap() -> None:
    """After 2**24 - 1 comes 0, and what is old is told from what is new."""
    one = receiver(WRAP - 1, WRAP - 1, 0, 1)
    assert one.expected == WRAP + 2
    one.on_packet(WRAP - 1, MIDDLE)
    assert one.duplicates == 1
    one.on_packet(3, MIDDLE)
    assert one.discarded == 1
    assert one.pop_answer() == (True, WRAP + 2)


def test_a_packet_of_which_only_the_headers_came_is_asked_for_at_once() -> None:
    """When it is the next one; nothing has to follow it, so a last packet needs no timeout."""
    one = receiver(0, 0, 1)
    one.on_trimmed(2)
    assert one.pop_answer() == (True, 2)
    assert one.pop_answer() is None
    assert (one.expected, one.discarded) == (2, 0)


def test_headers_that_overtook_whole_packets_wait_for_them() -> None:
    """What is before them may wait in the queue that had no room; then they are asked for."""
    one = receiver(WRAP - 1)
    one.on_trimmed(1)
    assert one.pop_answer() is None
    one.on_packet(WRAP - 1, MIDDLE)
    assert one.pop_answer() == (False, WRAP - 1)
    one.on_packet(0, MIDDLE)
    assert one.pop_answer() == (True, WRAP + 1)


def test_what_follows_a_packet_that_was_asked_for_is_sent_again_anyway() -> None:
    """Its headers, seen before or after the NAK, are no reason for another one."""
    one = receiver(5)
    for psn in (5, 6, 7):
        one.on_trimmed(psn)
    assert one.pop_answer() == (True, 5)
    one.on_trimmed(8)
    for psn in (5, 6, 7, 8):
        one.on_packet(psn, MIDDLE)
        assert one.pop_answer() == (False, psn)


def test_a_packet_is_asked_for_once_however_its_loss_is_seen() -> None:
    """By its headers, by a gap, or both, and again: one NAK, as after any loss (9.7.5.2.8)."""
    one, other = receiver(5, 6), receiver(5)
    other.on_trimmed(5)
    for each in (one, other):
        assert each.pop_answer() == (True, 5)
        each.on_trimmed(5)
        assert each.pop_answer() is None
        each.on_packet(7, MIDDLE)
        assert each.pop_answer() is None
        each.on_packet(5, MIDDLE)
        assert each.pop_answer() == (False, 5)


def test_headers_of_what_has_been_received_do_not_matter() -> None:
    """A packet that was sent twice and cut once."""
    one = receiver(0, 0, 1, 2)
    one.pop_answer()
    one.on_trimmed(1)
    assert one.pop_answer() is None


def test_numbers_that_are_passed_by_are_forgotten() -> None:
    """Cut once, then received whole within a run: there is nothing to ask for."""
    one = receiver(0)
    one.on_trimmed(3)
    one.on_run(0, 5, ends_message=False)
    assert one.pop_answer() == (False, 4)
    assert one._cut == set()
