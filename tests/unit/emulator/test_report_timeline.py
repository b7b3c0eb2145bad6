"""The training timeline out of flows.csv and computes.csv."""

from __future__ import annotations

from pathlib import Path

import pytest

from emulator.report.timeline import Timeline, timelines
from emulator.results import columns
from emulator.results.reader import Table


def table(name: str, rows: list[dict[str, object]]) -> Table:
    """A table of rows that give the columns that matter."""
    names = columns.CSV_TABLES[name]
    return Table(
        Path(f"{name}.csv"), {key: [str(row.get(key, "")) for row in rows] for key in names}
    )


def flow(
    tag: str, src: str, start: int | str, done: int | str, job: str = "j"
) -> dict[str, object]:
    """A flow that was ready when it started."""
    return {"job": job, "tag": tag, "src": src, "ready_ns": start, "done_ns": done}


def compute(tag: str, start: int, done: int | str, job: str = "j") -> dict[str, object]:
    """A computation."""
    return {
        "job": job, "tag": tag, "resource": f"gpu:{tag}", "start_ns": start, "done_ns": done,
    }  # fmt: skip


def only(flows: list[dict[str, object]], computes: list[dict[str, object]]) -> Timeline:
    """The single job's timeline."""
    found = timelines(table("flows", flows), table("computes", computes))
    assert len(found) == 1
    return found[0]


def test_rows_are_ranks_with_their_hosts() -> None:
    """Computations and flows of a rank share a row; ranks are in the order of numbers."""
    job = only(
        [flow("i0.s0.r10", "h3", 4, 6), flow("i0.s0.r2", "h7", 4, 9)],
        [compute("i0.r2", 0, 4), compute("i0.r10", 0, 3)],
    )
    assert [row.label for row in job.rows] == ["r2 (h7)", "r10 (h3)"]
    assert job.rows[0].compute == [(0, 4)]
    assert job.rows[0].comm == [(4, 9)]


def test_channels_and_steps_of_a_rank_are_united() -> None:
    """Several queue pairs and steps without a gap are one bar."""
    job = only(
        [
            flow("i0.s0.r0.c0", "h1", 0, 5),
            flow("i0.s0.r0.c1", "h1", 1, 6),
            flow("i0.s1.r0.c0", "h1", 6, 8),
            flow("i0.s2.r0.c0", "h1", 9, 10),
        ],
        [],
    )
    assert job.rows[0].comm == [(0, 8), (9, 10)]


def test_transmission_starts_with_the_first_packet() -> None:
    """Where the first packet's time is known it counts, else the moment of readiness."""
    row = flow("i0.s0.r0", "h1", 0, 5) | {"first_tx_ns": 2}
    assert only([row], []).rows[0].comm == [(2, 5)]


def test_iterations_follow_each_other() -> None:
    """An iteration lasts from the end of the one before to its own last data, times shrink."""
    job = only(
        [
            flow("i0.s0.r0", "h1", 4, 10), flow("i0.s0.r1", "h2", 4, 12),
            flow("i1.s0.r0", "h1", 14, 20), flow("i1.s0.r1", "h2", 15, 25),
        ],
        [compute("i0.r0", 1, 4), compute("i1.r0", 10, 14)],
    )  # fmt: skip
    assert job.iterations == {0: (1, 12), 1: (12, 25)}
    assert job.durations_ms(1e6) == {0: 11.0, 1: 13.0}


def test_unfinished_iterations_do_not_count() -> None:
    """A task without an end makes its iteration incomplete; it is drawn to the end of the run."""
    flows = [
        flow("i0.s0.r0", "h1", 0, 10),
        flow("i1.s0.r0", "h1", 10, ""),
        flow("i1.s0.r1", "h2", 10, 30),
    ]
    job = only(flows, [])
    assert list(job.iterations) == [0]
    assert job.unfinished == 1
    assert job.rows[0].comm == [(0, 30)]


def test_tasks_that_never_started_are_left_out() -> None:
    """A flow that was never ready has no bar."""
    job = only([flow("i0.s0.r0", "h1", 0, 10), flow("i1.s0.r0", "h1", "", "")], [])
    assert job.rows[0].comm == [(0, 10)]


@pytest.mark.parametrize("tag", ["q3.kv", "n5", "", "wi3.s2.r1", "i.r", "spin3.r1x"])
def test_other_tags_are_no_training(tag: str) -> None:
    """Flows of inference and background are not drawn as ranks."""
    assert timelines(table("flows", [flow(tag, "h1", 0, 1)]), table("computes", [])) == []


def test_jobs_are_kept_apart_and_can_be_chosen() -> None:
    """Two jobs are two timelines; only the named ones are taken."""
    flows = table("flows", [flow("i0.s0.r0", "h1", 0, 1, "a"), flow("i0.s0.r0", "h2", 0, 1, "b")])
    nothing = table("computes", [])
    assert [job.job for job in timelines(flows, nothing)] == ["a", "b"]
    assert [job.job for job in timelines(flows, nothing, ["b"])] == ["b"]
    assert timelines(flows, nothing, []) == []
