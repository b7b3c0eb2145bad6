"""The NIC engine end to end over a network in model time: timing, sharing, probes, endings."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.fakes.nic_rig import (
    FIXED_NS,
    FRAME,
    PACKET_NS,
    PARAMETERS,
    PATH,
    PAYLOAD,
    RATE_BPS,
    Rig,
    flow,
    probe_stream,
    unloaded_ns,
)
from traffic import wire
from traffic.nic.engine import PROBE_QP_BASE, lateness_ns
from traffic.nic.parameters import NicParameters
from traffic.tasks import Compute

MIB = 1 << 20
LINE_GOODPUT_BPS = RATE_BPS * PAYLOAD / wire.wire_bytes(FRAME)
TICK = PARAMETERS.tick_ns


def finished(rig: Rig) -> Rig:
    """The rig after a run in which everything was done."""
    assert rig.run()
    return rig


@pytest.mark.parametrize("size", [1, 64, PAYLOAD, PAYLOAD + 1, 10 * PAYLOAD - 7, MIB])
def test_a_lone_message_takes_exactly_its_unloaded_time(size: int) -> None:
    """Serialisation of all packets plus the path of the last one, to the nanosecond."""
    rig = finished(Rig([flow(0, size)]))
    (done,) = rig.seen.flows
    assert done.span_ns == pytest.approx(unloaded_ns(size), abs=2)


def test_a_single_flow_reaches_line_rate() -> None:
    """All but the one path delay is spent at line rate."""
    (done,) = finished(Rig([flow(0, 8 * MIB)])).seen.flows
    assert 0.99 * LINE_GOODPUT_BPS < done.goodput_bps < LINE_GOODPUT_BPS


def test_every_frame_is_intact() -> None:
    """The ICRC of data, ACKs and CNPs is that of the bytes that are sent."""
    rig = finished(Rig([flow(0, 40_000), flow(1, 333)], check_icrc=True))
    assert rig.medium.sent
    assert all(frame.icrc_ok for frame in rig.medium.sent)


def test_a_window_below_the_bandwidth_delay_product_limits_the_rate() -> None:
    """One window per round trip, ticks included."""
    small = replace(PARAMETERS, window_packets=8)
    (done,) = finished(Rig([flow(0, MIB)], parameters=small)).seen.flows
    round_trip_ns = PATH.hold_ns(FRAME) + PATH.hold_ns(wire.ACK_FRAME_BYTES)
    assert done.goodput_bps < 8 * PAYLOAD * 8e9 / round_trip_ns
    assert done.goodput_bps > 8 * PAYLOAD * 8e9 / (round_trip_ns + 2.5 * TICK)


def test_flows_of_one_host_share_its_line() -> None:
    """Two connections, equal messages: both take about twice as long and end together."""
    rig = finished(Rig([flow(0, 2 * MIB, dst="h2"), flow(1, 2 * MIB, dst="h3")]))
    spans = [done.span_ns for done in rig.seen.flows]
    assert spans[0] == pytest.approx(spans[1], rel=0.01)
    assert spans[0] == pytest.approx(2 * unloaded_ns(2 * MIB), rel=0.05)


def test_flows_to_one_host_share_its_line() -> None:
    """Three senders into one receiver: each gets a third, nothing is lost with enough buffer."""
    rig = finished(Rig([flow(n, MIB, src=f"h{n + 2}", dst="h1") for n in range(3)]))
    assert max(done.span_ns for done in rig.seen.flows) == pytest.approx(
        3 * unloaded_ns(MIB), rel=0.05
    )
    assert min(done.goodput_bps for done in rig.seen.flows) > 0.32 * LINE_GOODPUT_BPS
    assert rig.counters.retransmitted == rig.counters.naks == 0


def test_both_directions_run_at_line_rate_at_once() -> None:
    """Acknowledgements go before data, so they do not hold up the other direction."""
    rig = finished(Rig([flow(0, 4 * MIB, "h1", "h2"), flow(1, 4 * MIB, "h2", "h1")]))
    assert min(done.goodput_bps for done in rig.seen.flows) > 0.96 * LINE_GOODPUT_BPS


def test_messages_of_one_connection_arrive_in_order() -> None:
    """A queue pair is first in, first out; large and small ones alike."""
    sizes = [PAYLOAD * 3, 1, 50_000, 200, PAYLOAD]
    rig = finished(Rig([flow(number, size) for number, size in enumerate(sizes)]))
    assert [done.flow.id for done in rig.seen.flows] == [0, 1, 2, 3, 4]
    assert rig.plan.connections[0].receiver.completed == 5


def test_small_messages_are_not_slowed_to_full_packets() -> None:
    """A thousand 64-byte messages take the line time of 64-byte messages."""
    window = replace(PARAMETERS, window_packets=None)
    rig = finished(Rig([flow(n, 64, qp=n % 4) for n in range(1_000)], parameters=window))
    small_ns = wire.wire_bytes(wire.data_frame_bytes(64)) * 8e9 / RATE_BPS
    last_ns = max(done.done_ns for done in rig.seen.flows)
    assert last_ns == pytest.approx(999 * small_ns + unloaded_ns(64), rel=0.02)


def test_a_flow_starts_when_what_it_waits_for_has_arrived() -> None:
    """It is ready when the other's last byte is there, and leaves within half a tick or so."""
    rig = finished(Rig([flow(0, 30_000), flow(1, 500, "h2", "h1", after=(0,), delay_ns=2_500)]))
    first, second = rig.seen.flows
    assert second.ready_ns == first.done_ns + 2_500
    assert -TICK / 2 <= second.message.first_tx_ns - second.ready_ns <= TICK


