"""The table that a person reads in ten seconds: verdict, workloads, classes, fidelity. PURE.

At most `MAX_LINES` lines; plain ASCII; colour only where the caller says that it can be shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import IO, Any

from emulator.results import format as fmt
from emulator.results.summary import VALID

MAX_LINES = 15
_MAX_REASONS = 3
_GREEN, _RED, _RESET = "\x1b[1;32m", "\x1b[1;31m", "\x1b[0m"
_WIDTH = 200


def print_table(summary: Mapping[str, Any], stream: IO[str], environ: Mapping[str, str]) -> None:
    """Write the table to a stream; colour when it is a terminal and NO_COLOR is not set."""
    colour = stream.isatty() and not environ.get("NO_COLOR")
    stream.write(ten_second_table(summary, colour) + "\n")


def ten_second_table(summary: Mapping[str, Any], colour: bool = False) -> str:
    """The table as text without a final newline."""
    head = [_verdict_line(summary, colour), *_reason_lines(summary["reasons"])]
    tail = _fidelity_lines(summary)
    room = MAX_LINES - len(head) - len(tail) - 1
    workloads, classes = workload_rows(summary), class_rows(summary)
    for_classes = min(len(classes) + 1, max(room // 2, room - len(workloads))) if classes else 0
    blocks = [head, _cut(_align(workloads), room - for_classes)]
    if classes:
        blocks.append(_cut(_align([CLASS_HEADER, *classes], right_from=1), for_classes))
    return _join([block for block in [*blocks, tail] if block])


def _join(blocks: Sequence[Sequence[str]]) -> str:
    """Blocks with an empty line between them as long as that fits."""
    roomy = sum(map(len, blocks)) + len(blocks) - 1 <= MAX_LINES
    return ("\n\n" if roomy else "\n").join("\n".join(block) for block in blocks)


def _cut(lines: list[str], room: int) -> list[str]:
    if len(lines) <= room:
        return lines
    return [*lines[: room - 1], f"... and {len(lines) - room + 1} more, see summary.json"]


def _verdict_line(summary: Mapping[str, Any], colour: bool) -> str:
    verdict = str(summary["verdict"])
    shown = f"{_GREEN if verdict == VALID else _RED}{verdict}{_RESET}" if colour else verdict
    return f"{shown}  {' | '.join(identity_parts(summary))}"


def identity_parts(summary: Mapping[str, Any]) -> list[str]:
    """Name, profile, policy, seed and scale in a few words each."""
    parts = [str(summary["name"])]
    parts += [str(summary[key]) for key in ("profile", "policy") if summary[key]]
    parts.append(f"seed {summary['seed']}")
    scale = f"{summary['clock']} clock"
    if summary["dilation"] not in (None, 1):
        scale += f", slowed {fmt.significant(summary['dilation'])} x"
    if summary["shrink"] not in (None, 1):
        scale += f", sizes / {fmt.significant(summary['shrink'])}"
    return [*parts, scale]


def _reason_lines(reasons: Sequence[str]) -> list[str]:
    shown = [f"  - {_shorten(reason)}" for reason in reasons[:_MAX_REASONS]]
    more = len(reasons) - _MAX_REASONS
    return [*shown, f"  - and {more} more, see summary.json"] if more > 0 else shown


def _shorten(text: str) -> str:
    return text if len(text) <= _WIDTH else text[: _WIDTH - 3].rstrip() + "..."


def workload_rows(summary: Mapping[str, Any]) -> list[list[str]]:
    """One row per workload: name, kind, how much, its times, its rate, its share."""
    rows = [training_row(job) for job in summary["training"]]
    rows += [inference_row(job) for job in summary["inference"]]
    return rows + [background_row(job) for job in summary["background"]]


def training_row(job: Mapping[str, Any]) -> list[str]:
    """The row of a training job."""
    times = job["iteration_ms"]
    return [
        str(job["name"]),
        "training",
        f"{_of_planned(job)} iterations",
        f"{fmt.duration_ms(times['mean'])} each, p99 {fmt.duration_ms(times['p99'])}",
        f"busbw {fmt.rate_gbps(job['busbw_gbps'])} ({fmt.percent(job['busbw_fraction'])} of best)",
        f"GPU busy {fmt.percent(job['gpu_busy_fraction'])}",
    ]


def _of_planned(job: Mapping[str, Any]) -> str:
    done, planned = fmt.count(job["iterations"]), job.get("iterations_planned")
    return done if planned in (None, job["iterations"]) else f"{done}/{fmt.count(planned)}"


def inference_row(job: Mapping[str, Any]) -> list[str]:
    """The row of an inference service."""
    return [
        str(job["name"]),
        "inference",
        f"{fmt.count(job['completed'])}/{fmt.count(job['requests'])} requests",
        f"TTFT p50 {fmt.duration_ms(job['ttft_ms']['p50'])}, "
        f"p99 {fmt.duration_ms(job['ttft_ms']['p99'])}",
        f"TPOT p99 {fmt.duration_ms(job['tpot_ms']['p99'])}, "
        f"KV p99 {fmt.duration_ms(job['kv_transfer_ms']['p99'])}",
        f"SLO met {fmt.percent(job['slo_met_fraction'])}",
    ]


def background_row(job: Mapping[str, Any]) -> list[str]:
    """The row of a background workload."""
    times = job["fct_ms"]
    return [
        str(job["name"]),
        "background",
        f"{fmt.count(job['completed'])}/{fmt.count(job['flows'])} flows",
        f"FCT p50 {fmt.duration_ms(times['p50'])}, p99 {fmt.duration_ms(times['p99'])}",
        f"goodput {fmt.rate_gbps(job['goodput_gbps'])}",
        "",
    ]


CLASS_HEADER = [
    "class", "packets", "dropped", "trimmed", "marked", "probes", "lost", "latency p50", "p99",
    "p99.9",
]  # fmt: skip


def class_rows(summary: Mapping[str, Any]) -> list[list[str]]:
    """One row per traffic class: packets, drops, marks, and what its probes saw."""
    by_tc = {row["tc"]: row for row in summary["classes"]}
    probed = {row["class"]: row for row in summary["probes"]}
    return [_class_row(tc, by_tc.get(tc), probed.get(tc)) for tc in sorted({*by_tc, *probed})]


def _class_row(
    tc: int, counts: Mapping[str, Any] | None, probe: Mapping[str, Any] | None
) -> list[str]:
    counts = counts or {}
    label = f"TC{tc} lossless" if counts.get("lossless") else f"TC{tc}"
    sent = counts.get("sent")
    row = [label, fmt.count(sent)]
    row += [_part_of(counts.get(key), sent) for key in ("dropped", "trimmed", "marked")]
    if probe is None:
        return row + [fmt.NONE] * 5
    latency = probe["latency_us"]
    row += [fmt.count(probe["sent"]), _part_of(probe["lost"], probe["sent"])]
    return row + [fmt.duration_us(latency[key]) for key in ("p50", "p99", "p999")]


def _part_of(part: float | None, whole: float | None) -> str:
    if not part:
        return fmt.count(part)
    return f"{fmt.count(part)} ({fmt.percent(fmt.share(part, whole))})"


def _fidelity_lines(summary: Mapping[str, Any]) -> list[str]:
    fidelity = summary["fidelity"]
    late = fidelity["send_lateness_us"]["p99"]
    checks = [
        f"unaccounted packets {fmt.count(fidelity['unaccounted_packets'])}",
        f"rate error {fmt.percent(fidelity['rate_error_max'])}",
        f"round-trip error {fmt.percent(fidelity['rtt_error_max'])}",
        f"CPU idle {fmt.percent(fidelity['cpu_idle_min'])}",
        f"sends late p99 {fmt.duration_us(late)}",
    ]
    lines = [f"packets   {', '.join(packet_totals(summary))}", *_pause_lines(summary)]
    return [*lines, f"fidelity  {', '.join(checks)}"]


def _pause_lines(summary: Mapping[str, Any]) -> list[str]:
    """How much was paused, when some class is lossless."""
    if not any(row["lossless"] for row in summary["classes"]):
        return []
    pfc = summary["pfc"]
    if pfc["pauses"] == 0:
        return ["pause     nobody was paused"]
    reaction = pfc["reaction_us"]
    parts = [
        f"{fmt.count(pfc['pauses'])} pauses",
        f"{fmt.percent(pfc['paused_fraction'])} of the time",
        f"reaction p50 {fmt.duration_us(reaction['p50'])}",
        f"p99 {fmt.duration_us(reaction['p99'])}",
        f"{fmt.count(pfc['watchdog_events'])} watchdog events",
    ]
    return [f"pause     {', '.join(parts)}"]


def packet_totals(summary: Mapping[str, Any]) -> list[str]:
    """``412,345 sent`` and so on."""
    names = ("sent", "delivered", "dropped", "trimmed", "marked", "retransmitted")
    return [f"{fmt.count(summary['packets'][name])} {name}" for name in names]


def _align(rows: Sequence[Sequence[str]], right_from: int | None = None) -> list[str]:
    """Rows as lines with aligned columns; columns from `right_from` on are right-aligned."""
    if not rows:
        return []
    widths = [0] * max(len(row) for row in rows)
    for row in rows:
        for at, cell in enumerate(row):
            widths[at] = max(widths[at], len(cell))
    return [_line(row, widths, right_from) for row in rows]


def _line(row: Sequence[str], widths: Sequence[int], right_from: int | None) -> str:
    cells = [
        cell.rjust(width) if right_from is not None and at >= right_from else cell.ljust(width)
        for at, (cell, width) in enumerate(zip(row, widths, strict=False))
    ]
    return "  ".join(cells).rstrip()


def align(rows: Sequence[Sequence[str]], right_from: int | None = None) -> str:
    """Aligned text of rows, for other tables of the same look."""
    return "\n".join(_align(rows, right_from))
