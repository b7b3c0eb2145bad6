"""The sending half of a connection: what may be sent, what is sent again, when it gives up."""

from __future__ import annotations

import pytest

from traffic.dcqcn import Dcqcn
from traffic.dcqcn_params import PAPER
from traffic.nic.sender import Burst, Sender, unwrap

PAYLOAD = 1000
RTO_NS = 5_000
WRAP = 1 << 24
GBPS = 1_000_000_000


def sender(window: int | None = 8, control: Dcqcn | None = None) -> Sender:
    """A sender of 1000-byte packets."""
    return Sender(PAYLOAD, window, RTO_NS, control)


def psns(burst: Burst) -> list[int]:
    """Sequence numbers of a burst."""
    return list(range(burst.first, burst.first + burst.count))


def take_all(one: Sender, now_ns: int = 0) -> list[int]:
    """Takes as long as anything is allowed; the sequence numbers in order."""
    taken: list[int] = []
    while (count := one.allowed()) > 0:
        taken += psns(one.take(count, now_ns))
    return taken


def in_flight(packets: int, window: int | None = None) -> Sender:
    """A sender with one message of so many packets, all sent at time 0."""
    one = sender(window)
    one.enqueue(1, packets * PAYLOAD)
    take_all(one)
    return one


@pytest.mark.parametrize(
    ("size", "packets", "tail"), [(1, 1, 1), (999, 1, 999), (1000, 1, 1000), (1001, 2, 1)]
)
def test_a_message_is_cut_into_full_packets_and_a_rest(size: int, packets: int, tail: int) -> None:
    """All packets but the last carry a full payload, and the last is never empty."""
    message = sender().enqueue(7, size)
    assert (message.first, message.end, message.tail_bytes) == (0, packets, tail)
    assert message.flow_id == 7


def test_messages_follow_each_other_without_a_gap() -> None:
    """The second message begins where the first one ends."""
    one = sender()
    assert one.enqueue(1, 2500).end == one.enqueue(2, 10).first == 3
    assert one.end == 4


def test_a_burst_never_crosses_a_message() -> None:
    """What is allowed is counted within the message at hand, whose end the burst knows."""
    one = sender(window=None)
    first, second = one.enqueue(1, 3000), one.enqueue(2, 2000)
    assert one.allowed() == 3
    burst = one.take(2, 0)
    assert (burst.message, psns(burst), burst.ends_message) == (first, [0, 1], False)
    burst = one.take(1, 0)
    assert (burst.message, burst.ends_message) == (first, True)
    assert (one.allowed(), one.take(2, 0).message) == (2, second)
    assert one.allowed() == 0


def test_the_window_bounds_what_is_in_flight() -> None:
    """No more than the window is unacknowledged; an acknowledgement opens it by as much."""
    one = sender(window=4)
    one.enqueue(1, 10_000)
    assert take_all(one) == [0, 1, 2, 3]
    assert (one.allowed(), one.in_flight) == (0, 4)
    one.on_ack(1, 100)
    assert (one.allowed(), one.in_flight) == (2, 2)
    assert take_all(one) == [4, 5]


def test_without_a_window_everything_may_leave() -> None:
    """`window_packets` None sets no limit."""
    one = sender(window=None)
    one.enqueue(1, 100 * PAYLOAD)
    assert len(take_all(one)) == 100


def test_the_first_packet_s_time_is_kept() -> None:
    """`first_tx_ns` is when a message was first handed over, whatever is sent again later."""
    one = sender(window=1)
    message = one.enqueue(1, 2000)
    assert message.first_tx_ns == -1
    one.take(1, 300)
    one.on_nak(0, 400)
    one.take(1, 500)
    assert message.first_tx_ns == 300


def test_a_nak_sends_everything_again_from_the_packet_it_names() -> None:
    """What is before it counts as acknowledged, what is after it is sent again (go-back-N)."""
    one = in_flight(8)
    one.on_nak(3, 100)
    assert (one.oldest, one.next, one.in_flight) == (3, 3, 0)
    assert take_all(one, 110) == [3, 4, 5, 6, 7]


