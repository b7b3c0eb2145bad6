"""Packets that the kernel hands over in the wrong order, put back in the order of the links."""

from __future__ import annotations

import pytest

from traffic.nic.lane import Lane
from traffic.nic.ordering import Packet, Reorderer
from traffic.wire import Opcode

WINDOW_NS = 100
WRAP = 1 << 24


def packet(psn: int) -> Packet:
    """A middle packet."""
    return psn, Opcode.SEND_MIDDLE, False


class Path:
    """Packets that arrive at once and are due one after the other, and a receiver's expectation."""

    def __init__(self, expected: int, **due_ns: int) -> None:
        self.lane, self.expected = Lane(lambda length: 0), expected
        self.order = Reorderer(self.lane, WINDOW_NS)
        for name, at in due_ns.items():
            self.arrives(int(name[1:]), at)

    def arrives(self, psn: int, due_ns: int) -> None:
        """A packet is here and will be due at this time."""
        self.lane.add(psn, due_ns, 64, Opcode.SEND_FIRST, 0)

    def delivered(self) -> list[int]:
        """All of them in the order in which they are let through."""
        through: list[int] = []
        while self.lane.runs:
            psn, at = self.lane.runs[0].first, self.lane.next_ns
            asked = bool(self.order.held) or self.order.waits_for(self.expected, psn)
            self.lane.take_off(1)
            ready = self.order.due(packet(psn), at, self.expected)
            assert asked or ready == [packet(psn)]
            for psn, _, _ in ready:
                through.append(psn)
                if psn == self.expected:
                    self.expected = (psn + 1) % WRAP
        return through


def test_packets_in_order_pass_at_once() -> None:
    """Nothing is held that need not be."""
    path = Path(4, p4=0, p5=1, p6=2)
    assert path.delivered() == [4, 5, 6]
    assert path.order.overtaken == 0


def test_a_packet_that_was_overtaken_goes_first() -> None:
    """Its successors wait until it is due, moments later."""
    path = Path(4, p5=0, p6=10, p4=20, p7=30)
    assert path.delivered() == [4, 5, 6, 7]
    assert path.order.overtaken == 1


def test_two_overtaken_packets_are_waited_for_one_after_the_other() -> None:
    """The wait goes on while the next one is on its way as well."""
    path = Path(4, p7=0, p5=5, p4=10, p6=15)
    assert path.delivered() == [4, 5, 6, 7]


def test_a_packet_that_is_not_there_is_not_waited_for() -> None:
    """A loss is seen at once: the successor passes and makes the gap."""
    assert Path(4, p5=0, p6=1).delivered() == [5, 6]


def test_a_packet_that_is_due_much_later_was_sent_again() -> None:
    """It was lost, not overtaken; the receiver must ask for it."""
    assert Path(4, p5=0, p4=WINDOW_NS + 1).delivered() == [5, 4]


def test_a_loss_behind_an_overtaken_packet_holds_nothing_back() -> None:
    """Once the overtaken one is through, what follows the lost one goes as well."""
    path = Path(4, p5=0, p7=5, p4=10)
    assert path.delivered() == [4, 5, 7]


@pytest.mark.parametrize("expected", [WRAP - 1, WRAP - 2])
def test_order_goes_on_across_the_wrap_of_sequence_numbers(expected: int) -> None:
    """After 2**24 - 1 comes 0."""
    later = {f"p{(expected + n) % WRAP}": at for n, at in ((1, 0), (2, 5), (0, 10), (3, 15))}
    assert Path(expected, **later).delivered() == [(expected + n) % WRAP for n in range(4)]


def test_a_loss_behind_the_wrap_keeps_the_rest_in_order() -> None:
    """What is let go together is sorted by its place in the stream, not by its 24 bits."""
    expected = WRAP - 2
    later = {f"p{(expected + n) % WRAP}": at for n, at in ((3, 0), (1, 1), (0, 9))}
    assert Path(expected, **later).delivered() == [(expected + n) % WRAP for n in (0, 1, 3)]


def test_duplicates_pass_at_once() -> None:
    """A packet that was received before waits for nothing."""
    path = Path(4, p2=0, p4=1)
    assert path.delivered() == [2, 4]
    assert path.order.overtaken == 0


def test_of_two_copies_the_first_one_counts() -> None:
    """A packet is soon there although it was sent again and will come once more, later."""
    path = Path(4, p5=0, p4=10)
    path.arrives(4, 10 * WINDOW_NS)
    assert path.delivered() == [4, 5, 4]
