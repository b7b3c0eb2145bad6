"""Collectives over the NIC engine: in lock step, and as fast as the network allows."""

from __future__ import annotations

from collections import defaultdict

import pytest

from tests.fakes.ideal_network import leaf_spine
from tests.fakes.nic_rig import (
    FRAME,
    PARAMETERS,
    PAYLOAD,
    RATE_BPS,
    Done,
    Rig,
    unloaded_ns,
)
from traffic import wire
from traffic.workloads import build, parse_workload
from traffic.workloads.base import Workload
from traffic.workloads.collectives.bounds import ideal_time_ns, steps

LINE_GOODPUT_BPS = RATE_BPS * PAYLOAD / wire.wire_bytes(FRAME)


def job(ranks: int, size: int, **keys: object) -> Workload:
    """A training job of one iteration without computations on as many hosts of one leaf."""
    raw = {"kind": "training", "name": "job", "ranks": ranks, "bytes": size, "compute": 0} | keys
    fabric = leaf_spine(leaves=1, spines=0, hosts_per_leaf=ranks)
    return build(parse_workload(raw, "workloads[0]"), fabric, 7, 1.0, 0)


def ran(workload: Workload) -> dict[int, Done]:
    """Its flows, all of which have arrived once."""
    rig = Rig(workload.tasks)
    assert rig.run()
    assert rig.counters.retransmitted == 0
    return rig.seen.by_id()


@pytest.mark.parametrize("ranks", [4, 5, 8])
def test_a_ring_all_reduce_takes_its_steps_one_after_the_other(ranks: int) -> None:
    """Its time is that of 2(n-1) messages in a row, and half a tick or so for each start."""
    size = ranks * 30 * PAYLOAD
    done = ran(job(ranks, size))
    end_ns = max(row.done_ns for row in done.values())
    count = steps("all-reduce", "ring", ranks)
    least_ns = count * unloaded_ns(size // ranks)
    assert least_ns - count * PARAMETERS.tick_ns / 2 <= end_ns
    assert end_ns <= least_ns + count * PARAMETERS.tick_ns


def test_a_large_ring_all_reduce_comes_near_the_bandwidth_bound() -> None:
    """With messages well above the bandwidth-delay product, 90 % of the bus bandwidth."""
    ranks, size = 4, 4 * 300 * PAYLOAD
    end_ns = max(row.done_ns for row in ran(job(ranks, size)).values())
    assert end_ns < ideal_time_ns("all-reduce", ranks, size, LINE_GOODPUT_BPS) / 0.9


def test_a_ring_runs_in_lock_step() -> None:
    """No rank begins a step before the step before has arrived, and all ranks end together."""
    workload = job(6, 6 * 20 * PAYLOAD)
    done = ran(workload)
    for row in done.values():
        for before in set(row.flow.after) & set(done):
            assert row.ready_ns >= done[before].done_ns
    by_step: dict[str, list[int]] = defaultdict(list)
    for row in done.values():
        by_step[row.flow.tag.split(".")[1]].append(row.done_ns)
    assert len(by_step) == 10
    assert all(max(times) - min(times) <= PARAMETERS.tick_ns for times in by_step.values())


@pytest.mark.parametrize(
    ("collective", "algorithm"),
    [
        ("all-reduce", "halving-doubling"),
        ("all-to-all", "pairwise"),
        ("all-to-all", "mesh"),
        ("all-gather", "ring"),
        ("broadcast", "chain"),
    ],
)
def test_other_collectives_finish(collective: str, algorithm: str) -> None:
    """Every flow arrives once, not before the bandwidth bound."""
    size = 4 * 32 * PAYLOAD
    done = ran(job(4, size, collective=collective, algorithm=algorithm))
    end_ns = max(row.done_ns for row in done.values())
    assert end_ns >= ideal_time_ns(collective, 4, size, LINE_GOODPUT_BPS)


def test_computations_lie_between_iterations() -> None:
    """Each rank computes before each iteration; the collective waits for all that it needs."""
    workload = job(4, 4 * 10 * PAYLOAD, compute="50 us", iterations=2)
    rig = Rig(workload.tasks)
    assert rig.run()
    assert [end - start for _, start, end in rig.seen.computes] == [50_000] * 8
    assert min(row.ready_ns for row in rig.seen.flows) == 50_000
    assert rig.plan.schedule.finished
