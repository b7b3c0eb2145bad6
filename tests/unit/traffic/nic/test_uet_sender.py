"""The sending end that sprays and repeats selectively: what it sends, when, and how often."""

from __future__ import annotations

from dataclasses import replace

import pytest

from traffic import sack
from traffic.entropies import EntropyPool
from traffic.nic.sender import Burst
from traffic.nic.transports.uet_receiver import UetReceiver
from traffic.nic.transports.uet_sender import UetSender
from traffic.nic.transports.uet_settings import SPAN, UetSettings
from traffic.nscc import Nscc
from traffic.uet_params import ROUND_ROBIN, UEC

PAYLOAD, PACKET, GAP_NS, TICK_NS, RTO_NS = 4_000, 4_000, 320.0, 1_024, 100_000
ROUND_TRIP_NS = 12_000
SETTINGS = UetSettings(UEC, PAYLOAD, PACKET, RTO_NS, TICK_NS, 20, credits=False, first_credits=16)


class Both:
    """Both ends of a connection, and a test between them."""

    def __init__(self, packets: int = 100, window: bool = False, **settings: object) -> None:
        self.pool = EntropyPool(64, ROUND_ROBIN, "a")
        control = Nscc(UEC, PACKET, 100_000_000_000, ROUND_TRIP_NS, False) if window else None
        chosen = replace(SETTINGS, **settings)  # type: ignore[arg-type]
        self.sender = UetSender(chosen, control, self.pool, GAP_NS)
        self.receiver = UetReceiver(TICK_NS)
        self.message = self.sender.enqueue(7, packets * PAYLOAD)

    def send(self, now_ns: int = 0) -> list[Burst]:
        """All that may go."""
        bursts = []
        while (count := self.sender.allowed()) > 0:
            burst = self.sender.take(count, now_ns)
            burst.start_ns = float(now_ns)
            bursts.append(burst)
        return bursts

    def arrive(self, *psns: int, marked: bool = False, due_ns: int = 0) -> None:
        """Packets arrive."""
        for psn in psns:
            self.receiver.on_packets(psn, 1)
            self.receiver.on_newest(psn, due_ns)
            if marked:
                self.receiver.on_marks(psn, 1)

    def answer(self, now_ns: int = 0, lose: bool = False) -> None:
        """What the receiving end says arrives at the sending end."""
        for is_nak, psn, number in self.receiver.answers(now_ns):
            if not lose:
                on = self.sender.on_nak if is_nak else self.sender.on_ack
                on(psn & 0xFFFFFF, now_ns, number)


def numbers(bursts: list[Burst]) -> list[int]:
    """All packets of some bursts."""
    return [psn for burst in bursts for psn in range(burst.first, burst.first + burst.count)]


def test_each_packet_has_an_entropy_of_its_own() -> None:
    """In the order of the pool."""
    both = Both()
    (burst,) = both.send()
    assert numbers([burst]) == list(range(20))
    assert burst.entropies == EntropyPool(64, ROUND_ROBIN, "a").take(20)


def test_only_what_is_missing_is_sent_again() -> None:
    """Selective repeat, before anything new."""
    both = Both()
    both.send()
    both.arrive(0, 1, 3, 4, 6)
    both.receiver.on_trimmed(2)
    both.receiver.on_trimmed(5)
    both.answer()
    bursts = both.send()
    assert [(burst.first, burst.count, burst.again) for burst in bursts[:2]] == [
        (2, 1, 1),
        (5, 1, 1),
    ]
    assert numbers(bursts[2:]) == list(range(20, 25))
    assert both.message.retransmitted == 2


def test_a_packet_is_asked_for_anew_only_when_it_was_cut_again() -> None:
    """Each NAK stands for one loss."""
    both = Both()
    both.send()
    both.receiver.on_trimmed(0)
    both.answer()
    assert numbers(both.send()) == [0]
    both.arrive(1, 2)
    both.answer()
    assert 0 not in numbers(both.send())
    both.receiver.on_trimmed(0)
    both.answer()
    assert numbers(both.send())[0] == 0


