"""Ultra-Ethernet-like transport on the NIC engine: incasts, sprayed paths, losses, cut packets."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from tests.fakes.medium import FakeQueue, Marking, drop_numbers, drop_randomly
from tests.fakes.nic_rig import (
    FRAME,
    PACKET_NS,
    PARAMETERS,
    PATH,
    PAYLOAD,
    RATE_BPS,
    Rig,
    flow,
    unloaded_ns,
)
from traffic.entropies import offsets
from traffic.nic.engine import pool_of
from traffic.uet_params import RANDOM, UEC

ROUND_TRIP_NS = 2 * PATH.hold_ns(FRAME)
UET = replace(
    PARAMETERS, transport="uet", window_packets=None, round_trip_ns=ROUND_TRIP_NS, rto_ns=300_000
)
MESSAGE = 488
"""Packets of 2 MB."""


def incast(senders: int, control: str = "nscc", packets: int = MESSAGE, **rig: Any) -> Rig:
    """All to one host, over a queue that marks from 8 packets on and cuts what exceeds 50."""
    parameters = replace(UET, control=control, trims=True)
    tasks = [flow(n, packets * PAYLOAD, src=f"h{n + 2}", dst="h1") for n in range(senders)]
    one = Rig(tasks, parameters=parameters, marking=Marking(8 * FRAME, 32 * FRAME),
              buffer_bytes=50 * FRAME, trim_bytes=64, **rig)  # fmt: skip
    assert one.run()
    assert one.settle()
    return one


def spread(rig: Rig) -> tuple[float, float]:
    """(last completion over the ideal time, last over first)."""
    done = [row.done_ns for row in rig.seen.flows]
    packets = sum(row.message.end - row.message.first for row in rig.seen.flows)
    return max(done) / (packets * PACKET_NS), max(done) / min(done)


def test_a_lone_flow_has_the_line_to_itself() -> None:
    """From the first packet on: the first window is the largest."""
    rig = Rig([flow(0, 1_000 * PAYLOAD)], parameters=UET)
    assert rig.run()
    assert rig.seen.flows[0].span_ns == pytest.approx(unloaded_ns(1_000 * PAYLOAD), rel=0.01)
    assert rig.counters.retransmitted == rig.counters.timeouts == 0


@pytest.mark.parametrize(
    ("control", "tail", "most_spread"),
    [("nscc", 2_479 / 2_400, 1.95), ("rccc", 2_464 / 2_400, 1.2), ("nscc+rccc", 1.03, 1.2)],
)
def test_a_trimmed_incast_of_fifteen(control: str, tail: float, most_spread: float) -> None:
    """2 MB each: the last flow within 5 % of the published ratio to the ideal; no timeout."""
    rig = incast(15, control)
    last, ratio = spread(rig)
    assert last == pytest.approx(tail, rel=0.05)
    assert ratio <= most_spread
    assert rig.counters.timeouts == 0
    assert rig.switch[1].dropped == 0
    assert rig.counters.trimmed == rig.counters.retransmitted == rig.switch[1].trimmed > 0
    assert sum(one.receiver.duplicates for one in rig.plan.connections) == 0


def test_without_trimming_losses_are_repaired_as_well() -> None:
    """By the packets that come later; only what is lost is sent again."""
    tasks = [flow(n, MESSAGE * PAYLOAD, src=f"h{n + 2}", dst="h1") for n in range(15)]
    rig = Rig(tasks, parameters=UET, marking=Marking(8 * FRAME, 32 * FRAME),
              buffer_bytes=50 * FRAME)  # fmt: skip
    assert rig.run()
    assert rig.settle()
    assert rig.counters.retransmitted == rig.switch[1].dropped > 0
    assert spread(rig)[0] < 1.2


def test_marks_keep_the_queue_short() -> None:
    """Without them the windows stay where they began."""
    tasks = [flow(n, 1_000 * PAYLOAD, src=f"h{n + 2}", dst="h1") for n in range(4)]
    peaks = []
    for marking in (None, Marking(8 * FRAME, 32 * FRAME)):
        rig = Rig(tasks, parameters=UET, marking=marking)
        lengths: list[int] = []
        rig.seen.tick = lambda _now, rig=rig, lengths=lengths: lengths.append(  # type: ignore[method-assign,misc]
            rig.switch[1].bytes
        )
        assert rig.run()
        steady = lengths[len(lengths) // 2 : -len(lengths) // 8]
        peaks.append(max(steady) / FRAME)
    assert peaks[1] < 0.5 * peaks[0]


def paths(*delays_ns: int) -> list[FakeQueue]:
    """Queues of the line's rate between NICs and switch."""
    return [FakeQueue(RATE_BPS, delay_ns=delay_ns) for delay_ns in delays_ns]


def test_packets_are_spread_over_all_paths_evenly() -> None:
    """In turn over the pool's values."""
    rig = Rig([flow(0, 1_024 * PAYLOAD)], parameters=UET, paths=paths(0, 0, 0, 0))
    assert rig.run()
    data = [frame for frame in rig.medium.sent if frame.is_data]
    assert set(Counter(frame.sport for frame in data).values()) == {16}
    counts = Counter(frame.sport % 4 for frame in data)
    assert set(counts.values()) == {256}