def test_going_back_crosses_messages() -> None:
    """Messages that are sent but not acknowledged come again, each with its own bursts."""
    one = sender(window=None)
    messages = [one.enqueue(number, 2000) for number in range(3)]
    take_all(one)
    one.on_nak(1, 100)
    assert [burst.message for burst in (one.take(1, 110), one.take(2, 110), one.take(2, 110))] == (
        messages
    )


def test_packets_sent_again_are_counted_by_message_and_burst() -> None:
    """Only those that had left before count, not the new ones in the same burst."""
    one = sender(window=4)
    message, other = one.enqueue(1, 6000), one.enqueue(2, 1000)
    take_all(one)
    one.on_nak(2, 100)
    burst = one.take(4, 110)
    assert (psns(burst), burst.again, message.retransmitted) == ([2, 3, 4, 5], 2, 2)
    one.on_ack(5, 200)
    assert (one.take(1, 210).again, other.retransmitted) == (0, 0)


def test_an_acknowledgement_that_comes_after_going_back_skips_what_it_covers() -> None:
    """A late ACK saves sending again what has arrived after all."""
    one = in_flight(8)
    assert one.check_timeout(RTO_NS)
    one.on_ack(5, RTO_NS + 10)
    assert take_all(one, RTO_NS + 20) == [6, 7]


def test_a_late_acknowledgement_may_cover_whole_messages() -> None:
    """Messages that it covers are not sent again at all."""
    one = sender(window=None)
    one.enqueue(1, 2000)
    last = one.enqueue(2, 2000)
    take_all(one)
    one.check_timeout(RTO_NS)
    one.on_ack(2, RTO_NS)
    assert one.take(one.allowed(), RTO_NS) == Burst(last, 3, 1, again=1)
    one.on_ack(3, RTO_NS)
    assert not one.messages


@pytest.mark.parametrize("psn", [0, 2, 4, 7, WRAP - 1])
def test_acknowledgements_that_say_nothing_new_are_ignored(psn: int) -> None:
    """Neither an old one nor one for a packet that was never sent moves anything."""
    one = sender(window=4)
    one.enqueue(1, 10_000)
    take_all(one)
    one.on_ack(2, 100)
    one.on_ack(psn, 200)
    assert (one.oldest, one.next, one.deadline_ns) == (3, 4, 100 + RTO_NS)


@pytest.mark.parametrize("psn", [1, 8, 100])
def test_naks_for_what_cannot_be_missing_are_ignored(psn: int) -> None:
    """A NAK for an acknowledged packet is old, one for an unsent packet is nonsense."""
    one = in_flight(8)
    one.on_ack(3, 100)
    one.on_nak(psn, 200)
    assert (one.oldest, one.next, one.deadline_ns) == (4, 8, 100 + RTO_NS)


def test_nothing_in_flight_means_no_timer() -> None:
    """The timer runs exactly while something is unacknowledged."""
    one = sender()
    assert one.deadline_ns is None
    one.enqueue(1, 2000)
    assert one.deadline_ns is None
    one.take(2, 700)
    assert one.deadline_ns == 700 + RTO_NS
    one.on_ack(1, 900)
    assert one.deadline_ns is None
    assert not one.check_timeout(10 * RTO_NS)


def test_the_timer_runs_from_the_last_progress() -> None:
    """Each new acknowledgement starts it again; more packets do not."""
    one = sender(window=None)
    one.enqueue(1, 3000)
    one.take(1, 0)
    one.take(1, 1_000)
    assert one.deadline_ns == RTO_NS
    one.on_ack(0, 2_000)
    assert one.deadline_ns == 2_000 + RTO_NS
    assert not one.check_timeout(2_000 + RTO_NS - 1)
    assert one.check_timeout(2_000 + RTO_NS)