def test_a_gap_is_no_loss_until_many_later_packets_have_arrived() -> None:
    """One and a half windows of them: paths may be of different lengths."""
    both = Both(1_000, window=True)
    assert both.sender.window is not None
    both.sender.window.window = both.sender.window.max_window = 20.0 * PACKET
    arrived = 0
    while not both.sender._lost:
        both.send()
        arrived += 1
        both.arrive(arrived, due_ns=9_000)
        both.sender.window.window = 20.0 * PACKET
        both.answer(15_000)
    assert arrived == 30
    assert both.sender._lost == 1


def test_what_is_not_acknowledged_is_sent_again_after_a_while() -> None:
    """Each packet by its own time; the next timeout comes twice as late."""
    both = Both(10, most_packets=5)
    both.send()
    both.arrive(0, 1)
    both.answer(5_000)
    both.send(50_000)
    assert both.sender.deadline_ns == RTO_NS
    assert not both.sender.check_timeout(RTO_NS - 1)
    assert both.sender.check_timeout(RTO_NS)
    assert numbers(both.send(RTO_NS))[:3] == [2, 3, 4], "not those sent later"
    assert both.sender.deadline_ns == 50_000 + 2 * RTO_NS
    for step in range(4):
        both.arrive(*range(both.sender.next))
        both.answer(RTO_NS + step)
        both.send(RTO_NS + step)
    assert both.sender.idle
    assert both.sender.deadline_ns is None


def test_a_lost_acknowledgement_costs_nothing() -> None:
    """The next one says the same and more."""
    both = Both()
    both.send()
    both.arrive(0, 1, 2)
    both.answer(lose=True)
    both.arrive(3)
    both.answer()
    assert both.sender.oldest == 4
    assert both.sender.flying == 16


def test_entropies_of_marked_and_cut_packets_are_passed_over() -> None:
    """Once for a mark, four times for a packet that was cut."""
    both = Both()
    (burst,) = both.send()
    both.arrive(0, 1)
    both.arrive(2, marked=True)
    both.receiver.on_trimmed(3)
    both.answer()
    skips = both.pool._skips
    assert (skips[burst.entropies[2]], skips[burst.entropies[3]]) == (1, 4)
    assert sum(skips) == 5


def test_the_round_trip_is_measured_without_the_time_that_a_packet_was_kept() -> None:
    """From when the packet was on the line, by its place in the burst."""
    both = Both(window=True)
    samples: list[float | None] = []

    class Noting(Nscc):
        def on_ack(self, now_ns: int, clean: int, marked: int, round_trip_ns: float | None,
                   in_flight: int) -> None:  # fmt: skip
            samples.append(round_trip_ns)

    both.sender.window = Noting(UEC, PACKET, 100_000_000_000, ROUND_TRIP_NS, False)
    both.send(1_000)
    both.arrive(0, 1, 2, due_ns=7_640)
    for is_nak, psn, number in both.receiver.answers(8_664):
        assert not is_nak
        both.sender.on_ack(psn, 15_304, number)
    assert samples == [15_304 - 1_000 - 2 * GAP_NS - (8_664 - 7_640)]


def test_a_packet_that_was_sent_twice_says_nothing_about_the_round_trip() -> None:
    """Nobody knows which of the two it was (Karn)."""
    both = Both(window=True)
    both.send()
    both.receiver.on_trimmed(0)
    both.answer()
    both.send(5_000)
    both.arrive(0, due_ns=9_000)
    ((_, psn, number),) = both.receiver.answers(9_000)
    assert both.sender._round_trip_ns(12_000, 0, sack.unpack(number)) is None
    assert psn == 0