def test_an_idle_engine_wakes_for_the_next_start() -> None:
    """A flow that starts later leaves at its time although nothing happens before."""
    rig = finished(Rig([flow(0, 500, start_ns=123_456)]))
    (done,) = rig.seen.flows
    assert done.ready_ns == 123_456
    assert done.message.first_tx_ns == 123_456
    assert len(rig.seen.ticks) < 123_456 / TICK / 8


def chain(delay_ns: int) -> list[int]:
    """How much later than ready each step of a chain of flows starts, ns."""
    steps = [
        flow(n, 500 + 97 * n, *[("h1", "h2"), ("h2", "h1")][n % 2], after=(n - 1,) * (n > 0),
             delay_ns=delay_ns)
        for n in range(80)
    ]  # fmt: skip
    done = finished(Rig(steps)).seen.flows
    return [one.message.first_tx_ns - one.ready_ns for one in done]


def test_ticks_add_no_delay_on_average() -> None:
    """What arrives within half a tick counts as there: steps start as often early as late."""
    offsets = chain(0)
    assert max(map(abs, offsets)) <= TICK / 2
    assert abs(sum(offsets) / len(offsets)) < 0.1 * TICK


def test_what_waits_for_a_time_starts_at_that_time() -> None:
    """The engine knows when it will be, and wakes up for it."""
    assert set(chain(5_777)) == {0}


def test_nothing_starts_before_time_zero() -> None:
    """An engine's process is ready a little before its run begins."""
    rig = finished(Rig([flow(0, 500)], [probe_stream(total=1)], now_ns=-25_300))
    (done,) = rig.seen.flows
    assert done.ready_ns == done.message.first_tx_ns == 0
    assert [sent for _, _, sent, _ in rig.seen.probes] == [0]


def test_an_engine_with_everything_acknowledged_is_idle() -> None:
    """It does not look for timeouts every tick until the next flow starts."""
    rig = finished(Rig([flow(0, 500), flow(1, 500, start_ns=500_000)]))
    assert len(rig.seen.ticks) < 500_000 / TICK / 8


def test_computations_are_reported_and_hold_flows_back() -> None:
    """A computation runs on its own; what depends on it waits."""
    compute = Compute(7, "job", "gpu", 40_000, "c")
    rig = finished(Rig([compute, flow(0, 500, after=(7,))]))
    assert rig.seen.computes == [(compute, 0, 40_000)]
    assert rig.seen.flows[0].ready_ns == 40_000


def test_counters_add_up() -> None:
    """What was sent was received, and each kind is counted once."""
    rig = finished(Rig([flow(0, MIB), flow(1, MIB, "h2", "h1")]))
    assert rig.settle()
    counters = rig.counters
    assert counters.data_sent == counters.delivered == 512
    assert len(rig.medium.sent) == counters.data_sent + counters.control_sent == counters.received
    assert (
        counters.strangers == counters.refused == counters.retransmitted == counters.timeouts == 0
    )


