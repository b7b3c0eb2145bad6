"""The receiving end that takes packets in any order: what it has, and what it says about it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from traffic import sack
from traffic.nic.transports.uet_receiver import UetReceiver
from traffic.wire import PSN_MASK, SYNDROME_ACK, SYNDROME_NAK_TRIMMED

TICK_NS = 1_024
WRAP = PSN_MASK + 1


def receiver(start: int = 0) -> UetReceiver:
    """One that has received everything before a number."""
    one = UetReceiver(TICK_NS)
    one.expected = start
    return one


def took(one: UetReceiver, psn24: int, count: int) -> tuple[int, int]:
    """(number of the first of these packets, how many of them are new)."""
    first, new = one.on_packets(psn24, count)
    return first, new.bit_count()


def said(one: UetReceiver, now_ns: int = 0) -> list[tuple[bool, int, sack.Answer]]:
    """Its answers, unpacked."""
    return [(nak, psn, sack.unpack(number)) for nak, psn, number in one.answers(now_ns)]


def bits(answer: sack.Answer, psn: int, name: str = "received") -> set[int]:
    """Packets that a bitmap names."""
    bitmap = getattr(answer, name)
    return {psn + answer.first + n for n in range(64) if bitmap >> n & 1}


def test_packets_in_order_are_acknowledged_by_the_last_of_them() -> None:
    """Once per call; without news there is no answer."""
    one = receiver()
    assert said(one) == []
    assert took(one, 0, 3) == (0, 3)
    one.on_newest(2, 1_000)
    ((is_nak, psn, answer),) = said(one, 1_512)
    assert (is_nak, psn, answer.syndrome, answer.marked) == (False, 2, SYNDROME_ACK, 0)
    assert psn + answer.first + answer.newest == 2
    assert answer.kept == 256, "half a tick"
    assert said(one) == []


def test_before_anything_is_in_order_the_last_one_is_minus_one() -> None:
    """Modulo 2**24 on the wire."""
    one = receiver()
    assert took(one, 5, 1) == (5, 1)
    ((_, psn, answer),) = said(one)
    assert psn == -1
    assert bits(answer, psn) == {5}


def test_packets_beyond_a_gap_are_named_and_kept() -> None:
    """When the gap is filled, all of them are in order."""
    one = receiver()
    one.on_packets(0, 2)
    one.on_packets(3, 4)
    ((_, psn, answer),) = said(one)
    assert psn == 1
    assert bits(answer, psn) == {0, 1, 3, 4, 5, 6}
    assert took(one, 2, 1) == (2, 1)
    ((_, psn, _),) = said(one)
    assert psn == 6


def test_an_answer_repeats_what_was_said_before() -> None:
    """Its bitmaps end with the news, so a lost answer takes nothing with it."""
    one = receiver()
    for first in (5, 9, 40):
        one.on_packets(first, 2)
        ((_, psn, answer),) = said(one)
    assert bits(answer, psn) == {5, 6, 9, 10, 40, 41}


def test_a_packet_counts_once() -> None:
    """Copies of it are duplicates, beyond the gap or before it, and are answered."""
    one = receiver()
    one.on_packets(3, 4)
    assert took(one, 2, 4) == (2, 1)
    one.on_packets(0, 2)
    assert took(one, 0, 9) == (0, 2)
    assert one.duplicates == 3 + 7
    assert one.expected == 9
    said(one)
    assert took(one, 4, 2) == (4, 0)
    assert len(said(one)) == 1


def test_marked_packets_are_named_once() -> None:
    """Those in order, too, for which the bitmap begins before the acknowledged packet."""
    one = receiver(100)
    assert one.on_marks(101, 2) == 101
    one.on_packets(100, 5)
    ((_, psn, answer),) = said(one)
    assert psn == 104
    assert bits(answer, psn, "marked") == {101, 102}
    one.on_packets(105, 1)
    assert said(one)[0][2].marked == 0


def test_several_answers_where_one_bitmap_is_too_short() -> None:
    """Together they name all; the time is that of one packet."""
    one = receiver()
    for first in (5, 90, 300):
        one.on_packets(first, 3)
    one.on_marks(300, 1)
    one.on_newest(91, 0)
    answers = said(one)
    assert len(answers) == 3
    named = set[int]().union(*(bits(answer, psn) for _, psn, answer in answers))
    assert named == {5, 6, 7, 90, 91, 92, 300, 301, 302}
    assert [answer.newest == sack.NOBODY for _, _, answer in answers] == [True, False, True]
    assert bits(answers[-1][2], answers[-1][1]) == {300, 301, 302}
    assert sum(len(bits(answer, psn, "marked")) for _, psn, answer in answers) == 1


def test_what_came_cut_is_asked_for_at_once() -> None:
    """By a NAK that names it; what has arrived whole meanwhile is not asked for."""
    one = receiver(10)
    for psn24 in (9, 10, 13):
        one.on_trimmed(psn24)
    one.on_packets(12, 1)
    one.on_trimmed(12)
    (nak, ack) = said(one)
    assert (nak[0], nak[2].syndrome) == (True, SYNDROME_NAK_TRIMMED)
    assert bits(nak[2], nak[1], "marked") == {10, 13}
    assert bits(nak[2], nak[1]) >= {12}
    assert not ack[0]


def test_each_cut_packet_is_one_more_that_is_wanted() -> None:
    """It used up a credit."""
    one = receiver()
    one.on_wanted(20)
    one.on_trimmed(3)
    assert one.wanted == 21
    one.on_wanted(20)
    assert one.wanted == 21


def test_credits_are_told_without_being_asked() -> None:
    """A running total."""
    one = receiver()
    one.on_wanted(9)
    one.grant(4)
    assert [answer.credits for _, _, answer in said(one)] == [4]
    one.grant(4)
    assert [answer.credits for _, _, answer in said(one)] == [8]


def test_copies_of_something_long_gone_are_answered_plainly() -> None:
    """The bitmaps do not reach so far back."""
    one = receiver(100_000)
    one.on_packets(5, 1)
    one.on_marks(5, 1)
    one.on_newest(5, 0)
    ((_, psn, answer),) = said(one)
    assert (psn, answer.newest, answer.marked) == (99_999, sack.NOBODY, 0)


@given(
    st.integers(0, 100) | st.integers(WRAP - 50, WRAP + 50),
    st.lists(st.tuples(st.integers(-5, 150), st.integers(1, 9), st.booleans()), max_size=30),
)
def test_it_knows_what_a_set_would_know(start: int, steps: list[tuple[int, int, bool]]) -> None:
    """Over the wrap of the 24-bit numbers, too; answers name exactly what is there."""
    one, have = receiver(start), set(range(start - 10, start))
    for ahead, count, answers in steps:
        first = start + ahead
        new = set(range(first, first + count)) - have
        assert took(one, first & PSN_MASK, count) == (first, len(new))
        have |= new
        expected = next(psn for psn in range(start, start + 1_000) if psn not in have)
        assert one.expected == expected
        if answers:
            for _, psn, answer in said(one):
                assert psn == expected - 1
                named = bits(answer, psn)
                window = range(psn + answer.first, psn + answer.first + 64)
                if have != set(range(start - 10, expected)):  # else there is nothing to name
                    assert named == {n for n in window if n in have or n < start}
