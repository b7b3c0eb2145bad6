"""Reliable delivery over networks that lose: everything arrives exactly once, by any seed."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from random import Random

import pytest

from tests.fakes.medium import Marking, drop_randomly
from tests.fakes.nic_rig import PARAMETERS, PAYLOAD, Rig, flow
from traffic.nic.receiver import Receiver
from traffic.nic.sender import Sender
from traffic.tasks import Flow
from traffic.wire import PSN_MASK, Opcode

SEEDS = range(12)


def random_flows(rng: Random) -> list[Flow]:
    """Some flows of all sizes between a few hosts, some of which wait for others."""
    flows: list[Flow] = []
    for number in range(rng.randint(5, 20)):
        src, dst = rng.sample(["h1", "h2", "h3", "h4"], 2)
        size = rng.choice([1, 64, PAYLOAD, PAYLOAD + 1, rng.randint(1, 40 * PAYLOAD)])
        after = tuple(rng.sample(range(number), min(number, rng.randint(0, 2))))
        start = rng.randint(0, 100_000)
        flows.append(
            flow(number, size, src, dst, after=after, start_ns=start, qp=rng.randint(0, 1))
        )
    return flows


def random_rig(seed: int) -> Rig:
    """Random flows over a random network: losses, small buffers, small windows, reordering."""
    rng = Random(seed)
    parameters = replace(
        PARAMETERS,
        window_packets=rng.choice([1, 4, 32, None]),
        tick_ns=rng.choice([500, 1_000, 2_000]),
        rto_ns=rng.choice([60_000, 200_000]),
        transport=rng.choice(["go-back-n", "dctcp"]),
    )
    return Rig(
        random_flows(rng),
        parameters=parameters,
        buffer_bytes=rng.choice([None, 12 * 4_200]),
        marking=rng.choice([None, Marking(4 * 4_200, 4 * 4_200)]),
        lose=drop_randomly(rng.choice([0.0, 0.01, 0.1]), seed),
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_every_flow_arrives_exactly_once(seed: int) -> None:
    """Whatever is lost of data and control, and in the order of each connection."""
    rig = random_rig(seed)
    assert rig.run()
    done = rig.seen.by_id()
    assert set(done) == {task.id for task in rig.tasks}
    started: dict[object, list[int]] = defaultdict(list)
    for row in rig.seen.flows:
        started[row.flow.connection].append(row.message.first)
    assert all(firsts == sorted(firsts) for firsts in started.values())


@pytest.mark.parametrize("seed", SEEDS)
def test_every_packet_is_accounted_for(seed: int) -> None:
    """Sent is received, lost on the way, or dropped at a named queue; nothing else."""
    rig = random_rig(seed)
    assert rig.run()
    assert rig.settle()
    dropped = sum(queue.dropped for queue in rig.switch.values())
    assert len(rig.medium.sent) == rig.counters.received + len(rig.medium.lost) + dropped
    sent = rig.counters.data_sent + rig.counters.control_sent + rig.counters.probes_sent
    assert len(rig.medium.sent) == sent
    receivers = [one.receiver for one in rig.plan.connections]
    in_order = sum(one.expected for one in receivers)
    thrown_away = sum(one.discarded + one.duplicates for one in receivers)
    assert rig.counters.delivered == in_order + thrown_away


@pytest.mark.parametrize("seed", SEEDS)
def test_a_connection_delivers_in_order_across_the_wrap(seed: int) -> None:
    """Sender and receiver alone, from just below 2**24, over a channel that loses both ways."""
    rng = Random(seed)
    sender, receiver = Sender(1, None, 10, None), Receiver()
    start = PSN_MASK - rng.randint(0, 40)
    skip(sender, start)
    receiver.expected = start
    messages = [sender.enqueue(number, rng.randint(1, 30)) for number in range(10)]
    completed, now = 0, 0
    while sender.oldest < sender.end:
        now += 1
        sender.check_timeout(now)
        while (count := sender.allowed()) > 0:
            burst = sender.take(rng.randint(1, count), now)
            for psn in range(burst.first, burst.first + burst.count):
                opcode = Opcode.SEND_LAST if psn == burst.message.end - 1 else Opcode.SEND_MIDDLE
                if rng.random() > 0.1 and receiver.on_packet(psn & PSN_MASK, opcode):
                    assert receiver.expected == messages[completed].end
                    completed += 1
        answer = receiver.pop_answer()
        if answer is not None and rng.random() > 0.1:
            (sender.on_nak if answer[0] else sender.on_ack)(answer[1] & PSN_MASK, now)
    assert completed == receiver.completed == len(messages)


def skip(sender: Sender, packets: int) -> None:
    """Makes a sender send so many packets and see them all acknowledged."""
    sender.enqueue(-1, packets)
    while sender.oldest < packets:
        count = min(sender.allowed(), PSN_MASK // 4)
        sender.take(count, 0)
        sender.on_ack((sender.next - 1) & PSN_MASK, 0)
