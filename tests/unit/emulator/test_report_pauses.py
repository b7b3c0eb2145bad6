"""Who paused whom: totals out of events, and the order of the trees."""

from __future__ import annotations

from pathlib import Path

from emulator.report import pauses
from emulator.report.pauses import Pauses, found, rows
from emulator.results import columns
from emulator.results.reader import Table

WORDS = {"h1-eth1": "h1 to leaf1"}


def table(*events: tuple[int, str, str, str]) -> Table:
    """events.csv of (time, kind, port, detail), all of class 3."""
    names = columns.CSV_TABLES["events"]
    lines = [
        {"time_ns": str(at), "kind": kind, "port": port, "tc": "3", "detail": detail,
         "node": port.split("-")[0], "value": "7"}
        for at, kind, port, detail in events
    ]  # fmt: skip
    return Table(Path("events.csv"), {name: [line[name] for line in lines] for name in names})


def queue(port: str, by: str, paused_ns: int = 100) -> Pauses:
    """A queue that was paused once."""
    return Pauses(port, 3, by, 1, paused_ns, paused_ns)


def test_pauses_are_summed_up() -> None:
    """How often, how long, the longest; other events do not matter."""
    events = table(
        (100, "pause", "h1-eth1", "by leaf1-eth1"), (150, "resume", "h1-eth1", "by leaf1-eth1"),
        (160, "drop", "h1-eth1", ""), (300, "pause", "h1-eth1", "by leaf1-eth1"),
        (320, "resume", "h1-eth1", "by leaf1-eth1"),
    )  # fmt: skip
    assert found(events, 1_000) == [Pauses("h1-eth1", 3, "leaf1-eth1", 2, 70, 50, 0)]


def test_a_pause_that_has_not_ended_ends_with_the_run() -> None:
    """And one that the watchdog ended, then."""
    events = table(
        (100, "pause", "leaf1-eth1", "by h1-eth1"), (400, "storm", "leaf1-eth1", "watchdog drops"),
        (700, "pause", "h2-eth1", "by leaf1-eth2"), (900, "restore", "leaf1-eth1", "by h1-eth1"),
    )  # fmt: skip
    assert found(events, 800) == [
        Pauses("leaf1-eth1", 3, "h1-eth1", 1, 300, 300, 1),
        Pauses("h2-eth1", 3, "leaf1-eth2", 1, 100, 100, 0),
    ]


def test_a_tree_begins_at_the_node_that_was_not_paused() -> None:
    """Below a paused queue stand those that its switch paused in turn."""
    spread = [
        queue("h1-eth1", "leaf1-eth1", 90), queue("spine1-eth2", "leaf2-eth3", 80),
        queue("leaf1-eth3", "spine1-eth1", 70), queue("h2-eth1", "leaf1-eth2", 60),
    ]  # fmt: skip
    shown = rows(spread, WORDS, 200)
    assert [row[0] for row in shown] == [
        "spine1-eth2", "\u2003leaf1-eth3", "\u2003\u2003h1 to leaf1", "\u2003\u2003h2-eth1",
    ]  # fmt: skip
    assert shown[0] == ["spine1-eth2", "TC3", "leaf2-eth3", "1", "40 %", "80 ns", "0"]


def test_classes_have_trees_of_their_own() -> None:
    """A pause of one class does not explain that of another."""
    other = queue("h1-eth1", "leaf1-eth1", 50)
    other.tc = 4
    shown = rows([queue("leaf1-eth3", "spine1-eth1", 90), other], {}, 200)
    assert [row[0] for row in shown] == ["leaf1-eth3", "h1-eth1"]


def test_a_circle_is_shown_once() -> None:
    """Queues that wait for each other have no beginning; a deadlock looks so."""
    circle = [queue("a-eth1", "b-eth1", 90), queue("b-eth2", "c-eth1"), queue("c-eth2", "a-eth2")]
    shown = rows(circle, {}, 200)
    assert sorted(row[0].strip() for row in shown) == ["a-eth1", "b-eth2", "c-eth2"]
    assert shown[0][0] == "a-eth1"


def test_many_queues_are_cut_short() -> None:
    """The rest stands in one row."""
    many = [queue(f"h{n}-eth1", f"leaf1-eth{n}") for n in range(1, pauses.MAX_ROWS + 4)]
    shown = rows(many, {}, 200)
    assert len(shown) == pauses.MAX_ROWS + 1
    assert shown[-1] == ["3 more queues", "", "", "3", "", "", "0"]


def test_no_pauses_no_rows() -> None:
    """The page then has no such section."""
    assert rows(found(table(), 100), {}, 100) == []
