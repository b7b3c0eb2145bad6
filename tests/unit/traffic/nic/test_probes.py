"""Latency probes: when they leave, what they measure, which are lost."""

from __future__ import annotations

import itertools
import math
import random

import pytest

from tests.fakes.nic_rig import probe_stream
from traffic.nic.probes import Calendar

WRAP = 1 << 24


def test_constant_intervals_do_not_drift() -> None:
    """Probes are due every interval from the first, however late the engine sends them."""
    stream = probe_stream(first_ns=500, interval_ns=1_000)
    due = []
    for now in range(0, 5_000, 300):
        while stream.due(now):
            due.append(stream.next_ns)
            stream.send(now)
    assert due == [500, 1_500, 2_500, 3_500, 4_500]


def test_poisson_intervals_have_the_same_mean() -> None:
    """Exponential gaps, from the stream's own source of randomness."""
    stream = probe_stream(interval_ns=1_000, poisson=True, rng=random.Random(5))
    times = []
    for _ in range(4_000):
        times.append(stream.next_ns)
        stream.send(0)
    gaps = [after - before for before, after in itertools.pairwise(times)]
    mean = sum(gaps) / len(gaps)
    deviation = math.sqrt(sum((gap - mean) ** 2 for gap in gaps) / len(gaps))
    assert mean == pytest.approx(1_000, rel=0.06)
    assert deviation == pytest.approx(mean, rel=0.06)


def test_a_stream_ends_after_so_many_probes() -> None:
    """`total` bounds them; without it they go on."""
    stream = probe_stream(total=3)
    assert [stream.send(0) for _ in range(3)] == [0, 1, 2]
    assert not stream.due(10**18)


def test_latency_is_from_sending_to_arrival() -> None:
    """Each probe is measured by itself, in whatever order they come."""
    stream = probe_stream()
    stream.send(100)
    stream.send(200)
    assert stream.arrive(1, 900) == (200, 700)
    assert stream.arrive(0, 950) == (100, 850)
    assert (stream.sent, stream.arrived, stream.lost()) == (2, 2, [])


def test_what_comes_twice_or_was_never_sent_is_not_measured() -> None:
    """Duplicates and strangers have no latency."""
    stream = probe_stream()
    stream.send(100)
    stream.arrive(0, 200)
    assert stream.arrive(0, 300) is None
    assert stream.arrive(17, 300) is None
    assert stream.arrived == 1


def test_what_does_not_come_is_lost() -> None:
    """Lost probes are listed with the time at which they were sent."""
    stream = probe_stream()
    for now in (10, 20, 30):
        stream.send(now)
    stream.arrive(1, 100)
    assert stream.lost() == [(0, 10), (2, 30)]


def test_numbers_wrap_on_the_wire() -> None:
    """The 2**24-th probe carries the number 0 again."""
    stream = probe_stream()
    stream.sent = WRAP
    assert stream.send(70) == WRAP
    assert stream.arrive(0, 100) == (70, 30)


def test_a_calendar_sends_what_every_stream_would() -> None:
    """All that is due, by the streams' numbers, and again when their times have come."""
    streams = [
        probe_stream(0, first_ns=30, interval_ns=100),
        probe_stream(1, first_ns=10, interval_ns=10, total=3),
        probe_stream(2, first_ns=10.5, interval_ns=100, total=2),
    ]
    calendar = Calendar(streams)
    assert calendar.next_ns == 10
    assert list(calendar.send(9)) == []
    assert list(calendar.send(10)) == [(streams[1], 0)]
    assert calendar.next_ns == 11
    sent = [(stream.number, psn) for stream, psn in calendar.send(40)]
    assert sent == [(0, 0), (1, 1), (1, 2), (2, 0)]
    assert calendar.next_ns == 111
    assert [(stream.number, psn) for stream, psn in calendar.send(1_000)] == (
        [(0, psn) for psn in range(1, 10)] + [(2, 1)]
    )
    assert calendar.next_ns == 1_030


def test_an_empty_calendar_has_no_next_time() -> None:
    """Without streams, and when all probes have been sent."""
    assert Calendar([]).next_ns is None
    calendar = Calendar([probe_stream(total=1)])
    assert len(list(calendar.send(0))) == 1
    assert calendar.next_ns is None
