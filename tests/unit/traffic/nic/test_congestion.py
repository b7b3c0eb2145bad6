"""Rate control over the NIC engine: who slows down, when, and what the queue gains by it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.fakes.medium import Marking
from tests.fakes.nic_rig import PARAMETERS, PAYLOAD, RATE_BPS, Rig, flow, unloaded_ns
from traffic.dcqcn_params import HPCC, PAPER, DcqcnParams
from traffic.wire import CE, ECN_MASK, Opcode

MIB = 1 << 20
MARKING = Marking(50_000, 200_000, 0.2)


def incast(senders: int, size: int, dcqcn: DcqcnParams | None) -> Rig:
    """Some hosts send to one over a queue that marks, without a window."""
    parameters = replace(PARAMETERS, dcqcn=dcqcn, window_packets=None, rto_ns=10_000_000)
    tasks = [flow(n, size, src=f"h{n + 2}", dst="h1") for n in range(senders)]
    rig = Rig(tasks, parameters=parameters, marking=MARKING)
    assert rig.run()
    return rig


def cnps(rig: Rig) -> list[int]:
    """Destination queue pairs of all CNPs that were sent."""
    return [frame.dest_qp for frame in rig.medium.sent if frame.opcode == Opcode.CNP]


def test_without_marks_there_is_no_cnp_and_no_slowing_down() -> None:
    """A single flow never builds a queue, so it keeps the line rate."""
    rig = incast(1, MIB, PAPER)
    assert cnps(rig) == []
    assert rig.counters.cnps == rig.counters.marked == 0
    assert rig.seen.flows[0].span_ns == pytest.approx(unloaded_ns(MIB), abs=2)


@pytest.mark.parametrize("params", [PAPER, HPCC], ids=lambda params: params.name)
def test_marks_bring_cnps_and_cnps_bring_a_shorter_queue(params: DcqcnParams) -> None:
    """With the reaction the queue stays well below what it grows to without."""
    free, controlled = incast(3, 2 * MIB, None), incast(3, 2 * MIB, params)
    assert controlled.counters.cnps == len(cnps(controlled)) > 0
    assert controlled.switch[1].peak_bytes < 0.6 * free.switch[1].peak_bytes
    senders = {one.sender_qp for one in controlled.plan.connections}
    assert set(cnps(controlled)) == senders


def test_the_rate_falls_below_the_line_rate() -> None:
    """Every sender of the incast has been cut, to about its share or less."""
    rig = incast(4, 2 * MIB, HPCC)
    now_ns = rig.clock.now_ns()
    for one in rig.plan.connections:
        rate = one.sender.rate_bps(now_ns)
        assert rate is not None
        assert rate < 0.6 * RATE_BPS


def test_marks_without_rate_control_are_counted_only() -> None:
    """Nobody is notified, and the flows know how many of their packets were marked."""
    rig = incast(3, MIB, None)
    assert rig.counters.cnps == 0
    assert rig.counters.marked == rig.switch[1].marked > 0
    assert sum(done.message.marked for done in rig.seen.flows) == rig.counters.marked


def test_every_mark_is_counted_for_its_flow() -> None:
    """Messages that share a connection get their own marks, which add up to the queue's."""
    tasks = [
        flow(10 * sender + n, 20 * PAYLOAD, src=f"h{sender + 2}", dst="h1")
        for sender in range(3)
        for n in range(4)
    ]
    rig = Rig(tasks, marking=MARKING, parameters=replace(PARAMETERS, window_packets=None))
    assert rig.run()
    assert sum(done.message.marked for done in rig.seen.flows) == rig.switch[1].marked
    assert all(done.message.marked <= 20 for done in rig.seen.flows)


def test_a_cnp_comes_at_most_once_per_interval() -> None:
    """One connection is notified every 50 us at most, however many marks arrive."""
    rig = incast(3, 4 * MIB, PAPER)
    span_ns = rig.clock.now_ns()
    for one in rig.plan.connections:
        count = cnps(rig).count(one.sender_qp)
        assert 1 <= count <= span_ns / PAPER.cnp_interval_ns + 1
    assert rig.counters.marked > rig.counters.cnps


def test_the_sender_s_own_bits_are_ect() -> None:
    """Frames leave able to be marked, and not marked."""
    rig = Rig([flow(0, 10 * PAYLOAD)])
    rig.medium.refuse = lambda frame: frame.tos & ECN_MASK in (0, CE)
    assert rig.run()
    assert rig.counters.refused == 0


def test_rate_controlled_flows_share_fairly() -> None:
    """After the first cuts the flows of an incast end within a few percent of each other."""
    spans = [done.span_ns for done in incast(4, 4 * MIB, HPCC).seen.flows]
    assert min(spans) > 0.85 * max(spans)
