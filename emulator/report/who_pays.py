"""What a comparison says in sentences: what to beware of, and who pays what. PURE."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from emulator.report.comparison import Compared, Figure
from emulator.results import format as fmt

_BY_CLOCK = ("clock", "dilation", "budget")
"""Keys of an experiment that the clock decides, or that only say how long a run may take."""


def cautions(runs: Sequence[Compared]) -> list[str]:
    """What a reader must know before believing a difference."""
    found = [
        f"{run.label} is INVALID ({'; '.join(run.summary['reasons'])}): do not rely on its "
        "figures or on differences against them."
        for run in runs
        if not run.valid
    ]
    same = (
        ("have different workloads (hash of the schedule)", lambda x: x["hashes"]["schedule"]),
        ("were shrunk differently", lambda x: x["shrink"]),
        ("have different seeds", lambda x: x["seed"]),
    )
    unlike = [words for words, value in same if _unlike(runs, value)]
    # The live clock needs a dilation that the virtual one does without.
    clocks = {_clock(run) for run in runs}
    by_clock = [[run for run in runs if _clock(run) == clock] for clock in clocks]
    if any(_unlike(members, lambda x: x["dilation"]) for members in by_clock):
        unlike.append("were dilated differently")
    return found + [
        f"The runs {words}: part of a difference may come from that." for words in unlike
    ]


def _unlike(runs: Sequence[Compared], value: Callable[[Mapping[str, Any]], object]) -> bool:
    return len({value(run.summary) for run in runs} - {None}) > 1


def _clock(run: Compared) -> str:
    return str(run.summary["clock"])


def sentences(runs: Sequence[Compared], rows: Sequence[Figure]) -> list[str]:
    """Who pays what: a sentence on each workload and on loss for every run but the first.

    A run is set against the first one under its clock, else against the first of all; where two
    differ by nothing but the clock, nobody pays.
    """
    found = []
    for at in range(1, len(runs)):
        base = next((i for i in range(at) if _clock(runs[i]) == _clock(runs[at])), 0)
        if _clock(runs[base]) == _clock(runs[at]) or likeness(runs[base]) != likeness(runs[at]):
            found.append(_sentence(runs, rows, at, base))
    return found


def likeness(run: Compared) -> str:
    """Equal for runs that differ only by the clock, or not at all."""
    summary = run.summary
    spec: dict[str, Any] = {
        key: value for key, value in run.run.spec().items() if key not in _BY_CLOCK
    }
    spec["shrink"] = summary["shrink"]
    parts = [spec, summary["seed"], summary["hashes"]["schedule"]]
    return json.dumps(parts, sort_keys=True, default=str)


_HEADLINES = {
    "iteration, mean": "an iteration",
    "TTFT p99": "the slowest 1 % of first tokens",
    "flow completion p50": "a flow",
}


def _sentence(runs: Sequence[Compared], rows: Sequence[Figure], at: int, base: int) -> str:
    main = [
        row
        for row in rows
        if row.name in _HEADLINES and None not in (row.values[base], row.values[at])
    ]
    parts = [_change_words(row, at, base) for row in main] + _loss_words(rows, at, base)
    text = (
        f"{runs[at].shown} against {runs[base].shown}: {'; '.join(parts) or 'nothing in common'}."
    )
    if not (runs[base].valid and runs[at].valid):
        return f"{text} Not both runs are VALID, so who pays stays open."
    return f"{text} {_payers(main, at, base)}".rstrip()


def _change_words(row: Figure, at: int, base: int) -> str:
    what = _HEADLINES[row.name]
    verdict, first, value = row.judge(at, base), row.values[base], row.values[at]
    if verdict == 0 or not first or value is None:
        return f"{row.group}: {what} as before ({row.show(value)})"
    ratio = value / first
    span = f"{row.show(first)} to {row.show(value)}"
    if ratio >= 2:
        return f"{row.group}: {what} takes {fmt.significant(ratio, 2)} times as long ({span})"
    word = "less" if verdict > 0 else "more"
    return f"{row.group}: {what} takes {fmt.percent(abs(ratio - 1))} {word} time ({span})"


def _loss_words(rows: Sequence[Figure], at: int, base: int) -> list[str]:
    dropped = next((row for row in rows if (row.group, row.name) == ("packets", "dropped")), None)
    if dropped is None or dropped.values[base] is None or dropped.values[at] is None:
        return []
    first, value = dropped.show(dropped.values[base]), dropped.show(dropped.values[at])
    if first == value:
        return [f"dropped packets stay at {value}"]
    return [f"dropped packets go from {first} to {value}"]


def _payers(main: Sequence[Figure], at: int, base: int) -> str:
    pay = [row.group for row in main if row.judge(at, base) < 0]
    gain = [row.group for row in main if row.judge(at, base) > 0]
    if not main:
        return ""
    if not pay:
        return f"Nobody pays; {_and(gain)} gain{_s(gain)}." if gain else "Nobody pays or gains."
    gained = f"{_and(gain)} gain{_s(gain)}" if gain else "nobody gains"
    return f"{_and(pay)} pay{_s(pay)}; {gained}."


def _and(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _s(names: Sequence[str]) -> str:
    return "s" if len(names) == 1 else ""