def test_paths_of_different_lengths_reorder_and_that_is_all() -> None:
    """Nothing is sent again, nothing is asked for, the message is as fast as its slowest packet."""
    rig = Rig([flow(0, 600 * PAYLOAD)], parameters=UET, paths=paths(0, 1_500, 3_000, 500))
    assert rig.run()
    assert rig.counters.retransmitted == rig.counters.naks == 0
    span_ns = rig.seen.flows[0].span_ns
    assert span_ns == pytest.approx(unloaded_ns(600 * PAYLOAD) + 3_000, rel=0.05)


def test_a_path_that_loses_packets_is_avoided() -> None:
    """Its entropies are passed over where switches cut packets; without that nobody tells."""
    tasks = [flow(0, 2_000 * PAYLOAD)]
    slow = [*paths(0, 0, 0), FakeQueue(RATE_BPS // 20, 4 * FRAME, trim_bytes=64)]
    rig = Rig(tasks, parameters=replace(UET, trims=True), paths=slow)
    assert rig.run()
    counts = Counter(frame.sport % 4 for frame in rig.medium.sent if frame.is_data)
    assert counts[3] < 0.5 * counts[0]
    copies = rig.plan.connections[0].receiver.duplicates
    assert rig.counters.retransmitted == slow[3].trimmed + copies
    assert slow[3].trimmed > 0


def test_random_spraying_draws_for_each_packet() -> None:
    """Not every value as often as any other."""
    chosen = replace(UET, uet=replace(UEC, spray=RANDOM))
    rig = Rig([flow(0, 1_024 * PAYLOAD)], parameters=chosen)
    assert rig.run()
    counts = Counter(frame.sport for frame in rig.medium.sent if frame.is_data)
    assert len(counts) == 64
    assert len(set(counts.values())) > 5


def test_the_pool_is_that_of_parameters_and_seed() -> None:
    """Equal for all connections; each has a port of its own that it changes."""
    assert pool_of(replace(UET, seed=4)) == offsets(64, "4/entropies")
    assert pool_of(replace(UET, seed=4)) != pool_of(replace(UET, seed=5))
    assert len(pool_of(replace(UET, uet=replace(UEC, entropies=8)))) == 8


@pytest.mark.parametrize("window", [16, 32, 64])
def test_a_fixed_window_over_unequal_paths_repeats_nothing(window: int) -> None:
    """However long the window is beside the bandwidth-delay product: it says what is usual."""
    chosen = replace(UET, control="none", window_packets=window, round_trip_ns=2_000)
    delays = [n * window * PACKET_NS * 0.4 for n in range(3)]
    rig = Rig([flow(0, 600 * PAYLOAD)], parameters=chosen, paths=paths(*map(round, delays)))
    assert rig.run()
    assert rig.counters.retransmitted == 0


@pytest.mark.parametrize("number", [1, 300, 600])
def test_one_lost_packet_is_sent_again_alone(number: int) -> None:
    """At the end of a message only the timeout tells."""
    rig = Rig([flow(0, 600 * PAYLOAD)], parameters=UET, lose=drop_numbers({number}))
    assert rig.run()
    assert rig.counters.retransmitted == 1
    assert rig.counters.timeouts == (number == 600)
    psns = Counter(frame.psn for frame in rig.medium.sent if frame.is_data)
    assert {psn for psn, count in psns.items() if count > 1} == {number - 1}


@pytest.mark.parametrize("loss", [0.001, 0.01])
def test_random_loss_costs_hardly_more_than_what_is_lost(loss: float) -> None:
    """Selective repeat with a fixed window: goodput of 1 - p, less the wait for the last losses."""
    chosen = replace(UET, control="none", window_packets=64, rto_ns=60_000)
    rig = Rig([flow(0, 6_000 * PAYLOAD)], parameters=chosen, lose=drop_randomly(loss, 3))
    assert rig.run()
    data = [frame for frame in rig.medium.lost if frame.is_data]
    assert rig.counters.retransmitted == pytest.approx(len(data), rel=0.1, abs=2)
    assert rig.seen.flows[0].goodput_bps > 0.95 * (1 - loss) * RATE_BPS * PAYLOAD / 4_178


def test_answers_are_selective_acknowledgements() -> None:
    """Of 82 bytes, with the right ICRC as all frames have; no CNP."""
    rig = incast(3, packets=60, check_icrc=True)
    answers = [frame for frame in rig.medium.sent if not frame.is_data]
    assert {(frame.opcode, frame.length) for frame in answers} == {(0x11, 82)}
    assert all(frame.icrc_ok for frame in rig.medium.sent)
    assert rig.counters.cnps == 0


def test_credits_let_one_line_s_worth_of_packets_come() -> None:
    """After the first windows the queue stays as short as one turn of all senders."""
    rig = incast(8, "rccc", 1_000)
    late = [frame for frame in rig.medium.sent if frame.is_data][4_000:]
    assert all(frame.aeth for frame in late[: len(late) // 2]), "each says how many more there are"
    assert spread(rig)[0] == pytest.approx(1 / UEC.credit_share, rel=0.02)
