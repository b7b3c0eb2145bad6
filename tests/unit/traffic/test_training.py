"""Training jobs: what is read, which tasks come out, how they run in lock step."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fakes.ideal_network import IdealNetwork, leaf_spine
from topologies.errors import SpecError, UnknownNameError
from traffic.tasks import Compute, Flow
from traffic.workloads import build, parse_workload
from traffic.workloads.base import Workload

FABRIC = leaf_spine()


def job(**keys: Any) -> dict[str, Any]:
    """A job of 8 ranks and 16 MiB; keys given as None are left out."""
    raw = {"kind": "training", "name": "job-a", "ranks": 8, "bytes": "16 MiB", **keys}
    return {key: value for key, value in raw.items() if value is not None}


def built(shrink: float = 1.0, first_id: int = 0, seed: int = 7, **keys: Any) -> Workload:
    """The tasks of such a job."""
    spec = parse_workload(job(**keys), "workloads[0]")
    return build(spec, FABRIC, seed, shrink, first_id)


def flows(workload: Workload) -> list[Flow]:
    """Its flows, by id."""
    return [task for task in workload.tasks if isinstance(task, Flow)]


def computes(workload: Workload) -> list[Compute]:
    """Its computations, by id."""
    return [task for task in workload.tasks if isinstance(task, Compute)]


def test_ring_all_reduce_of_8_ranks_and_16_mib_is_112_flows_of_2_mib() -> None:
    """The defaults: an all-reduce by a ring, one iteration, class 3 (case F10)."""
    workload = built()
    assert [flow.size_bytes for flow in flows(workload)] == [2 * 2**20] * 112
    assert {flow.dscp for flow in flows(workload)} == {26}
    assert {(flow.src, flow.dst) for flow in flows(workload)} == {
        (f"h{n}", f"h{n % 8 + 1}") for n in range(1, 9)
    }
    assert len(computes(workload)) == 8


def test_exact_tasks_of_a_job_of_2_ranks() -> None:
    """Ids, tags and dependencies of two iterations of an all-reduce between two ranks."""
    workload = built(ranks=2, bytes=101, compute="2 us", iterations=2, first_id=100)
    shown = [
        (task.id, task.tag, task.after, task.size_bytes if isinstance(task, Flow) else "compute")
        for task in workload.tasks
    ]
    assert shown == [
        (100, "i0.r0", (), "compute"),
        (101, "i0.r1", (), "compute"),
        (102, "i0.s0.r0", (100,), 50),
        (103, "i0.s0.r1", (101,), 51),
        (104, "i0.s1.r0", (100, 103), 51),
        (105, "i0.s1.r1", (101, 102), 50),
        (106, "i1.r0", (105,), "compute"),
        (107, "i1.r1", (104,), "compute"),
        (108, "i1.s0.r0", (106,), 50),
        (109, "i1.s0.r1", (107,), 51),
        (110, "i1.s1.r0", (106, 109), 51),
        (111, "i1.s1.r1", (107, 108), 50),
    ]
    assert {task.resource for task in computes(workload)} == {"gpu:job-a:0", "gpu:job-a:1"}
    assert {task.duration_ns for task in computes(workload)} == {2000}


def test_channels_split_each_message_over_queue_pairs() -> None:
    """Every message becomes one flow per channel; the next step waits for all of them."""
    workload = built(ranks=2, bytes=20, channels=3)
    of_step_1 = [flow for flow in flows(workload) if flow.tag.startswith("i0.s1.r0")]
    assert [(f.tag, f.qp, f.size_bytes) for f in of_step_1] == [
        ("i0.s1.r0.c0", 0, 4),
        ("i0.s1.r0.c1", 1, 3),
        ("i0.s1.r0.c2", 2, 3),
    ]
    of_step_0 = tuple(flow.id for flow in flows(workload) if flow.tag.startswith("i0.s0.r1"))
    assert {flow.after for flow in of_step_1} == {(0, *of_step_0)}


def test_shrink_divides_bytes_and_computation() -> None:
    """With shrink 4 a quarter of the bytes, the computation and the start; as many tasks."""
    whole, small = (
        built(shrink, compute="4 us", start="8 us", iterations=2) for shrink in (1.0, 4.0)
    )
    assert len(whole.tasks) == len(small.tasks)
    assert {flow.size_bytes for flow in flows(small)} == {2**19}
    assert {(task.duration_ns, task.start_ns) for task in computes(small)} == {(1000, 2000)}
    assert whole.meta["size_bytes"] == 4 * small.meta["size_bytes"]  # type: ignore[operator]


def test_the_ring_runs_in_lock_step() -> None:
    """In a network where each step takes 1 us, an iteration is computation plus 2(N-1) us."""
    workload = built(ranks=4, bytes=4000, compute="5 us", iterations=3)
    network = IdealNetwork()  # 8 Gbit/s: a chunk of 1000 bytes takes 1 us
    schedule = network.run(workload.tasks)
    assert schedule.finished
    begun = {flow.tag: now_ns for now_ns, flow in network.started}
    for iteration in range(3):
        for step in range(6):
            for rank in range(4):
                wanted = iteration * 11_000 + 5000 + step * 1000
                assert begun[f"i{iteration}.s{step}.r{rank}"] == wanted


def test_a_slow_message_holds_all_ranks_back() -> None:
    """One chunk that is 7 us late delays every rank's end by 7 us: the ring is a barrier."""
    workload = built(ranks=4, bytes=4000)
    schedule = IdealNetwork(extra_ns=lambda flow: 7000 * (flow.tag == "i0.s0.r2")).run(
        workload.tasks
    )
    last_step = [flow.id for flow in flows(workload) if flow.tag.startswith("i0.s5")]
    assert [schedule.times()[number][1] for number in last_step] == [13_000] * 4


