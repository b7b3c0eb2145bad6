"""Losses, refusals and wrong order: what the NIC engine recovers from, and how."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest

from tests.fakes.medium import Frame, Lose, Row, drop_numbers
from tests.fakes.nic_rig import PARAMETERS, PATH, PAYLOAD, Rig, flow, probe_stream, unloaded_ns
from traffic.nic.plan import PROBE_QP_BASE
from traffic.wire import SYNDROME_NAK_SEQUENCE, Opcode

RTO_NS = PARAMETERS.rto_ns
ROUND_TRIP_NS = 2 * PATH.hold_ns(4_200)
SIZE = 100 * PAYLOAD
WINDOWLESS = replace(PARAMETERS, window_packets=None)


def is_nak(frame: Frame) -> bool:
    """True for NAKs."""
    return frame.opcode == Opcode.ACKNOWLEDGE and frame.aeth >> 24 == SYNDROME_NAK_SEQUENCE


def is_ack(frame: Frame) -> bool:
    """True for ACKs."""
    return frame.opcode == Opcode.ACKNOWLEDGE and not is_nak(frame)


def packet(psn: int) -> Lose:
    """Chooses the data packet of this number, each time that it is sent."""
    return lambda frame: frame.is_data and frame.psn == psn


def span_ns(rig: Rig) -> int:
    """How long the one flow took; nothing may be left undone."""
    assert rig.run()
    (done,) = rig.seen.flows
    return done.span_ns


def test_a_loss_within_a_message_is_recovered_by_a_nak() -> None:
    """One NAK, no timeout; the cost is a round trip."""
    rig = Rig([flow(0, SIZE)], lose=drop_numbers({50}), parameters=WINDOWLESS)
    assert span_ns(rig) == pytest.approx(unloaded_ns(SIZE) + ROUND_TRIP_NS, abs=3_000)
    assert (rig.counters.naks, rig.counters.timeouts) == (1, 0)


def test_everything_from_the_lost_packet_on_is_sent_again() -> None:
    """Go-back-N: no less, and no more than what had left when the NAK came."""
    rig = Rig([flow(0, SIZE)], lose=drop_numbers({50}), parameters=WINDOWLESS)
    span_ns(rig)
    again = rig.counters.retransmitted
    assert rig.seen.flows[0].message.retransmitted == again
    psns = [frame.psn for frame in rig.medium.sent if frame.is_data]
    assert psns[: 49 + again] == list(range(49 + again))
    assert psns[49 + again :] == list(range(49, 100))


def test_two_losses_are_two_naks() -> None:
    """Each gap is asked for once."""
    rig = Rig([flow(0, SIZE)], lose=drop_numbers({20, 90}), parameters=WINDOWLESS)
    span_ns(rig)
    assert (rig.counters.naks, rig.counters.timeouts) == (2, 0)


def test_a_lost_last_packet_is_recovered_by_a_timeout() -> None:
    """Nothing follows it that could show the gap."""
    rig = Rig([flow(0, SIZE)], lose=drop_numbers({100}))
    assert span_ns(rig) == pytest.approx(unloaded_ns(SIZE) + RTO_NS + ROUND_TRIP_NS, abs=3_000)
    assert (rig.counters.naks, rig.counters.timeouts) == (0, 1)
    assert rig.counters.retransmitted == 1


def test_a_lost_nak_costs_a_timeout() -> None:
    """The gap is not asked for again, as in adapters that follow the standard."""
    data, naks = drop_numbers({50}), drop_numbers({1}, is_nak)
    rig = Rig([flow(0, SIZE)], lose=lambda frame: data(frame) or naks(frame))
    assert RTO_NS < span_ns(rig) < unloaded_ns(SIZE) + RTO_NS + 2 * ROUND_TRIP_NS
    assert (rig.counters.naks, rig.counters.timeouts) == (1, 1)


def test_a_packet_that_is_lost_again_costs_a_timeout() -> None:
    """Its second loss leaves the same gap, which has been asked for."""
    rig = Rig([flow(0, SIZE)], lose=drop_numbers({1, 2}, packet(49)))
    span_ns(rig)
    assert (rig.counters.naks, rig.counters.timeouts) == (1, 1)


def test_lost_acknowledgements_cost_nothing_while_others_follow() -> None:
    """They are cumulative: the next one makes up for those that were lost."""
    rig = Rig([flow(0, SIZE)], lose=drop_numbers(range(1, 11), is_ack))
    assert span_ns(rig) == pytest.approx(unloaded_ns(SIZE), abs=2)
    assert rig.counters.retransmitted == 0


def test_a_lost_last_acknowledgement_makes_a_duplicate_that_is_acknowledged() -> None:
    """The receiver has everything; the sender asks by sending the rest again."""
    first = flow(0, 1_000)
    later = flow(1, 1_000, start_ns=3 * RTO_NS)
    rig = Rig([first, later], lose=drop_numbers({1}, is_ack))
    assert rig.run()
    assert [done.span_ns for done in rig.seen.flows] == (
        [pytest.approx(unloaded_ns(1_000), abs=2)] * 2
    )
    assert (rig.counters.timeouts, rig.counters.retransmitted) == (1, 1)
    assert rig.plan.connections[0].receiver.duplicates == 1


def test_a_full_buffer_drops_and_everything_still_arrives() -> None:
    """Eight senders into a buffer of 20 packets; drops are recovered by NAKs and timeouts."""
    tasks = [flow(n, SIZE, src=f"h{n + 2}", dst="h1") for n in range(8)]
    rig = Rig(tasks, buffer_bytes=20 * 4_200)
    assert rig.run()
    assert rig.settle()
    assert set(rig.seen.by_id()) == set(range(8))
    queue = rig.switch[1]
    assert queue.dropped > 0
    assert queue.peak_bytes <= 20 * 4_200
    assert rig.counters.data_sent - rig.counters.retransmitted == 800
    assert rig.counters.data_sent == rig.counters.delivered + queue.dropped


def test_frames_that_the_kernel_refuses_are_counted_and_sent_again() -> None:
    """A full socket buffer ends a batch; what was refused is lost like on the way."""
    rig = Rig([flow(0, SIZE)], refuse=drop_numbers({1}, packet(50)))
    span_ns(rig)
    assert rig.counters.refused >= 1
    assert rig.counters.retransmitted >= rig.counters.refused


def swapped(seed: int, share: float = 0.3) -> Callable[[list[Row]], list[Row]]:
    """Swaps neighbouring rows that arrived together, as two processors do."""
    rng = Random(seed)

    def hand_over(rows: list[Row]) -> list[Row]:
        rows = list(rows)
        for n in range(len(rows) - 1):
            if rng.random() < share:
                rows[n], rows[n + 1] = rows[n + 1], rows[n]
        return rows

    return hand_over


@pytest.mark.parametrize("seed", range(3))
def test_packets_that_the_kernel_hands_over_in_the_wrong_order_are_no_losses(seed: int) -> None:
    """They are put back in order; nothing is asked for or sent again."""
    tasks = [flow(0, SIZE, "h1", "h3"), flow(1, SIZE, "h2", "h3")]
    rig = Rig(tasks, hand_over=swapped(seed))
    assert rig.run()
    assert rig.counters.naks == rig.counters.retransmitted == 0
    assert sum(one.order.overtaken for one in rig.plan.connections) > 0


def test_a_loss_is_seen_as_one_among_packets_in_the_wrong_order() -> None:
    """Putting in order does not hide a gap, and one loss is one NAK."""
    rig = Rig([flow(0, SIZE)], lose=drop_numbers({50}), hand_over=swapped(1))
    span_ns(rig)
    assert (rig.counters.naks, rig.counters.timeouts) == (1, 0)


def incast(trim_bytes: int | None, senders: int = 8, packets: int = 60) -> Rig:
    """All send to one host at line rate; its switch port has room for 20 packets."""
    flows = [flow(n, packets * PAYLOAD, f"h{n + 2}", "h1") for n in range(senders)]
    rig = Rig(flows, parameters=WINDOWLESS, buffer_bytes=20 * 4_200, trim_bytes=trim_bytes)
    assert rig.run()
    assert rig.settle()
    return rig


def test_a_trimmed_incast_needs_no_timeout() -> None:
    """Headers tell of every loss; without trimming, last packets are lost unseen."""
    dropping, trimming = incast(None, 2), incast(64, 2)
    assert dropping.switch[1].dropped > 0
    assert dropping.counters.timeouts > 0
    assert trimming.switch[1].dropped == 0
    assert trimming.counters.timeouts == 0
    assert trimming.clock.now_ns() < dropping.clock.now_ns()


def test_every_packet_of_a_trimmed_incast_is_accounted_for() -> None:
    """Sent is delivered whole plus come as headers; these count for nothing else."""
    rig = incast(64)
    counters = rig.counters
    assert counters.trimmed == rig.switch[1].trimmed > 0
    assert counters.data_sent == counters.delivered + counters.trimmed
    assert counters.strangers == 0
    assert all(done.message.retransmitted > 0 for done in rig.seen.flows)


def test_a_probe_of_which_only_the_headers_come_is_lost() -> None:
    """Its latency would be that of another packet."""
    burst = [flow(0, 40 * PAYLOAD, "h2", "h1"), flow(1, 40 * PAYLOAD, "h3", "h1")]
    stream = probe_stream(0, "h4", "h1", interval_ns=1_000, first_ns=0, total=20)
    rig = Rig(burst, [stream], parameters=WINDOWLESS, buffer_bytes=2 * 4_200, trim_bytes=64)
    assert rig.run()
    assert rig.settle()
    cut = sum(frame.trimmed and frame.dest_qp >= PROBE_QP_BASE for frame in rig.medium.sent)
    assert cut > 0
    assert len(stream.lost()) == cut
    assert len(rig.seen.probes) == 20 - cut


def test_headers_for_nobody_are_strangers() -> None:
    """Like whole frames; headers of control packets, which are never cut, are only counted."""
    rig = Rig([flow(0, SIZE)])
    one = rig.plan.connections[0]
    rig.medium.inject(0x7FFF, trimmed=True)
    rig.medium.inject(one.sender_qp, opcode=Opcode.ACKNOWLEDGE, trimmed=True)
    assert rig.run()
    assert (rig.counters.strangers, rig.counters.trimmed, rig.counters.naks) == (1, 1, 0)
