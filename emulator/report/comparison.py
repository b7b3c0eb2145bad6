"""Several runs side by side: labels, figures, changes against the first. PURE."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from emulator.results import format as fmt
from emulator.results.reader import RunReader
from emulator.results.summary import VALID
from topologies.errors import SpecError

LOWER, HIGHER = "lower", "higher"
NOTICEABLE = 0.01
"""Changes below one per cent are called unchanged."""

Show = Callable[[float | None], str]


@dataclass(frozen=True)
class Compared:
    """One run of a comparison.

    Attributes:
        label: short name, unique in the comparison.
        run: its folder.
        summary: its summary.json.
    """

    label: str
    run: RunReader
    summary: Mapping[str, Any]

    @property
    def valid(self) -> bool:
        """True when its verdict is VALID."""
        return bool(self.summary["verdict"] == VALID)

    @property
    def shown(self) -> str:
        """The label, with the mark that an invalid run carries everywhere."""
        return self.label if self.valid else f"{self.label} (INVALID)"


def label_runs(runs: Sequence[RunReader]) -> list[Compared]:
    """Runs with the shortest labels that tell them apart.

    Raises:
        SpecError: fewer than two runs, or one of them twice.
    """
    paths = [run.path.resolve() for run in runs]
    if len(set(paths)) < len(paths):
        twice = next(path for path in paths if paths.count(path) > 1)
        raise SpecError("runs", str(twice), "is given twice", "compare different runs")
    if len(runs) < 2:
        raise SpecError("runs", len(runs), "must be at least 2 runs", "give two run folders")
    complete = [(run, run.summary) for run in runs if run.summary is not None]
    labels = _labels(complete)
    return [Compared(label, *pair) for label, pair in zip(labels, complete, strict=True)]


def _labels(runs: Sequence[tuple[RunReader, Mapping[str, Any]]]) -> list[str]:
    keys: tuple[Callable[[RunReader, Mapping[str, Any]], str], ...] = (
        lambda run, _: str(run.manifest.get("label") or ""),
        lambda _, summary: str(summary["profile"] or ""),
        lambda _, summary: str(summary["name"]),
        lambda _, summary: f"{summary['clock']} clock",
        lambda _, summary: f"{summary['profile']}, {summary['policy']}",
        lambda _, summary: f"{summary['name']}, {summary['profile']}",
        lambda _, summary: f"{summary['profile']}, {summary['clock']} clock",
        lambda _, summary: f"{summary['profile']}, seed {summary['seed']}",
        lambda run, summary: f"{summary['profile']}, run {run.manifest.get('run')}",
    )
    for key in keys:
        labels = [key(*run) for run in runs]
        if all(labels) and len(set(labels)) == len(labels):
            return labels
    return [run.path.name for run, _ in runs]


@dataclass(frozen=True)
class Figure:
    """One row of the comparison.

    Attributes:
        group: the workload, class or ``packets`` that it is about.
        name: what it is.
        unit: of `values`, for the CSV file.
        better: which direction is better, or "" for neither.
        values: one per run; None where a run has none.
        show: number -> text with a unit.
    """

    group: str
    name: str
    unit: str
    better: str
    values: tuple[float | None, ...]
    show: Show

    def changes(self) -> list[float | None]:
        """Relative change of each run against the first; None where that has no meaning."""
        first = self.values[0]
        return [None if value is None or not first else value / first - 1 for value in self.values]

    def judge(self, at: int, base: int = 0) -> int:
        """1 when run `at` is noticeably better than run `base`, -1 when worse, else 0."""
        first, value = self.values[base], self.values[at]
        if first is None or value is None or not self.better:
            return 0
        if abs(value - first) <= NOTICEABLE * abs(first):
            return 0
        return 1 if (value < first) == (self.better == LOWER) else -1


@dataclass(frozen=True)
class _Key:
    """Where a figure stands in a part of the summary."""

    path: str
    name: str
    unit: str
    better: str
    show: Show


_TRAINING = (
    _Key("iteration_ms.mean", "iteration, mean", "ms", LOWER, fmt.duration_ms),
    _Key("iteration_ms.p99", "iteration, p99", "ms", LOWER, fmt.duration_ms),
    _Key("busbw_gbps", "bus bandwidth", "Gbit/s", HIGHER, fmt.rate_gbps),
    _Key("comm_fraction", "communication share", "fraction", LOWER, fmt.percent),
    _Key("gpu_busy_fraction", "GPU busy", "fraction", HIGHER, fmt.percent),
)
_INFERENCE = (
    _Key("ttft_ms.p50", "TTFT p50", "ms", LOWER, fmt.duration_ms),
    _Key("ttft_ms.p99", "TTFT p99", "ms", LOWER, fmt.duration_ms),
    _Key("tpot_ms.p50", "TPOT p50", "ms", LOWER, fmt.duration_ms),
    _Key("tpot_ms.p99", "TPOT p99", "ms", LOWER, fmt.duration_ms),
    _Key("kv_transfer_ms.p50", "KV transfer p50", "ms", LOWER, fmt.duration_ms),
    _Key("kv_transfer_ms.p99", "KV transfer p99", "ms", LOWER, fmt.duration_ms),
    _Key("slo_met_fraction", "SLO met", "fraction", HIGHER, fmt.percent),
    _Key("goodput_rps", "requests within SLO", "1/s", HIGHER, fmt.significant),
    _Key("failed", "requests failed", "requests", LOWER, fmt.count),
)
_BACKGROUND = (
    _Key("goodput_gbps", "goodput", "Gbit/s", HIGHER, fmt.rate_gbps),
    _Key("fct_ms.p50", "flow completion p50", "ms", LOWER, fmt.duration_ms),
    _Key("fct_ms.p99", "flow completion p99", "ms", LOWER, fmt.duration_ms),
)
_PROBES = (
    _Key("lost/sent", "probe loss", "fraction", LOWER, fmt.percent),
    _Key("latency_us.p50", "probe latency p50", "us", LOWER, fmt.duration_us),
    _Key("latency_us.p99", "probe latency p99", "us", LOWER, fmt.duration_us),
    _Key("latency_us.p999", "probe latency p99.9", "us", LOWER, fmt.duration_us),
)
_WORKLOADS = (("training", _TRAINING), ("inference", _INFERENCE), ("background", _BACKGROUND))
_PACKETS = (
    _Key("packets.dropped/sent", "dropped", "fraction", LOWER, fmt.percent),
    _Key("packets.trimmed/sent", "trimmed", "fraction", "", fmt.percent),
    _Key("packets.marked/sent", "marked", "fraction", "", fmt.percent),
    _Key("packets.retransmitted/sent", "retransmitted", "fraction", LOWER, fmt.percent),
    _Key("pfc.paused_fraction", "time paused", "fraction", "", fmt.percent),
)


def figures(runs: Sequence[Compared]) -> list[Figure]:
    """All figures that at least one run has: workloads first, then probes, then packets."""
    found: list[Figure] = []
    for part, keys in _WORKLOADS:
        for name in _names(runs, part, "name"):
            items = [_item(run.summary[part], "name", name) for run in runs]
            found += _rows(str(name), keys, items)
    for tc in _names(runs, "probes", "class"):
        items = [_item(run.summary["probes"], "class", tc) for run in runs]
        found += _rows(f"TC{tc}", _PROBES, items)
    found += _rows("packets", _PACKETS, [run.summary for run in runs])
    return [row for row in found if any(value is not None for value in row.values)]


def _names(runs: Sequence[Compared], part: str, key: str) -> list[Any]:
    return list(dict.fromkeys(item[key] for run in runs for item in run.summary[part]))


def _item(items: Sequence[Mapping[str, Any]], key: str, name: object) -> Mapping[str, Any] | None:
    return next((item for item in items if item[key] == name), None)


def _rows(
    group: str, keys: Sequence[_Key], items: Sequence[Mapping[str, Any] | None]
) -> list[Figure]:
    return [
        Figure(
            group,
            key.name,
            key.unit,
            key.better,
            tuple(_value(item, key.path) for item in items),
            key.show,
        )
        for key in keys
    ]


def _value(item: Mapping[str, Any] | None, path: str) -> float | None:
    """Value at ``a.b`` of an item, or the share ``a.part/whole``."""
    *groups, leaf = path.split(".")
    for group in groups:
        item = None if item is None else item[group]
    if item is None:
        return None
    part, _, whole = leaf.partition("/")
    value: float | None = item[part]
    return fmt.share(value, item[whole]) if whole else value


def table_rows(runs: Sequence[Compared], rows: Sequence[Figure]) -> list[list[str]]:
    """Cells of the table, header first, verdicts second; changes follow the values."""
    table = [["", "", *(run.label for run in runs)]]
    table.append(["verdict", "", *(str(run.summary["verdict"]) for run in runs)])
    for row in rows:
        cells = [row.show(value) for value in row.values]
        for at, change in enumerate(row.changes()[1:], start=1):
            if row.values[at] is not None and change is not None:
                cells[at] += f" ({fmt.change(change)})"
        table.append([row.group, row.name, *cells])
    return table


def csv_rows(runs: Sequence[Compared], rows: Sequence[Figure]) -> list[list[object]]:
    """The same as plain numbers: group, figure, unit, one column per run, changes in per cent."""
    labels = [run.label for run in runs]
    table: list[list[object]] = [
        ["group", "figure", "unit", *labels, *(f"{label} change %" for label in labels[1:])]
    ]
    empty = [None] * (len(runs) - 1)
    table.append(["run", "verdict", "", *(run.summary["verdict"] for run in runs), *empty])
    table.append(["run", "folder", "", *(run.run.path.name for run in runs), *empty])
    for row in rows:
        changes = [None if c is None else round(c * 100, 3) for c in row.changes()[1:]]
        table.append([row.group, row.name, row.unit, *row.values, *changes])
    return table