def test_the_window_counts_what_is_in_flight() -> None:
    """Not what has arrived beyond a gap, nor what is lost."""
    both = Both(window=True)
    assert both.sender.window is not None
    both.sender.window.window = 10.0 * PACKET
    assert len(numbers(both.send())) == 10
    both.arrive(5, 6, 7, due_ns=9_000)
    both.answer(15_000)
    assert both.sender.flying == 7
    assert numbers(both.send())[0] == 10


def test_new_packets_stay_within_what_the_other_end_keeps() -> None:
    """However many of them have arrived beyond a gap."""
    both = Both(3 * SPAN, most_packets=None)
    assert numbers(both.send()) == list(range(SPAN))
    both.arrive(*range(1, 10))
    both.answer()
    assert both.send() == []
    both.arrive(0)
    both.answer()
    assert numbers(both.send()) == list(range(SPAN, SPAN + 10))


def test_bursts_do_not_go_beyond_their_message() -> None:
    """Neither new ones nor repeated ones; messages are done in any order."""
    both = Both(3)
    second = both.sender.enqueue(8, 5 * PAYLOAD + 1)
    bursts = both.send()
    assert [(burst.message.flow_id, burst.count) for burst in bursts] == [(7, 3), (8, 6)]
    assert second.tail_bytes == 1
    for psn in (2, 3, 4):
        both.receiver.on_trimmed(psn)
    both.answer()
    assert [(burst.first, burst.count) for burst in both.send()] == [(2, 1), (3, 2)]


class Credited(Both):
    """With credits."""

    def __init__(self, packets: int = 100) -> None:
        super().__init__(packets, credits=True, most_packets=None)


def test_the_first_packets_need_no_credit() -> None:
    """A window of them; they say how many more there are, up to as many again."""
    both = Credited()
    (burst,) = both.send()
    assert burst.count == 16
    assert burst.word == 16
    assert Credited(18).send()[0].word == 2
    assert Credited(3).send()[0].word == 0


def test_after_the_first_answer_only_credits_count() -> None:
    """As many packets as were granted, repeated ones included."""
    both = Credited()
    both.send()
    both.arrive(0)
    both.receiver.on_trimmed(1)
    both.receiver.on_wanted(16)
    both.receiver.grant(3)
    both.answer()
    assert numbers(both.send()) == [1, 16, 17]
    assert both.send() == []


def test_credits_that_are_not_used_are_not_gathered() -> None:
    """More than a window of them would be a burst."""
    both = Credited()
    both.send()
    both.receiver.grant(50)
    both.answer()
    assert len(numbers(both.send())) == 16


def test_whoever_waits_for_credits_in_vain_sends_one_packet() -> None:
    """It tells the other end again what is wanted."""
    both = Credited()
    both.send()
    both.arrive(*range(16))
    both.answer(1_000)
    assert both.send() == []
    assert both.sender.deadline_ns == 1_000 + RTO_NS
    assert not both.sender.check_timeout(RTO_NS)
    assert both.sender.check_timeout(1_000 + RTO_NS)
    (burst,) = both.send(1_000 + RTO_NS)
    assert (burst.count, burst.word) == (1, 16)


def test_a_timeout_sends_one_packet_without_a_credit() -> None:
    """What was lost without a trace used up the credits."""
    both = Credited()
    both.send()
    assert both.sender.check_timeout(RTO_NS)
    assert numbers(both.send()) == list(range(1))


def test_a_message_after_a_pause_begins_without_credits_again() -> None:
    """The other end does not know of it yet."""
    both = Credited(4)
    both.send()
    both.arrive(0, 1, 2, 3)
    both.answer()
    assert both.sender.idle
    both.sender.enqueue(9, 40 * PAYLOAD)
    assert len(numbers(both.send())) == 16


@pytest.mark.parametrize("size", [0, 1, PAYLOAD, PAYLOAD + 1])
def test_a_message_has_at_least_one_packet(size: int) -> None:
    """Its tail is what is left."""
    both = Both(1)
    message = both.sender.enqueue(9, size)
    assert message.end - message.first == max(1, -(-size // PAYLOAD))
