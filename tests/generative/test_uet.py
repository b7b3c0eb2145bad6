"""Sprayed delivery over networks that lose, cut, mark and reorder: everything arrives once."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fakes.medium import FakeQueue, Marking, drop_randomly
from tests.fakes.nic_rig import FRAME, PARAMETERS, PATH, RATE_BPS, Rig
from tests.generative.test_delivery import random_flows
from traffic.entropies import EntropyPool
from traffic.nic.transports.uet_receiver import UetReceiver
from traffic.nic.transports.uet_sender import UetSender
from traffic.nic.transports.uet_settings import UetSettings
from traffic.nscc import Nscc
from traffic.uet_params import RANDOM, UEC
from traffic.wire import PSN_MASK

SEEDS = range(12)
ROUND_TRIP_NS = 2 * PATH.hold_ns(FRAME)


def random_rig(seed: int) -> Rig:
    """Random flows over a random network with paths of different lengths."""
    rng = Random(seed)
    control = rng.choice(["nscc", "rccc", "nscc+rccc", "none"])
    parameters = replace(
        PARAMETERS,
        transport="uet",
        control=control,
        window_packets=rng.choice([4, 32]) if control == "none" else None,
        tick_ns=rng.choice([500, 1_000, 2_000]),
        rto_ns=rng.choice([60_000, 200_000]),
        round_trip_ns=ROUND_TRIP_NS,
        trims=rng.random() < 0.5,
        seed=seed,
    )
    delays = [rng.randint(0, 6_000) for _ in range(rng.choice([0, 2, 4]))]
    return Rig(
        random_flows(rng),
        parameters=parameters,
        buffer_bytes=rng.choice([None, 12 * 4_200]),
        trim_bytes=64 if parameters.trims else None,
        marking=rng.choice([None, Marking(4 * FRAME, 12 * FRAME)]),
        lose=drop_randomly(rng.choice([0.0, 0.01, 0.1]), seed),
        paths=[FakeQueue(RATE_BPS, delay_ns=delay) for delay in delays],
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_every_flow_arrives_exactly_once(seed: int) -> None:
    """Whatever is lost of data and control, over whatever paths."""
    rig = random_rig(seed)
    assert rig.run()
    assert set(rig.seen.by_id()) == {task.id for task in rig.tasks}
    assert rig.settle()
    for one in rig.plan.connections:
        assert one.receiver.expected == one.sender.end
        assert not one.arriving


@pytest.mark.parametrize("seed", SEEDS)
def test_every_packet_is_accounted_for(seed: int) -> None:
    """Sent is received, lost on the way, or dropped at a named queue; nothing else."""
    rig = random_rig(seed)
    assert rig.run()
    assert rig.settle()
    counters = rig.counters
    dropped = sum(queue.dropped for queue in rig.switch.values())
    assert len(rig.medium.sent) == counters.received + len(rig.medium.lost) + dropped
    assert len(rig.medium.sent) == counters.data_sent + counters.control_sent
    assert counters.trimmed == sum(queue.trimmed for queue in rig.switch.values())
    receivers = [one.receiver for one in rig.plan.connections]
    assert counters.delivered == sum(one.expected + one.duplicates for one in receivers)
    again = sum(row.message.retransmitted for row in rig.seen.flows)
    assert counters.retransmitted == again
    assert counters.data_sent == sum(one.expected for one in receivers) + again


@pytest.mark.parametrize("seed", range(4))
def test_the_same_seed_gives_the_same_frames(seed: int) -> None:
    """Entropies included."""
    first, second = random_rig(seed), random_rig(seed)
    for rig in (first, second):
        assert rig.run()
    frames = [[(f.psn, f.sport, f.opcode, f.behind) for f in rig.medium.sent]
              for rig in (first, second)]  # fmt: skip
    assert frames[0] == frames[1]


class Channel:
    """Both ends of a connection alone, over a channel that does what a test draws."""

    def __init__(self, draw: st.DataObject, credited: bool, window: bool) -> None:
        self.draw = draw
        chosen = UetSettings(UEC, 100, 200, 50, 16, 24, credited, 8)
        control = Nscc(UEC, 200, 10**9, 40, False) if window else None
        self.sender = UetSender(chosen, control, EntropyPool(8, RANDOM, "a"), 1.0)
        self.receiver = UetReceiver(16)
        self.now_ns = 0
        self.under_way: list[int] = []
        self.delivered: Counter[int] = Counter()

    def send(self) -> None:
        """What may go."""
        while (count := self.sender.allowed()) > 0:
            burst = self.sender.take(count, self.now_ns)
            burst.start_ns = float(self.now_ns)
            self.under_way += range(burst.first, burst.first + count)
            if burst.word:
                self.receiver.on_wanted(burst.word & PSN_MASK)
            self.check()

    def arrive(self, harmless: bool) -> None:
        """Some packets arrive, whole or cut, or get lost; others stay under way."""
        fates = st.sampled_from(["whole"] * 4 + ["cut", "lost", "later", "marked"])
        kept = []
        for psn in self.draw.draw(st.permutations(self.under_way)) if self.under_way else []:
            fate = "whole" if harmless else self.draw.draw(fates)
            if fate == "later":
                kept.append(psn)
            elif fate == "cut":
                self.receiver.on_trimmed(psn & PSN_MASK)
            elif fate != "lost":
                _, new = self.receiver.on_packets(psn & PSN_MASK, 1)
                self.receiver.on_newest(psn & PSN_MASK, self.now_ns)
                self.delivered[psn] += new & 1
                if fate == "marked":
                    self.receiver.on_marks(psn & PSN_MASK, 1)
        self.under_way = kept

    def answer(self, harmless: bool) -> None:
        """Answers arrive, or get lost."""
        self.receiver.grant(max(0, min(3, self.receiver.wanted - self.receiver.granted)))
        for is_nak, psn, number in self.receiver.answers(self.now_ns):
            if harmless or self.draw.draw(st.integers(0, 3)):
                on = self.sender.on_nak if is_nak else self.sender.on_ack
                on(psn & PSN_MASK, self.now_ns, number)
                self.check()

    def check(self) -> None:
        """What is in flight is what is neither acknowledged nor lost."""
        one = self.sender
        all_sent = (1 << one.next - one.oldest) - 1
        assert one._acked & one._lost == 0
        assert (one._acked | one._lost) & ~all_sent == 0
        assert one.flying == (all_sent & ~one._acked & ~one._lost).bit_count()
        assert one.oldest <= self.receiver.expected


@settings(max_examples=60, deadline=None)
@given(
    st.data(), st.booleans(), st.booleans(), st.lists(st.integers(1, 3_000), min_size=1, max_size=4)
)
def test_both_ends_agree_in_the_end(
    draw: st.DataObject, credited: bool, window: bool, sizes: list[int]
) -> None:
    """Every packet is delivered exactly once, whatever the channel did before it behaved."""
    channel = Channel(draw, credited, window)
    for number, size in enumerate(sizes):
        channel.sender.enqueue(number, size)
    for step in range(400):
        if channel.sender.idle:
            break
        channel.now_ns += 20
        channel.sender.check_timeout(channel.now_ns)
        channel.send()
        channel.arrive(harmless=step > 12)
        channel.answer(harmless=step > 12)
    assert channel.sender.idle
    assert channel.delivered == Counter(range(channel.sender.end))
