"""The schedule: what may start when, and what it refuses."""

from __future__ import annotations

import pytest

from topologies.errors import SpecError
from traffic.schedule import Schedule
from traffic.tasks import Compute, Flow, Task


def flow(number: int, after: tuple[int, ...] = (), **keys: int) -> Flow:
    """A flow of 1000 bytes from h1 to h2."""
    return Flow(number, "job", "h1", "h2", 1000, 26, f"f{number}", after=after, **keys)


def compute(
    number: int, duration_ns: int, resource: str = "gpu", after: tuple[int, ...] = (), **keys: int
) -> Compute:
    """A computation."""
    return Compute(number, "job", resource, duration_ns, f"c{number}", after=after, **keys)


def started(*tasks: Task, now_ns: int = 0) -> Schedule:
    """A schedule of these tasks that has started."""
    schedule = Schedule(tasks)
    schedule.start(now_ns)
    return schedule


def ids(flows: list[Flow]) -> list[int]:
    """Ids in order."""
    return [entry.id for entry in flows]


def test_a_flow_starts_when_all_it_waits_for_has_arrived() -> None:
    """A flow with two dependencies is returned after the second one, once only."""
    schedule = started(flow(1), flow(2), flow(3, after=(1, 2)))
    assert ids(schedule.ready(0)) == [1, 2]
    schedule.flow_done(1, 10)
    assert ids(schedule.ready(20)) == []
    schedule.flow_done(2, 30)
    assert ids(schedule.ready(30)) == [3]
    assert ids(schedule.ready(40)) == []


def test_start_and_delay_hold_a_flow_back() -> None:
    """A flow is ready `delay_ns` after its dependencies and never before `start_ns`."""
    schedule = started(flow(1), flow(2, after=(1,), delay_ns=50), flow(3, after=(1,), start_ns=500))
    schedule.ready(0)
    schedule.flow_done(1, 100)
    assert schedule.next_event_ns() == 150
    assert ids(schedule.ready(149)) == []
    assert ids(schedule.ready(499)) == [2]
    assert ids(schedule.ready(500)) == [3]
    assert [schedule.ready_ns(number) for number in (1, 2, 3)] == [0, 150, 500]


def test_a_delay_without_dependencies_counts_from_the_start() -> None:
    """`delay_ns` of a first task is counted from the run's start."""
    schedule = started(flow(1, delay_ns=40), now_ns=100)
    assert schedule.next_event_ns() == 140


def test_one_computation_at_a_time_per_resource() -> None:
    """Two computations of one resource run one after the other, on two resources at once."""
    schedule = started(
        compute(1, 100), compute(2, 100), compute(3, 100, "other"), compute(4, 100, ""),
        compute(5, 100, ""),
    )  # fmt: skip
    schedule.ready(1000)
    assert schedule.times() == {1: (0, 100), 2: (100, 200), 3: (0, 100), 4: (0, 100), 5: (0, 100)}


def test_a_resource_serves_in_order_of_readiness() -> None:
    """The computation that became ready first runs first, whatever its id."""
    schedule = started(compute(9, 100), compute(1, 10, start_ns=60), compute(5, 10, start_ns=50))
    schedule.ready(1000)
    assert schedule.times() == {9: (0, 100), 5: (100, 110), 1: (110, 120)}


def test_model_times_do_not_depend_on_how_often_it_is_asked() -> None:
    """A chain of computations has the same times when polled once late or at every event."""
    tasks = [compute(n, 7 * n + 1, after=(n - 1,) if n else (), delay_ns=n) for n in range(20)]
    late, often = started(*tasks), started(*tasks)
    late.ready(10_000)
    while (now_ns := often.next_event_ns()) is not None:
        often.ready(now_ns)
    assert late.times() == often.times()
    assert late.finished
    assert often.finished


def test_a_report_may_come_later_than_what_it_reports() -> None:
    """A flow's arrival in the past makes its successor ready at that past time, at once."""
    schedule = started(flow(1), compute(2, 100, after=(1,)), flow(3, after=(2,)))
    schedule.ready(0)
    schedule.ready(900)
    schedule.flow_done(1, 300)
    assert schedule.next_event_ns() == 300
    assert ids(schedule.ready(900)) == [3]
    assert schedule.times()[2] == (300, 400)
    assert schedule.ready_ns(3) == 400


def test_a_late_report_does_not_overlap_a_running_computation() -> None:
    """A computation whose readiness is reported late begins when the resource is free again."""
    schedule = started(flow(1), compute(2, 10, after=(1,)), compute(3, 100, start_ns=40))
    schedule.ready(200)
    schedule.flow_done(1, 30)
    schedule.ready(200)
    assert schedule.times()[3] == (40, 140)
    assert schedule.times()[2] == (140, 150)