@pytest.mark.parametrize(
    ("collective", "algorithm"),
    [
        ("all-reduce", "halving-doubling"),
        ("reduce-scatter", None),
        ("all-gather", None),
        ("all-to-all", "mesh"),
        ("all-to-all", "pairwise"),
        ("broadcast", None),
        ("send-recv", None),
    ],
)
def test_every_collective_runs_to_its_end(collective: str, algorithm: str | None) -> None:
    """Three iterations of each, with a following one never ahead of a rank's last data."""
    workload = built(
        ranks=6, bytes=6000, collective=collective, algorithm=algorithm, iterations=3, channels=2
    )
    schedule = IdealNetwork().run(workload.tasks)
    assert schedule.finished
    times = schedule.times()
    arrived: dict[tuple[int, str], int] = {}
    for flow in flows(workload):
        key = int(flow.tag[1]), flow.dst
        arrived[key] = max(times[flow.id][1], arrived.get(key, 0))
    hosts = workload.meta["ranks"]
    assert isinstance(hosts, list)
    for task in computes(workload):
        iteration, rank = int(task.tag[1]), int(task.tag[4:])
        if iteration:
            assert times[task.id][0] >= arrived.get((iteration - 1, hosts[rank]), 0)


@pytest.mark.parametrize(
    ("keys", "hosts"),
    [
        ({"ranks": 4}, ["h1", "h2", "h3", "h4"]),
        ({"ranks": 4, "placement": "strided"}, ["h1", "h5", "h9", "h13"]),
        ({"ranks": 2, "offset": 3}, ["h4", "h5"]),
        ({"ranks": None, "hosts": ["h9", "h2"]}, ["h9", "h2"]),
        ({"ranks": 2, "hosts": ["h9", "h2"]}, ["h9", "h2"]),
        ({"ranks": None, "placement": ["h3", "h1", "h2"]}, ["h3", "h1", "h2"]),
    ],
)
def test_hosts_of_the_ranks(keys: dict[str, Any], hosts: list[str]) -> None:
    """A number with an order and an offset, or a list under either key."""
    assert built(**keys).meta["ranks"] == hosts


