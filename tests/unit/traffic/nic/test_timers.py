"""Retransmission timers: the same timeouts as if every connection were asked at every tick."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from tests.fakes.nic_rig import PARAMETERS, PAYLOAD, endpoints, flow
from traffic.nic.connection import Connection
from traffic.nic.timers import Timers

RTO_NS = PARAMETERS.rto_ns


def connections(count: int) -> list[Connection]:
    """Connections with a large message each."""
    made = [Connection(n, endpoints(), replace(PARAMETERS, window_packets=None))
            for n in range(count)]  # fmt: skip
    for one in made:
        one.enqueue(flow(one.number, 1_000 * PAYLOAD))
    return made


def test_a_connection_goes_back_at_its_deadline() -> None:
    """Not before, once, and again only when it has sent again."""
    (one,) = connections(1)
    timers = Timers([one])
    one.sender.take(3, 100)
    timers.watch(one)
    assert timers.expire(99 + RTO_NS) == []
    assert timers.expire(100 + RTO_NS) == [one]
    assert one.sender.next == 0
    assert timers.expire(10 * RTO_NS) == []
    one.sender.take(1, 10 * RTO_NS)
    timers.watch(one)
    assert timers.expire(11 * RTO_NS) == [one]


def test_an_acknowledgement_puts_the_deadline_off() -> None:
    """Without noting it, the timer finds out when the time that it knew has come."""
    (one,) = connections(1)
    timers = Timers([one])
    one.sender.take(3, 0)
    timers.watch(one)
    one.sender.on_ack(0, 50)
    assert timers.expire(RTO_NS + 49) == []
    assert timers.expire(RTO_NS + 50) == [one]


def test_a_deadline_that_moves_to_an_earlier_time_is_met() -> None:
    """A packet that is sent a moment before the acknowledgement that was counted early."""
    (one,) = connections(1)
    timers = Timers([one])
    one.sender.take(3, 0)
    one.sender.on_ack(0, 400)
    timers.watch(one)
    one.sender.on_nak(1, 400)
    one.sender.take(1, 300)
    timers.watch(one)
    assert timers.expire(RTO_NS + 299) == []
    assert timers.expire(RTO_NS + 300) == [one]
    one.sender.take(1, RTO_NS + 300)
    timers.watch(one)
    assert timers.expire(2 * RTO_NS + 299) == []
    assert timers.expire(2 * RTO_NS + 300) == [one]


def test_who_is_over_first_goes_back_first() -> None:
    """By deadline, then by number; whatever the order in which they were watched."""
    several = connections(4)
    timers = Timers(several)
    for number, now in ((2, 10), (3, 0), (0, 10), (1, 10)):
        several[number].sender.take(1, now)
        timers.watch(several[number])
    assert [one.number for one in timers.expire(10 + RTO_NS)] == [3, 0, 1, 2]


@pytest.mark.parametrize("seed", range(20))
def test_the_same_connections_go_back_as_if_all_were_asked(seed: int) -> None:
    """Over random sending, acknowledging and going back, at random ticks."""
    rng = Random(seed)
    watched, asked = connections(5), connections(5)
    timers, now = Timers(watched), 0
    for _ in range(3_000):
        now += rng.choice([1, 500, RTO_NS // 7])
        number = rng.randrange(5)
        what, ahead = rng.randrange(5), rng.randint(0, 400)
        for one in (watched[number], asked[number]):
            _disturb(one, what, now + ahead)
        expected = [one.number for one in asked if one.sender.check_timeout(now)]
        assert sorted(one.number for one in timers.expire(now)) == expected
        if what > 2:
            for one in (watched[number], asked[number]):
                one.sender.take(min(2, one.sender.allowed()), now)
            timers.watch(watched[number])


def _disturb(one: Connection, what: int, due_ns: int) -> None:
    """Lets an ACK or a NAK arrive, or nothing."""
    sender = one.sender
    if what == 0:
        sender.on_ack(sender.next - 1, due_ns)
    elif what == 1 and sender.next > sender.oldest:
        sender.on_ack(sender.oldest, due_ns)
    elif what == 2:
        sender.on_nak(sender.oldest, due_ns)
