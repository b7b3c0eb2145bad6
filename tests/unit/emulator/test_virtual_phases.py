"""Where the wall time of a guest went."""

from __future__ import annotations

import pytest

from emulator.clock.virtual import phases

STEPS = [
    ("guest is up", 0.5),
    ("dilation 1, shrink 1: the traffic takes about 1 s", 1.5),
    ("namespaces", 2.0),
    ("links", 2.5),
    ("sending", 3.0),
    ("taking the fabric down", 8.0),
    ("end", 8.25),
]


def test_every_second_belongs_to_one_phase() -> None:
    """In order; together they are the whole time."""
    taken = phases.durations_s(STEPS)
    assert list(taken) == [
        "boot", "imports", "fabric: namespaces, controller's imports", "fabric: links", "traffic",
        "end",
    ]  # fmt: skip
    assert list(taken.values()) == [0.5, 1.5, 0.5, 0.5, 5.0, 0.25]
    assert sum(taken.values()) == STEPS[-1][1]


def test_a_step_that_begins_no_phase_belongs_to_the_one_before() -> None:
    """Whatever it says."""
    without = [step for step in STEPS if not step[0].startswith("dilation")]
    assert phases.durations_s(STEPS) == phases.durations_s(without)


def test_a_phase_that_comes_twice_adds_up() -> None:
    """A run may begin a step again."""
    steps = [("links", 1.0), ("namespaces", 2.0), ("links", 4.0), ("end", 7.0)]
    assert phases.durations_s(steps)["fabric: links"] == 1.0 + 3.0


def test_a_guest_that_says_nothing_only_booted() -> None:
    """All of its time was that."""
    assert phases.durations_s([("end", 3.0)]) == {"boot": 3.0}
    assert phases.durations_s([]) == {}


def test_people_read_how_long_it_took_to_the_first_packet() -> None:
    """Every phase in a column, then the sum of those before the traffic."""
    lines = phases.lines(phases.durations_s(STEPS))
    assert len(lines) == 7
    assert lines[0].split() == ["boot", "0.50", "s"]
    assert len({line.rindex(" s") for line in lines[:-1]}) == 1
    assert lines[-1] == "first packet after 3.00 s of wall time"


@pytest.mark.parametrize("taken", [{}, {"boot": 2.0}])
def test_a_guest_that_never_sent_has_a_sum_too(taken: dict[str, float]) -> None:
    """Of what there was."""
    total = sum(taken.values())
    assert phases.lines(taken)[-1] == f"first packet after {total:.2f} s of wall time"
