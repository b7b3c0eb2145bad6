"""Packets between their arrival at a receiving NIC and their delivery: when which are due."""

from __future__ import annotations

import pytest

from traffic.nic.lane import Lane
from traffic.wire import CE, Opcode

FULL, SHORT = 4_158, 64
HOLD_NS = {FULL: 1_000, SHORT: 300}
FIRST, MIDDLE, LAST, ONLY = (
    Opcode.SEND_FIRST, Opcode.SEND_MIDDLE, Opcode.SEND_LAST, Opcode.SEND_ONLY,
)  # fmt: skip
WRAP = 1 << 24


def lane() -> Lane:
    """An empty lane."""
    return Lane(HOLD_NS.__getitem__)


def shape(one: Lane) -> list[tuple[int, int]]:
    """(first number, packets) of each run."""
    return [(run.first, len(run.times) - run.at) for run in one.runs]


def due(one: Lane, limit_ns: int) -> int:
    """How many packets of the oldest run are due."""
    return one.runs[0].due(limit_ns) if one.runs else 0


def test_packets_that_follow_each_other_are_one_run() -> None:
    """Whether they came together or one by one; the last packet of a message is by itself."""
    one = lane()
    one.add(7, 0, FULL, FIRST, 2)
    one.add_run(8, [10, 20], FULL, MIDDLE, 2)
    one.add(10, 20, FULL, MIDDLE, 2)
    one.add(11, 30, SHORT, LAST, 2)
    one.add(12, 40, FULL, FIRST, 2)
    assert shape(one) == [(7, 4), (11, 1), (12, 1)]


@pytest.mark.parametrize(
    ("psn", "time_ns", "length", "opcode", "tos"),
    [(9, 10, FULL, MIDDLE, 2), (7, 10, FULL, MIDDLE, 2), (8, -1, FULL, MIDDLE, 2),
     (8, 10, SHORT, MIDDLE, 2), (8, 10, FULL, FIRST, 2), (8, 10, FULL, LAST, 2),
     (8, 10, FULL, MIDDLE, CE)],
)  # fmt: skip
def test_anything_else_begins_a_run(
    psn: int, time_ns: int, length: int, opcode: int, tos: int
) -> None:
    """A gap, a copy, an earlier time, another length or opcode, a mark."""
    one = lane()
    one.add(7, 0, FULL, FIRST, 2)
    one.add(psn, time_ns, length, opcode, tos)
    assert shape(one) == [(7, 1), (psn, 1)]
    assert [run.marked for run in one.runs] == [False, tos == CE]
    assert [run.ends_message for run in one.runs] == [False, opcode == LAST]


def test_packets_are_due_by_their_own_times() -> None:
    """Any number of them is taken off at once; what is not due yet stays."""
    one = lane()
    one.add_run(7, [0, 10, 20, 30], FULL, FIRST, 2)
    assert one.next_ns == 1_000
    assert [due(one, limit) for limit in (999, 1_000, 1_019, 1_020, 2_000)] == [0, 1, 2, 3, 4]
    one.take_off(2)
    assert one.next_ns == 1_020
    assert [due(one, limit) for limit in (1_019, 1_020, 2_000)] == [0, 1, 2]
    assert shape(one) == [(9, 2)]
    one.take_off(2)
    assert due(one, 2_000) == 0
    assert not one.runs


def test_a_short_frame_waits_for_the_long_one_before_it() -> None:
    """It is held for less, but a link keeps the order."""
    one = lane()
    one.add(7, 0, FULL, FIRST, 2)
    one.add(8, 5, SHORT, LAST, 2)
    one.add(9, 800, SHORT, ONLY, 2)
    assert [run.due_ns(0) for run in one.runs] == [1_000, 1_000, 1_100]
    one.take_off(1)
    assert (due(one, 999), due(one, 1_000)) == (0, 1)


def test_a_run_that_is_gone_is_not_continued() -> None:
    """The next packet begins a new one, and is not due before."""
    one = lane()
    one.add(7, 900, FULL, FIRST, 2)
    one.take_off(1)
    one.add(8, 500, FULL, MIDDLE, 2)
    assert shape(one) == [(8, 1)]
    assert one.next_ns == 1_900


def test_a_run_goes_on_while_it_is_taken_off() -> None:
    """New packets join at its end."""
    one = lane()
    one.add_run(7, [0, 10], FULL, FIRST, 2)
    one.take_off(1)
    one.add(9, 20, FULL, MIDDLE, 2)
    assert shape(one) == [(8, 2)]


def test_numbers_go_on_across_the_wrap() -> None:
    """After 2**24 - 1 comes 0, in the same run."""
    one = lane()
    one.add_run(WRAP - 2, [0, 10], FULL, FIRST, 2)
    one.add(0, 20, FULL, MIDDLE, 2)
    assert shape(one) == [(WRAP - 2, 3)]
    assert [one.find_ns(psn) for psn in (WRAP - 3, WRAP - 1, 0, 1)] == [None, 1_010, 1_020, None]


def test_what_waits_is_found_by_its_number() -> None:
    """Of two alike the first one counts; what was taken off is not found any more."""
    one = lane()
    one.add_run(7, [0, 10], FULL, FIRST, 2)
    one.add_run(7, [500, 510], FULL, FIRST, 2)
    assert [one.find_ns(psn) for psn in (6, 7, 8, 9)] == [None, 1_000, 1_010, None]
    one.take_off(1)
    assert one.find_ns(7) == 1_500


def test_a_long_message_does_not_grow_one_run() -> None:
    """Times of packets that are long gone are not kept."""
    one = lane()
    for psn in range(5_000):
        one.add(psn, psn, FULL, MIDDLE, 2)
        if psn >= 10:
            one.take_off(1)
    assert sum(count for _, count in shape(one)) == 10
    assert sum(len(run.times) for run in one.runs) < 1_100
