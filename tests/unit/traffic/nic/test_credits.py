"""Receivers that give credits: how fast, and to whom in turn."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.fakes.nic_rig import PARAMETERS, RATE_BPS, endpoints
from traffic.nic.connection import Connection
from traffic.nic.credits import CreditPacers

UET = replace(PARAMETERS, transport="uet", control="rccc")
SHARE = 0.5


def incast(*wanted: int, at_once: int = 4) -> tuple[CreditPacers, list[Connection], float]:
    """Senders to one port that want so many packets each; and the time between two credits."""
    made = [Connection(n, endpoints(f"h{n + 2}", "h1"), UET) for n in range(len(wanted))]
    pacers = CreditPacers(made, {1: RATE_BPS}, SHARE, at_once)
    for one, packets in zip(made, wanted, strict=True):
        one.receiver.on_wanted(packets)
        pacers.want(one)
    return pacers, made, made[0].wire_bytes * 8e9 / (RATE_BPS * SHARE)


def granted(made: list[Connection]) -> list[int]:
    """Credits of each."""
    return [one.receiver.granted for one in made]


def test_credits_are_given_at_a_share_of_the_line() -> None:
    """Whatever the ticks; the first ones at once."""
    pacers, made, gap_ns = incast(1_000)
    for now_ns in range(10_000, 110_000, 1_000):
        list(pacers.give(now_ns))
    assert granted(made)[0] == pytest.approx(100_000 / gap_ns, abs=8)


def test_senders_take_turns() -> None:
    """A few packets each, in the order in which they asked."""
    pacers, made, gap_ns = incast(100, 100, 100)
    order = []
    for tick in range(12):
        order += [one.number for one in pacers.give(10_000 + round(4 * gap_ns * tick))]
    assert order == [n % 3 for n in range(len(order))]
    assert max(granted(made)) - min(granted(made)) <= 4


def test_nobody_gets_more_than_it_wants() -> None:
    """Then it is out of the turn until it wants more."""
    pacers, made, gap_ns = incast(2, 10)
    for tick in range(40):
        list(pacers.give(10_000 + round(gap_ns * tick)))
    assert granted(made) == [2, 10]
    assert not pacers.busy
    made[0].receiver.on_wanted(5)
    pacers.want(made[0])
    assert pacers.busy
    list(pacers.give(10_000_000))
    assert granted(made) == [5, 10]


def test_what_was_not_given_in_a_quiet_time_is_not_made_up_for() -> None:
    """No more than one turn at once after it."""
    pacers, made, _ = incast(100)
    list(pacers.give(1_000_000_000))
    assert granted(made)[0] <= 8


def test_asking_twice_is_asking_once() -> None:
    """A sender has one place in the turn."""
    pacers, made, gap_ns = incast(8, 8)
    for _ in range(5):
        pacers.want(made[0])
    order = []
    for tick in range(8):
        order += [one.number for one in pacers.give(10_000 + round(4 * gap_ns * tick))]
    assert order == [0, 1, 0, 1]


def test_each_port_gives_its_own() -> None:
    """One that is busy does not slow down another one."""
    made = [Connection(n, endpoints("h9", f"h{n + 1}"), UET) for n in range(2)]
    pacers = CreditPacers(made, {1: RATE_BPS, 2: RATE_BPS // 4}, 1.0, 4)
    for one in made:
        one.receiver.on_wanted(10_000)
        pacers.want(one)
    for now_ns in range(10_000, 1_010_000, 1_000):
        list(pacers.give(now_ns))
    fast, slow = granted(made)
    assert fast == pytest.approx(4 * slow, rel=0.05)