def test_the_same_dependency_twice_counts_once() -> None:
    """A repeated id in `after` does not hold a task back for ever."""
    schedule = started(flow(1), flow(2, after=(1, 1)))
    schedule.ready(0)
    schedule.flow_done(1, 5)
    assert ids(schedule.ready(5)) == [2]


def test_unfinished_tasks_are_named() -> None:
    """What is not done, and what is under way, can be asked for at any time."""
    schedule = started(flow(1), flow(2, after=(1,)), compute(3, 10))
    schedule.ready(50)
    assert not schedule.finished
    assert schedule.unfinished() == [1, 2]
    assert schedule.under_way() == [1]
    schedule.flow_done(1, 60)
    schedule.ready(60)
    schedule.flow_done(2, 70)
    assert schedule.finished
    assert schedule.unfinished() == []


def test_finished_computations_are_handed_out_once() -> None:
    """`pop_computes` gives each finished computation with its times exactly once."""
    schedule = started(compute(1, 10), compute(2, 10))
    schedule.ready(10)
    assert [(task.id, begin, end) for task, begin, end in schedule.pop_computes()] == [(1, 0, 10)]
    schedule.ready(20)
    assert [(task.id, begin, end) for task, begin, end in schedule.pop_computes()] == [(2, 10, 20)]
    assert schedule.pop_computes() == []


def test_a_schedule_without_tasks_is_finished() -> None:
    """No tasks: finished, nothing to wait for."""
    schedule = started()
    assert schedule.finished
    assert schedule.next_event_ns() is None


@pytest.mark.parametrize("number", [2, 7])
def test_reporting_a_flow_that_is_not_under_way_is_an_error(number: int) -> None:
    """A flow that has not been returned, or does not exist, cannot be done."""
    schedule = started(flow(1), flow(2, after=(1,)))
    schedule.ready(0)
    with pytest.raises(ValueError, match=f"flow {number} is not under way"):
        schedule.flow_done(number, 10)


def test_a_flow_is_done_once() -> None:
    """A second report of the same flow is an error."""
    schedule = started(flow(1))
    schedule.ready(0)
    schedule.flow_done(1, 10)
    with pytest.raises(ValueError, match="not under way"):
        schedule.flow_done(1, 11)


def test_a_schedule_starts_once() -> None:
    """A second start would run everything twice and is an error."""
    schedule = started(flow(1))
    with pytest.raises(ValueError, match="once"):
        schedule.start(0)


@pytest.mark.parametrize(
    ("tasks", "message"),
    [
        ([flow(1), flow(1)], r"tasks\[1\]: 1 is the id of two tasks"),
        ([flow(1, after=(8,))], r"tasks\[1\].after: 8 is not the id of a task"),
        ([flow(1, after=(1,))], r"tasks\[1\].after: \[1\] is a cycle"),
        ([flow(1, start_ns=-1)], r"tasks\[1\].start_ns: -1 must be at least 0"),
        ([flow(1, delay_ns=-1)], r"tasks\[1\].delay_ns: -1 must be at least 0"),
        ([compute(1, -1)], r"tasks\[1\].duration_ns: -1 must be at least 0"),
        ([Flow(1, "j", "h1", "h2", 0, 26, "")], r"tasks\[1\].size_bytes: 0 must be at least 1"),
        ([Flow(1, "j", "h1", "h1", 9, 26, "")], r"tasks\[1\].dst: 'h1' must differ"),
        ([Flow(1, "j", "h1", "h2", 9, 64, "")], r"tasks\[1\].dscp: 64 must be between 0 and 63"),
    ],
)
def test_wrong_tasks_are_refused(tasks: list[Task], message: str) -> None:
    """Duplicate ids, unknown dependencies, cycles and impossible values raise `SpecError`."""
    with pytest.raises(SpecError, match=message):
        Schedule(tasks)


def test_a_cycle_is_shown_without_the_tasks_that_only_wait_for_it() -> None:
    """The error lists the tasks of the cycle itself, in the order in which they wait."""
    tasks = [flow(1), flow(2, (1, 4)), flow(3, (2,)), flow(4, (3,)), flow(5, (4,))]
    with pytest.raises(SpecError) as caught:
        Schedule(tasks)
    assert caught.value.value in ([2, 3, 4], [3, 4, 2], [4, 2, 3])


def test_flows_share_a_connection_by_job_plane_hosts_and_queue_pair() -> None:
    """The connection's key does not contain what differs between messages."""
    one, two = flow(1), flow(2, after=(1,))
    other = Flow(3, "job", "h1", "h2", 1000, 26, "f3", qp=1)
    assert one.connection == two.connection
    assert one.connection != other.connection
