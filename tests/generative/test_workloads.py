"""The same properties over many generated workloads on many fabrics."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fakes.ideal_network import IdealNetwork, leaf_spine
from traffic.metrics import workload_metrics
from traffic.schedule import Schedule
from traffic.tasks import Compute, Flow
from traffic.workloads import Workload, build, parse_workload
from traffic.workloads.collectives import algorithms, collectives
from traffic.workloads.pairs import PATTERNS

PLACEMENTS = st.sampled_from(["contiguous", "strided", "random"])
LEAVES, PER_LEAF = st.integers(2, 4), st.integers(2, 4)


@st.composite
def training(draw: st.DrawFn) -> dict[str, Any]:
    """A training job of 2-4 ranks, any collective."""
    collective = draw(st.sampled_from(collectives()))
    return {
        "kind": "training",
        "ranks": draw(st.integers(2, 4)),
        "placement": draw(PLACEMENTS),
        "collective": collective,
        "algorithm": draw(st.sampled_from(algorithms(collective))),
        "bytes": draw(st.integers(4096, 100_000)),
        "compute": f"{draw(st.integers(0, 50))} us",
        "iterations": draw(st.integers(1, 3)),
        "channels": draw(st.integers(1, 3)),
    }


@st.composite
def inference(draw: st.DrawFn) -> dict[str, Any]:
    """A small service; requests of any length, 0 tokens included."""
    lengths = st.one_of(st.integers(0, 20), st.builds(dict, mean=st.integers(1, 30)))
    return {
        "kind": "inference",
        "clients": draw(st.integers(1, 2)),
        "servers": 2,
        "mode": draw(st.sampled_from(["aggregated", "disaggregated"])),
        "stream": draw(st.booleans()),
        "placement": draw(PLACEMENTS),
        "channels": draw(st.integers(1, 3)),
        "tpot": f"{draw(st.integers(0, 40))} us",
        "arrivals": {
            "process": "gamma",
            "rate": "1000 /s",
            "burstiness": draw(st.sampled_from([0.1, 1, 5])),
            "requests": draw(st.integers(1, 8)),
            "context_tokens": draw(lengths),
            "generated_tokens": draw(lengths),
        },
    }


@st.composite
def background(draw: st.DrawFn) -> dict[str, Any]:
    """Closed rounds of any pattern, or random arrivals."""
    common = {"kind": "background", "placement": draw(PLACEMENTS), "bytes": 9000}
    if draw(st.booleans()):
        pattern = draw(st.sampled_from(sorted(PATTERNS)))
        return {**common, "pattern": pattern, "count": draw(st.integers(1, 3))}
    return {**common, "pattern": "poisson", "load": 0.3, "duration": "20 us"}


WORKLOADS = st.one_of(training(), inference(), background())


def built(raw: dict[str, Any], leaves: int, per_leaf: int, shrink: float, seed: int) -> Workload:
    """The workload on a leaf-spine fabric."""
    fabric = leaf_spine(leaves=leaves, hosts_per_leaf=per_leaf)
    return build(parse_workload(raw, "workloads[0]"), fabric, seed, shrink, 1000)


@settings(deadline=None)
@given(
    raw=WORKLOADS,
    leaves=LEAVES,
    per_leaf=PER_LEAF,
    shrink=st.sampled_from([1.0, 2.5, 100.0]),
    seed=st.integers(0, 99),
)
def test_every_workload_is_a_schedule_that_ends(
    raw: dict[str, Any], leaves: int, per_leaf: int, shrink: float, seed: int
) -> None:
    """Ids are consecutive, sizes at least a byte, the DAG has an end, and equal seeds repeat."""
    workload = built(raw, leaves, per_leaf, shrink, seed)
    assert [task.id for task in workload.tasks] == list(range(1000, 1000 + len(workload.tasks)))
    assert all(parent < task.id for task in workload.tasks for parent in task.after)
    schedule = IdealNetwork().run(workload.tasks)
    assert schedule.finished
    assert workload == built(raw, leaves, per_leaf, shrink, seed)


@settings(deadline=None)
@given(raw=st.one_of(training(), inference()), lost=st.integers(0, 10_000), seed=st.integers(0, 9))
def test_a_lost_message_is_reported(raw: dict[str, Any], lost: int, seed: int) -> None:
    """Whichever message never arrives, something is counted as not finished."""
    workload = built(raw, 3, 3, 1.0, seed)
    flows = [task for task in workload.tasks if isinstance(task, Flow)]
    missing = flows[lost % len(flows)].id
    network = IdealNetwork(extra_ns=lambda flow: None if flow.id == missing else 0)
    schedule = network.run(workload.tasks)
    assert not schedule.finished
    assert missing in schedule.under_way()
    found = workload_metrics(workload.meta, schedule.times())
    assert found is not None
    if raw["kind"] == "training":
        assert found["iterations"] < found["iterations_planned"]
    elif not workload.tasks[missing - 1000].tag.split(".")[1].startswith("t"):
        assert found["failed"] >= 1


@settings(deadline=None)
@given(
    spans=st.lists(
        st.tuples(st.integers(0, 50), st.integers(0, 3), st.integers(0, 40)),
        min_size=1,
        max_size=40,
    )
)
def test_a_resource_never_does_two_things_at_once(spans: list[tuple[int, int, int]]) -> None:
    """Random computations on three resources do not overlap, and none starts before it is ready."""
    tasks = [
        Compute(number, "job", f"r{resource}" if resource else "", length, "c", start_ns=start)
        for number, (length, resource, start) in enumerate(spans)
    ]
    schedule = Schedule(tasks)
    schedule.start(0)
    schedule.ready(10_000)
    times = schedule.times()
    for resource in ("r1", "r2", "r3"):
        busy = sorted(times[task.id] for task in tasks if task.resource == resource)
        assert all(one[1] <= two[0] for one, two in pairwise(busy))
    assert all(times[task.id][0] >= task.start_ns for task in tasks)
    assert all(times[t.id][0] == t.start_ns for t in tasks if t.resource == "")
