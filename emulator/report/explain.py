"""Sentences and small tables of the report: what was run, how far it can be believed. PURE."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from emulator.report.extract import Place
from emulator.report.fabricmap import hosts_of, manifest_ports, node_tiers, plane_of
from emulator.results import format as fmt

MAX_RATE_ERROR = 0.03
MAX_RTT_ERROR = 0.05
MAX_PLACES = 20


@dataclass(frozen=True)
class Check:
    """One line of the fidelity table.

    Attributes:
        name: what is checked.
        measured: as text.
        limit: as text; ``-`` where the verdict has no fixed limit.
        ok: True, False, or None when it was not measured or has no fixed limit.
        meaning: one sentence for newcomers.
    """

    name: str
    measured: str
    limit: str
    ok: bool | None
    meaning: str


def checks(summary: Mapping[str, Any]) -> list[Check]:
    """The rules of design section 8 with what was measured."""
    fidelity = summary["fidelity"]
    late = fidelity["send_lateness_us"]
    lossless = [row for row in summary["classes"] if row["lossless"]]
    lost = sum(row["dropped"] or 0 for row in lossless) if lossless else None
    return [
        Check(
            "Unaccounted packets",
            fmt.count(fidelity["unaccounted_packets"]),
            "0",
            _at_most(fidelity["unaccounted_packets"], 0),
            "Every packet sent must arrive, or be counted as cut or dropped at a named place.",
        ),
        Check(
            "Rate error, worst busy port",
            fmt.percent(fidelity["rate_error_max"]),
            fmt.percent(MAX_RATE_ERROR),
            _at_most(fidelity["rate_error_max"], MAX_RATE_ERROR),
            "A port with enough to send must reach the rate that the experiment gives it.",
        ),
        Check(
            "Round-trip error, idle fabric",
            fmt.percent(fidelity["rtt_error_max"]),
            fmt.percent(MAX_RTT_ERROR),
            _at_most(fidelity["rtt_error_max"], MAX_RTT_ERROR),
            "Without load, packets must take the time that follows from delays and rates.",
        ),
        Check(
            "Packets lost in lossless classes",
            fmt.count(lost) if lossless else "no such class",
            "0",
            _at_most(lost, 0),
            "A class that may be paused must never drop.",
        ),
        Check(
            "Processor idle, least",
            fmt.percent(fidelity["cpu_idle_min"]),
            fmt.NONE,
            None,
            "A machine that is short of processor time slows the network down by itself.",
        ),
        Check(
            "Lateness of sends, p50 / p99",
            f"{fmt.duration_us(late['p50'])} / {fmt.duration_us(late['p99'])}",
            fmt.NONE,
            None,
            "How long after its due time a packet left, in target time.",
        ),
    ]


def _at_most(value: float | None, limit: float) -> bool | None:
    return None if value is None else value <= limit


def scale_sentences(manifest: Mapping[str, Any], summary: Mapping[str, Any]) -> list[str]:
    """One sentence each for the clock, the dilation and the shrink."""
    clock = summary["clock"] or manifest.get("clock")
    dilation, shrink = summary["dilation"], summary["shrink"]
    sentences = []
    if clock == "virtual":
        sentences.append("Virtual clock: time advances only when every process waits.")
    elif clock:
        sentences.append("Live clock: packets flow in real time on this machine.")
    if dilation not in (None, 1):
        factor = fmt.significant(dilation)
        sentences.append(
            f"Dilation {factor}: the network ran {factor} times slower than the target so that "
            "this machine keeps up; all results are converted back to target time."
        )
    if shrink not in (None, 1):
        factor = fmt.significant(shrink)
        sentences.append(
            f"Shrink {factor}: messages, computation and request gaps were {factor} times smaller "
            "to finish sooner; iteration and request times are multiplied back, packet latency "
            "is as measured."
        )
    return sentences


def what_was_run(
    manifest: Mapping[str, Any], summary: Mapping[str, Any], spec: Mapping[str, Any]
) -> list[tuple[str, str]]:
    """Term and text for the list at the top of the report."""
    facts = [
        ("Fabric", fabric_words(manifest)),
        ("Workloads", _workload_words(spec)),
        ("Profile", str(summary["profile"] or fmt.NONE)),
        ("Policy", str(summary["policy"] or fmt.NONE)),
        ("Seed", str(fmt.NONE if summary["seed"] is None else summary["seed"])),
        ("Started", str(manifest.get("started") or fmt.NONE)),
        ("Took", _wall_words(manifest.get("wall_s"))),
        ("Run", str(manifest.get("run") or fmt.NONE)),
    ]
    return [(term, text) for term, text in facts if text != fmt.NONE]


def _wall_words(wall_s: object) -> str:
    if not isinstance(wall_s, (int, float)):
        return fmt.NONE
    return f"{fmt.duration_ns(wall_s * 1e9)} of wall time"


def fabric_words(manifest: Mapping[str, Any]) -> str:
    """``8 hosts, 4 leaves, 2 spines, 100 Gbit/s`` out of the port list."""
    ports = manifest_ports(manifest)
    if not ports:
        return fmt.NONE
    levels = list(node_tiers(ports).values())
    top = max(levels)
    names, plurals = ["host", "leaf"], ["hosts", "leaves"]
    names += ["aggregation switch"] * (top - 2) + ["spine"]
    plurals += ["aggregation switches"] * (top - 2) + ["spines"]
    parts = [
        f"{levels.count(tier)} {(names if levels.count(tier) == 1 else plurals)[tier]}"
        for tier in range(top + 1)
    ]
    rates = sorted({port.rate_bps for port in ports})
    span = fmt.rate_bps(rates[0])
    if len(rates) > 1:
        span += f" to {fmt.rate_bps(rates[-1])}"
    hosts = hosts_of(ports)
    planes = len({plane_of(port.node) for port in ports if port.node not in hosts})
    split = f" in {planes} planes" if planes > 1 else ""
    return f"{', '.join(parts)}{split}; links of {span}"


def _workload_words(spec: Mapping[str, Any]) -> str:
    workloads = [item for item in spec.get("workloads") or () if isinstance(item, Mapping)]
    words = [f"{item.get('name', '?')} ({item.get('kind', '?')})" for item in workloads]
    return ", ".join(words) or fmt.NONE


def place_rows(found: Sequence[Place], words: Mapping[str, str]) -> list[list[str]]:
    """Rows of the table of drops and marks; the tail is summed up in one row.

    Args:
        found: the places, worst first.
        words: port -> how to call it.
    """
    rows = [
        [
            words.get(place.port, place.port),
            "all" if place.tc is None else f"TC{place.tc}",
            *_counts([place]),
        ]
        for place in found[:MAX_PLACES]
    ]
    rest = found[MAX_PLACES:]
    return [*rows, [f"{len(rest)} more places", "", *_counts(rest)]] if rest else rows


def _counts(found: Sequence[Place]) -> list[str]:
    totals = (
        sum(place.drop for place in found),
        sum(place.trim for place in found),
        sum(place.mark for place in found),
    )
    return [fmt.count(total) for total in totals]


def version_rows(manifest: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Versions, kernel, machine and changed kernel settings, for the end of the report."""
    rows = [(str(k), str(v)) for k, v in (manifest.get("versions") or {}).items()]
    rows += [("kernel", str(manifest["kernel"]))] if manifest.get("kernel") else []
    machine = manifest.get("machine") or {}
    rows += [(f"machine: {key}", str(value)) for key, value in machine.items()]
    changed = (manifest.get("sysctls") or {}).get("changed") or ()
    return rows + [("sysctl changed", _flat(item)) for item in changed]


def _flat(item: object) -> str:
    if isinstance(item, Mapping):
        return ", ".join(f"{key} {value}" for key, value in item.items())
    return str(item)