def test_time_inside_switches_is_summed_up() -> None:
    """Packets inside times the time that they are seen there."""
    rig = Rig([flow(0, MIB)])
    rig.medium.inside = 3
    finished(rig)
    elapsed = rig.seen.ticks[-1] - rig.seen.ticks[0]
    assert rig.counters.inside_switches_ns == 3 * elapsed
    assert rig.counters.ticks == len(rig.seen.ticks)


class TestLateness:
    """Being late is told from having nothing to send."""

    def test_an_engine_on_time_is_never_late(self) -> None:
        """The queue never runs dry while there is something to send."""
        rig = finished(Rig([flow(0, 4 * MIB)]))
        samples = lateness_ns(rig.plan.nics.values())
        assert len(samples) > 100
        assert set(samples) == {0}

    def test_a_pause_of_the_machine_is_lateness(self) -> None:
        """Two pauses of 20 us cost the line time that the queue was dry, and are noted."""
        window = replace(PARAMETERS, window_packets=None)
        late = {50_000: 20_000, 150_000: 20_000}
        rig = finished(Rig([flow(0, 4 * MIB)], parameters=window,
                           late_ns=lambda asked: late.get(asked, 0)))  # fmt: skip
        lost_ns = sum(lateness_ns(rig.plan.nics.values()))
        (done,) = rig.seen.flows
        assert lost_ns == pytest.approx(2 * (20_000 - 500), abs=2 * PACKET_NS)
        assert done.span_ns == pytest.approx(unloaded_ns(4 * MIB) + lost_ns, abs=2 * PACKET_NS)

    def test_waiting_for_acknowledgements_is_not_lateness(self) -> None:
        """A window that is too small leaves the line idle, through no fault of the engine."""
        small = replace(PARAMETERS, window_packets=4)
        rig = finished(Rig([flow(0, MIB)], parameters=small))
        assert sum(lateness_ns(rig.plan.nics.values())) == 0


class TestProbes:
    """Latency of small packets, beside other traffic or alone."""

    def test_in_an_idle_network_a_probe_takes_its_path_s_delay(self) -> None:
        """Exactly the hold of its frame, from the moment at which it was sent."""
        stream = probe_stream(interval_ns=5_000, total=10)
        rig = Rig(streams=[stream])
        rig.run(limit_ns=100_000)
        expected = PATH.hold_ns(wire.data_frame_bytes(16))
        assert [latency for _, _, _, latency in rig.seen.probes] == [expected] * 10
        assert [sent for _, _, sent, _ in rig.seen.probes] == list(range(0, 50_000, 5_000))

    def test_probes_alone_run_to_the_limit(self) -> None:
        """There is no task to wait for, so the duration ends the run."""
        rig = Rig(streams=[probe_stream(interval_ns=1_000)])
        rig.run(limit_ns=50_000)
        assert rig.clock.now_ns() >= 50_000
        assert rig.counters.probes_sent == 50

    def test_nothing_to_do_ends_at_once(self) -> None:
        """Without tasks, probes and limit there is nothing to wait for."""
        assert Rig(streams=[probe_stream()]).run(limit_ns=None)

    def test_a_queue_is_seen_by_probes_of_its_class(self) -> None:
        """Behind an incast a probe waits; in the control class it does not."""
        streams = [probe_stream(n, "h2", "h1", tc, interval_ns=3_000) for n, tc in ((0, 3), (1, 6))]
        tasks = [flow(n, MIB, src=f"h{n + 2}", dst="h1") for n in range(3)]
        rig = finished(Rig(tasks, streams))
        worst = {0: 0, 1: 0}
        for number, _, _, latency in rig.seen.probes:
            assert latency is not None
            worst[number] = max(worst[number], latency)
        idle = PATH.hold_ns(wire.data_frame_bytes(16))
        assert worst[0] > idle + 40 * PACKET_NS
        assert worst[1] < idle + 4 * PACKET_NS

    def test_lost_probes_stay_on_the_stream(self) -> None:
        """They are not reported as arrived, and no other probe takes their place."""
        stream = probe_stream(interval_ns=2_000, total=20)
        rig = Rig(streams=[stream], lose=lambda frame: frame.psn in (3, 8))
        rig.run(limit_ns=100_000)
        assert [psn for psn, _ in stream.lost()] == [3, 8]
        assert len(rig.seen.probes) == 18