def test_a_timeout_goes_back_and_waits_for_the_first_packet_sent_again() -> None:
    """No second timeout while a rate control holds the packets back: nothing is in flight then."""
    one = in_flight(4)
    assert one.check_timeout(RTO_NS)
    assert (one.in_flight, one.deadline_ns) == (0, None)
    assert not one.check_timeout(10 * RTO_NS)
    one.take(1, 10 * RTO_NS)
    assert one.deadline_ns == 11 * RTO_NS
    assert one.check_timeout(11 * RTO_NS)


def test_a_nak_starts_the_timer_anew() -> None:
    """What is sent again has a whole timeout to be acknowledged, not the rest of the old one."""
    one = in_flight(4)
    one.on_nak(0, RTO_NS - 1)
    assert not one.check_timeout(RTO_NS)
    one.take(1, RTO_NS + 100)
    assert one.deadline_ns == 2 * RTO_NS + 100


def long_gone(sent: int) -> Sender:
    """A sender that has sent and seen acknowledged so many packets of an endless message."""
    one = sender(window=None)
    one.enqueue(1, 2 * WRAP * PAYLOAD)
    one.take(sent, 0)
    for psn in range(WRAP // 4, sent, WRAP // 4):
        one.on_ack(psn % WRAP, 0)
    one.on_ack((sent - 1) % WRAP, 0)
    assert one.oldest == sent
    return one


def test_acknowledgements_are_understood_across_the_wrap_of_sequence_numbers() -> None:
    """24 bits wrap after 16,777,216 packets; the sender goes on counting."""
    one = long_gone(WRAP - 2)
    one.take(5, 10)
    one.on_ack(WRAP - 1, 20)
    assert one.oldest == WRAP
    one.on_ack(1, 30)
    assert one.oldest == WRAP + 2
    one.on_nak(2, 40)
    assert psns(one.take(3, 50)) == [WRAP + 2, WRAP + 3, WRAP + 4]


def test_an_acknowledgement_from_before_the_wrap_is_old_after_it() -> None:
    """What was acknowledged long ago stays so."""
    one = long_gone(WRAP + 2)
    one.take(4, 10)
    one.on_ack(WRAP - 1, 20)
    assert one.oldest == WRAP + 2


@pytest.mark.parametrize(
    ("psn24", "near", "full"),
    [
        (5, 3, 5),
        (2, WRAP - 1, WRAP + 2),
        (WRAP - 1, WRAP + 1, WRAP - 1),
        (WRAP - 1, 0, -1),
        (0, 7 * WRAP - 3, 7 * WRAP),
    ],
)
def test_a_sequence_number_is_the_one_nearest_to_what_is_expected(
    psn24: int, near: int, full: int
) -> None:
    """24 bits name the nearest of all numbers that end in them."""
    assert unwrap(psn24, near) == full


def test_at_line_rate_nothing_is_spaced() -> None:
    """Without a rate control packets are due at once, whatever was sent."""
    one = sender()
    one.on_sent(0, 1 << 20)
    assert one.rate_bps(0) is None
    assert one.due_ns(0) <= 0


def test_a_rate_control_spaces_packets_by_their_line_time() -> None:
    """What follows 1250 bytes at 10 Gbit/s is due 1 us after they began."""
    one = sender(control=Dcqcn(PAPER, 10 * GBPS))
    one.on_sent(500, 1250)
    assert one.due_ns(500) == 1500
    one.on_sent(500, 1250)
    assert one.due_ns(500) == 2500
    one.on_sent(9_000, 1250)
    assert one.due_ns(9_000) == 10_000


def test_a_wait_follows_the_rate() -> None:
    """A cut lengthens the wait at hand, and recovery shortens it: 1250 bytes at 5, then more."""
    one = sender(control=Dcqcn(PAPER, 10 * GBPS))
    one.on_sent(0, 1250)
    one.on_cnp(100)
    assert one.rate_bps(100) == 5 * GBPS
    assert one.due_ns(100) == 2_000
    recovered = one.rate_bps(100 + PAPER.increase_interval_ns)
    assert recovered is not None
    assert recovered > 5 * GBPS
    later = one.due_ns(100 + PAPER.increase_interval_ns)
    assert later == pytest.approx(1250 * 8e9 / recovered)
