"""A host's NIC: whose packets go into its queue, how many, and when it is to blame for a gap."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from tests.fakes.nic_rig import PACKET_NS, PARAMETERS, PAYLOAD, RATE_BPS, endpoints, flow
from traffic.dcqcn import Dcqcn
from traffic.dcqcn_params import PAPER
from traffic.nic.connection import Connection
from traffic.nic.pacing import Grant, NicQueue
from traffic.nic.parameters import NicParameters
from traffic.wire import data_frame_bytes, wire_bytes

WINDOWLESS = replace(PARAMETERS, window_packets=None)
MANY = 1_000


def nic(
    *sizes_bytes: int, parameters: NicParameters = WINDOWLESS
) -> tuple[NicQueue, list[Connection]]:
    """A NIC, and one active connection for each size, which has one message to send."""
    queue, connections = NicQueue(1, RATE_BPS), []
    for number, size in enumerate(sizes_bytes):
        connection = Connection(number, endpoints(), parameters)
        connection.enqueue(flow(number, size))
        queue.activate(connection)
        connections.append(connection)
    return queue, connections


def packets(grants: list[Grant]) -> Counter[int]:
    """Granted packets by connection."""
    counted: Counter[int] = Counter()
    for grant in grants:
        counted[grant.connection.number] += grant.burst.count
    return counted


def test_the_queue_is_filled_up_to_the_horizon() -> None:
    """The last packet begins before the horizon; no further one is put in."""
    queue, _ = nic(MANY * PAYLOAD)
    grants = queue.fill(0, 1_500)
    assert packets(grants) == {0: 5}
    assert 1_500 <= queue.free_ns == pytest.approx(5 * PACKET_NS)
    assert queue.fill(0, 1_500) == []


def test_what_waits_in_the_queue_counts() -> None:
    """A backlog of three packets leaves room for two."""
    queue, _ = nic(MANY * PAYLOAD)
    queue.sync(10_000, 3 * wire_bytes(data_frame_bytes(PAYLOAD)))
    assert packets(queue.fill(10_000, 11_500)) == {0: 2}


def test_a_paused_class_gets_nothing_and_holds_up_no_other() -> None:
    """The other class gets the line; the paused one goes on where it stood, and nobody was late."""
    queue, (paused, other) = nic(*[MANY * PAYLOAD] * 2)
    other.traffic_class = 5
    queue.fill(0, 1_500)
    queue.sync(10_000, 0, paused=1 << paused.traffic_class)
    assert packets(queue.fill(10_000, 11_500)) == {1: 5}
    queue.sync(20_000, 0, paused=1 << paused.traffic_class | 1 << 5)
    assert queue.fill(20_000, 21_500) == []
    queue.sync(30_000, 0, paused=1 << 5)
    assert len(queue.lateness_ns) == 0
    assert packets(queue.fill(30_000, 31_500)) == {0: 5}


def test_a_dry_queue_is_noticed_while_another_class_is_paused() -> None:
    """The class that may send had more, and nothing was there to be sent."""
    queue, (paused, other) = nic(*[MANY * PAYLOAD] * 2)
    other.traffic_class = 5
    mask = 1 << paused.traffic_class
    queue.sync(0, 0, paused=mask)
    queue.fill(0, 1_500)
    free_ns = queue.free_ns
    queue.sync(10_000, 0, paused=mask)
    assert list(queue.lateness_ns) == [int(10_000 - free_ns)]


def test_connections_take_turns() -> None:
    """None gets more than a turn ahead of another, over many fills."""
    queue, _ = nic(*[MANY * PAYLOAD] * 3)
    total: Counter[int] = Counter()
    for now in range(0, 100_000, 1_000):
        queue.sync(now, max(0, round((queue.free_ns - now) * RATE_BPS / 8e9)))
        total += packets(queue.fill(now, now + 1_500))
    assert sum(total.values()) == pytest.approx(100_500 / PACKET_NS, abs=2)
    assert max(total.values()) - min(total.values()) <= 4


def test_a_turn_is_a_few_packets() -> None:
    """A connection with much to send lets the others in between."""
    queue, _ = nic(*[MANY * PAYLOAD] * 2)
    grants = queue.fill(0, 5_000)
    turns = [(grant.connection.number, grant.burst.count) for grant in grants]
    assert turns == [(0, 4), (1, 4), (0, 4), (1, 3)]


def test_a_connection_that_is_alone_needs_no_turns() -> None:
    """It gets all that fits at once, message by message; with company it gets turns."""
    queue, (one,) = nic(7 * PAYLOAD)
    one.enqueue(flow(1, MANY * PAYLOAD))
    grants = queue.fill(0, 5_000)
    assert [grant.burst.count for grant in grants] == [7, 8]
    other = Connection(9, endpoints(), WINDOWLESS)
    other.enqueue(flow(2, 3 * PAYLOAD))
    queue.activate(other)
    queue.sync(5_000, 0)
    turns = [(grant.connection.number, grant.burst.count) for grant in queue.fill(5_000, 9_000)]
    assert turns == [(0, 4), (9, 3), (0, 4), (0, 1)]


def test_small_messages_take_the_time_of_their_size() -> None:
    """64-byte messages fill the queue by their own length, not by that of full packets."""
    queue, connections = nic()
    for number in range(100):
        connections.append(Connection(number, endpoints(), WINDOWLESS))
        connections[-1].enqueue(flow(number, 64))
        queue.activate(connections[-1])
    small_ns = wire_bytes(data_frame_bytes(64)) * 8e9 / RATE_BPS
    assert sum(packets(queue.fill(0, 500)).values()) == pytest.approx(500 / small_ns, abs=1)
    assert queue.busy_ns == queue.free_ns


def test_a_full_window_waits_outside_the_round() -> None:
    """A connection that may not send leaves; it is activated again by an acknowledgement."""
    queue, (one,) = nic(8 * PAYLOAD, parameters=replace(PARAMETERS, window_packets=2))
    assert packets(queue.fill(0, 10_000)) == {0: 2}
    assert not queue.busy
    assert not one.queued
    one.sender.on_ack(0, 100)
    queue.activate(one)
    queue.activate(one)
    queue.sync(5_000, 0)
    assert packets(queue.fill(5_000, 15_000)) == {0: 1}


def limited(rate_bps: int, count: int = 1) -> tuple[NicQueue, list[Connection]]:
    """A NIC with rate-controlled connections that have been cut to a rate."""
    queue, connections = nic(*[MANY * PAYLOAD] * count, parameters=WINDOWLESS)
    steady = replace(PAPER, increase_interval_ns=10**12, increase_bytes=None)
    for connection in connections:
        control = Dcqcn(replace(steady, min_rate_bps=rate_bps, initial_alpha=1.0), RATE_BPS)
        for _ in range(40):
            control.on_cnp(0)
        assert control.rate_bps(0) == rate_bps
        connection.sender = type(connection.sender)(PAYLOAD, None, 10**12, control)
        connection.sender.enqueue(0, MANY * PAYLOAD)
    return queue, connections


@pytest.mark.parametrize("gbps", [1, 10, 40])
def test_a_rate_control_is_obeyed(gbps: int) -> None:
    """Over many ticks as many packets leave as the rate carries, and one that is under way."""
    queue, _ = limited(gbps * 10**9)
    total, end = 0, 200_000
    for now in range(0, end, 1_000):
        queue.sync(now, max(0, round((queue.free_ns - now) * RATE_BPS / 8e9)))
        total += packets(queue.fill(now, now + 1_500))[0]
    gap_ns = PACKET_NS * 100 / gbps
    assert total == pytest.approx((end + 500) / gap_ns, abs=1.5)


def test_a_slow_connection_does_not_hold_up_the_others() -> None:
    """Those that wait for their rate are passed over."""
    queue, (slow,) = limited(10**9)
    fast = Connection(7, endpoints(), WINDOWLESS)
    fast.enqueue(flow(7, MANY * PAYLOAD))
    queue.activate(fast)
    assert packets(queue.fill(0, 6_000)) == {slow.number: 1, 7: 17}
    queue.sync(6_000, 0)
    assert packets(queue.fill(6_000, 12_000)) == {7: 18}


def test_two_limited_connections_share_by_their_rates() -> None:
    """The line has room for both, so each gets its own rate."""
    queue, _ = limited(20 * 10**9, count=2)
    total: Counter[int] = Counter()
    for now in range(0, 100_000, 1_000):
        queue.sync(now, max(0, round((queue.free_ns - now) * RATE_BPS / 8e9)))
        total += packets(queue.fill(now, now + 1_500))
    assert total[0] == total[1] == pytest.approx(100_500 / (5 * PACKET_NS), abs=1.5)


class TestLateness:
    """A gap on the line is the engine's fault only if it had something that it could have sent."""

    def test_a_queue_that_never_ran_dry_was_never_late(self) -> None:
        """A backlog at the tick means that the line was busy all the time."""
        queue, _ = nic(MANY * PAYLOAD)
        queue.fill(0, 1_500)
        queue.sync(1_000, 100)
        assert list(queue.lateness_ns) == [0]

    def test_a_line_that_is_slower_than_its_rate_is_not_the_engine_s_fault(self) -> None:
        """Something still waits although all should be out: nothing was missing."""
        queue, _ = nic(MANY * PAYLOAD)
        queue.fill(0, 1_500)
        queue.sync(5_000, 100)
        assert list(queue.lateness_ns) == [0]

    def test_a_late_tick_counts_from_when_the_queue_was_empty(self) -> None:
        """The five packets were out after 1671 ns; the engine came at 5000 ns."""
        queue, _ = nic(MANY * PAYLOAD)
        queue.fill(0, 1_500)
        queue.sync(5_000, 0)
        assert list(queue.lateness_ns) == [int(5_000 - 5 * PACKET_NS)]

    def test_a_queue_that_emptied_early_is_not_late_before_its_time(self) -> None:
        """A shaper that lets a burst out at once leaves no gap until the line time is over."""
        queue, _ = nic(MANY * PAYLOAD)
        queue.fill(0, 1_500)
        queue.sync(1_000, 0)
        assert list(queue.lateness_ns) == [0]

    def test_nothing_left_to_send_is_no_fault(self) -> None:
        """The message ended exactly with what was put in."""
        queue, _ = nic(5 * PAYLOAD)
        queue.fill(0, 1_500)
        queue.sync(5_000, 0)
        assert not queue.lateness_ns

    def test_less_than_the_horizon_is_no_fault(self) -> None:
        """All that there was went in at once."""
        queue, (one,) = nic(2 * PAYLOAD)
        queue.fill(0, 1_500)
        one.enqueue(flow(9, PAYLOAD))
        queue.sync(5_000, 0)
        assert not queue.lateness_ns

    def test_a_full_window_is_no_fault(self) -> None:
        """The network has not acknowledged what was sent."""
        queue, _ = nic(MANY * PAYLOAD, parameters=replace(PARAMETERS, window_packets=5))
        queue.fill(0, 1_500)
        queue.sync(5_000, 0)
        assert not queue.lateness_ns

    def test_a_rate_control_is_no_fault(self) -> None:
        """The next packet was not due yet when the queue ran dry."""
        queue, _ = limited(10**9)
        queue.fill(0, 1_500)
        queue.sync(30_000, 0)
        assert not queue.lateness_ns