class TestEndings:
    """A run can be stopped, limited and drained at any time."""

    def test_the_limit_ends_a_run(self) -> None:
        """What has not arrived is unfinished, and the clock is not far beyond."""
        rig = Rig([flow(0, 1_000), flow(1, 64 * MIB, qp=1)])
        assert not rig.run(limit_ns=100_000)
        assert [done.flow.id for done in rig.seen.flows] == [0]
        assert rig.plan.schedule.unfinished() == [1]
        assert 100_000 <= rig.clock.now_ns() <= 100_000 + TICK

    def test_a_stop_ends_a_run_at_the_next_tick(self) -> None:
        """It is asked every tick."""
        rig = Rig([flow(0, 64 * MIB)])
        assert not rig.engine.run(lambda: len(rig.seen.ticks) >= 10)
        assert len(rig.seen.ticks) == 10

    def test_a_drained_network_is_silent_and_nothing_new_was_sent(self) -> None:
        """Packets under way still arrive; no packet, ACK or CNP leaves any more."""
        rig = Rig([flow(0, 64 * MIB)])
        rig.run(limit_ns=50_000)
        sent, before = len(rig.medium.sent), rig.counters.delivered
        control = rig.counters.control_sent
        assert rig.settle()
        assert len(rig.medium.sent) == sent
        assert rig.counters.control_sent == control
        assert rig.counters.delivered == rig.counters.data_sent > before
        assert not rig.medium.backlog().any()

    def test_a_flow_that_arrives_while_draining_is_done(self) -> None:
        """Its last packet was under way when the run ended."""
        rig = Rig([flow(0, 10 * PAYLOAD)])
        assert not rig.run(limit_ns=int(unloaded_ns(10 * PAYLOAD)) - FIXED_NS // 2)
        assert not rig.seen.flows
        assert rig.settle()
        assert [done.flow.id for done in rig.seen.flows] == [0]
        assert rig.plan.schedule.finished

    def test_a_network_that_does_not_fall_silent_is_given_up(self) -> None:
        """Draining ends at its limit and says so."""
        rig = Rig([flow(0, 8 * MIB)], parameters=replace(PARAMETERS, window_packets=None))
        rig.nics[1].rate_bps = 10_000_000
        rig.run(limit_ns=20_000)
        begin = rig.clock.now_ns()
        assert not rig.engine.drain(quiet_ns=20_000, limit_ns=200_000)
        assert begin + 200_000 <= rig.clock.now_ns() <= begin + 200_000 + TICK

    def test_two_runs_of_the_same_plan_are_the_same(self) -> None:
        """Nothing depends on anything but the plan and the network."""

        def rows() -> list[tuple[int, int, int]]:
            tasks = [flow(n, 100_000 + n, src=f"h{n + 2}", dst="h1") for n in range(4)]
            rig = finished(Rig(tasks, buffer_bytes=100_000))
            return [(done.flow.id, done.done_ns, done.message.retransmitted)
                    for done in rig.seen.flows]  # fmt: skip

        assert rows() == rows()


class TestStrangers:
    """Frames for nobody are counted and harm nothing."""

    @pytest.mark.parametrize("qp", [0, 0xFF, 0x102, 0x7FFFFF, PROBE_QP_BASE, 0xFFFFFF])
    def test_a_frame_for_an_unknown_queue_pair_is_a_stranger(self, qp: int) -> None:
        """Below, above and between what exists."""
        rig = Rig([flow(0, 100_000)])
        rig.medium.inject(qp)
        finished(rig)
        assert rig.counters.strangers == 1

    def test_a_probe_that_comes_twice_is_a_stranger(self) -> None:
        """Its latency was measured already."""
        rig = Rig(streams=[probe_stream(total=1)])
        rig.run(limit_ns=20_000)
        rig.medium.inject(PROBE_QP_BASE)
        rig.settle()
        assert (len(rig.seen.probes), rig.counters.strangers) == (1, 1)


def test_ticks_of_any_length_give_the_same_times() -> None:
    """Arrival times come from the network; a coarse tick does not blur a lone message."""
    for tick in (250, 1_000, 2_000):
        parameters = NicParameters(PAYLOAD, None, 200_000, tick_ns=tick, lookahead_ns=2 * tick)
        (done,) = finished(Rig([flow(0, MIB)], parameters=parameters)).seen.flows
        assert done.span_ns == pytest.approx(unloaded_ns(MIB), abs=2)