def test_equal_seeds_give_equal_tasks() -> None:
    """A random placement depends on the seed and the name alone."""
    one, two = (built(placement="random", seed=7) for _ in range(2))
    assert one == two
    other = built(placement="random", seed=8)
    assert other.meta["ranks"] != one.meta["ranks"]


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"ranks": 17}, r"workloads\[0\].ranks: 17 asks for more hosts than the 16"),
        ({"ranks": 1}, r"workloads\[0\].ranks: 1 must be at least 2"),
        ({"ranks": None}, "'ranks' is missing"),
        ({"ranks": 3, "hosts": ["h1", "h2"]}, r"ranks: 3 differs from the 2 hosts of workloads"),
        ({"hosts": ["h1"]}, r"hosts: \['h1'\] must have at least 2"),
        ({"ranks": None, "hosts": ["h1", "h2"], "placement": "strided"}, "excludes hosts"),
        ({"ranks": None, "hosts": ["h1", "h2"], "offset": 1}, "excludes hosts"),
        ({"ranks": None, "placement": ["h1", "h2"], "offset": 1}, "excludes placement"),
        ({"bytes": None}, "'bytes' is missing"),
        ({"bytes": "16 M"}, "bytes: '16 M' is ambiguous"),
        ({"bytes": 7}, r"workloads\[0\].bytes: 7 is less than a byte for each of the 8 blocks"),
        ({"bytes": 16, "channels": 3}, "channels: 3 splits messages of 2 bytes"),
        ({"iterations": 0}, "iterations: 0 must be at least 1"),
        ({"compute": "2"}, "compute: '2' has no unit"),
        ({"class": 3, "dscp": 26}, "excludes class"),
        ({"class": 8}, "class: 8 must be at most 7"),
        ({"dscp": 64}, "dscp: 64 must be at most 63"),
        ({"name": "a b"}, "name: 'a b' may contain"),
        ({"plane": 2}, r"plane: 2 is not a plane of the fabric, which has \[1\]"),
    ],
)
def test_impossible_jobs(keys: dict[str, Any], message: str) -> None:
    """Each wrong value is one error with its key path."""
    with pytest.raises(SpecError, match=message):
        built(**keys)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"bites": 5}, "'bites' is not a known key; did you mean 'bytes'"),
        ({"pieces": 5}, "'pieces' is not a known key"),
        ({"collective": "allreduce"}, r"workloads\[0\].collective: .*did you mean 'all-reduce'"),
        ({"algorithm": "tree"}, r"algorithm: 'tree' is not a known algorithm of all-reduce"),
        ({"placement": "stride"}, "placement: 'stride' is not a known placement"),
        ({"kind": "trainning"}, "'trainning' is not a known kind of workload; did you mean"),
        ({"ranks": None, "hosts": ["h1", "h99"]}, "'h99' is not a known host"),
    ],
)
def test_unknown_names(keys: dict[str, Any], message: str) -> None:
    """Unknown keys and names list what is known; a key without effect is unknown."""
    with pytest.raises(UnknownNameError, match=message):
        built(**keys)


def test_class_and_dscp() -> None:
    """`class: 5` is the class selector 40; `dscp` is taken as it is."""
    assert {flow.dscp for flow in flows(built(**{"class": 5}))} == {40}
    assert {flow.dscp for flow in flows(built(dscp=46))} == {46}


def test_pieces_of_a_broadcast() -> None:
    """A chain of 4 ranks with 5 pieces has 15 messages."""
    workload = built(ranks=4, collective="broadcast", pieces=5)
    assert len(flows(workload)) == 15


def test_shrink_below_one_is_refused() -> None:
    """Shrink divides, it does not multiply."""
    with pytest.raises(SpecError, match=r"shrink: 0\.5 must be at least 1"):
        built(shrink=0.5)


def test_a_job_shrunk_to_nothing_names_the_way_out() -> None:
    """A size that shrinks below a byte per block is an error that mentions shrink."""
    with pytest.raises(SpecError, match=r"bytes: 4 is less .* raise bytes, or lower shrink"):
        built(shrink=4e6)
