"""Who paused whom: the pauses of a run as trees that begin where the congestion was.

A switch pauses its peers when it cannot get rid of what they send; a host when it is slow. So a
node that pauses others and is not paused itself is where a tree begins, and below each queue that
is paused come those that its switch paused in turn.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from emulator.results import format as fmt
from emulator.results.columns import PAUSE, RESUME, STORM
from emulator.results.reader import Table

HEADER = ("paused queue", "class", "by", "pauses", "of the time", "longest", "storms")
MAX_ROWS = 60
_INDENT = "\u2003"
_BY = "by "

Key = tuple[str, int]


@dataclass
class Pauses:
    """All pauses of one class of one port.

    Attributes:
        port: whose queue it is.
        tc: its class.
        by: the port that paused it.
        count: how often.
        paused_ns: for how long in all.
        longest_ns: the longest.
        storms: how often the watchdog ended one.
    """

    port: str
    tc: int
    by: str
    count: int = 0
    paused_ns: int = 0
    longest_ns: int = 0
    storms: int = 0

    @property
    def node(self) -> str:
        """Whose port it is."""
        return self.port.rpartition("-")[0]

    @property
    def cause(self) -> str:
        """The node that paused."""
        return self.by.rpartition("-")[0]


def found(events: Table, end_ns: int) -> list[Pauses]:
    """The pauses in events.csv; those that have not ended, end with the run."""
    every: dict[Key, Pauses] = {}
    open_since: dict[Key, int] = {}
    times, tcs = events.numbers("time_ns"), events.numbers("tc")
    for at, kind in enumerate(events.text("kind")):
        if kind not in (PAUSE, RESUME, STORM):
            continue
        key = events.text("port")[at], int(tcs[at])
        by = events.text("detail")[at].removeprefix(_BY)
        entry = every.setdefault(key, Pauses(*key, by))
        entry.storms += kind == STORM
        if kind == PAUSE:
            entry.count += 1
            open_since[key] = int(times[at])
        elif key in open_since:
            _end(entry, int(times[at]) - open_since.pop(key))
    for key, since_ns in open_since.items():
        _end(every[key], max(0, end_ns - since_ns))
    return sorted(every.values(), key=lambda one: (-one.paused_ns, one.port, one.tc))


def _end(entry: Pauses, span_ns: int) -> None:
    entry.paused_ns += span_ns
    entry.longest_ns = max(entry.longest_ns, span_ns)


def rows(pauses: Sequence[Pauses], words: Mapping[str, str], span_ns: int) -> list[list[str]]:
    """Rows of the table, indented as the trees are; the tail is summed up in one row.

    Args:
        pauses: as `found` gives them.
        words: port -> how to call it.
        span_ns: length of the run.
    """
    ordered = list(_trees(pauses))
    shown = [
        [
            _INDENT * depth + words.get(one.port, one.port), f"TC{one.tc}",
            words.get(one.by, one.by), fmt.count(one.count),
            fmt.percent(fmt.share(one.paused_ns, span_ns)), fmt.duration_ns(one.longest_ns),
            fmt.count(one.storms),
        ]
        for depth, one in ordered[:MAX_ROWS]
    ]  # fmt: skip
    rest = [one for _, one in ordered[MAX_ROWS:]]
    if rest:
        pauses_of_rest = fmt.count(sum(one.count for one in rest))
        storms = fmt.count(sum(one.storms for one in rest))
        shown.append([f"{len(rest)} more queues", "", "", pauses_of_rest, "", "", storms])
    return shown


def _trees(pauses: Sequence[Pauses]) -> Iterator[tuple[int, Pauses]]:
    """(depth, pauses) of every queue once, those of a node below what paused the node."""
    paused = {(one.node, one.tc) for one in pauses}
    roots = [one for one in pauses if (one.cause, one.tc) not in paused]
    left = {(one.port, one.tc): one for one in pauses}
    # What is in a circle has no root; it begins where the most time was lost.
    for start in [*roots, *pauses]:
        stack = [(0, start)]
        while stack:
            depth, one = stack.pop()
            if left.pop((one.port, one.tc), None) is None:
                continue
            yield depth, one
            below = [p for p in pauses if (p.cause, p.tc) == (one.node, one.tc)]
            stack += [(depth + 1, inner) for inner in reversed(below)]
