"""report.html: one self-contained page per run (no script, no external file)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jinja2

from emulator.report import (
    charts_jobs,
    charts_map,
    charts_ports,
    charts_probes,
    explain,
    extract,
    pauses,
)
from emulator.report.fabricmap import build_map, manifest_ports, port_words
from emulator.report.picture import Picture
from emulator.report.timeline import timelines
from emulator.results import columns, table
from emulator.results import format as fmt
from emulator.results.files import write_atomic
from emulator.results.queues import QueueSeries
from emulator.results.reader import RunReader
from emulator.results.summary import unfinished_summary
from topologies.errors import MachineError

WORKLOAD_HEADER = ("workload", "kind", "done", "time", "network", "outcome")
PLACE_HEADER = ("port", "class", "dropped", "trimmed", "marked")
_MICRO = re.compile(r"(?<=\d )us\b")
CUT_SHORT = "the run was cut short: no summary.json was written"


def environment() -> jinja2.Environment:
    """Templates of this package; all text is escaped unless it is marked as markup."""
    found = jinja2.Environment(
        loader=jinja2.PackageLoader("emulator.report", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters["micro"] = lambda text: _MICRO.sub("\N{MICRO SIGN}s", str(text))
    return found


def build_report(run_dir: Path) -> Path:
    """Write report.html into a run folder, also of a run that was cut short.

    Args:
        run_dir: the run folder.

    Returns:
        The page's path.

    Raises:
        SpecError: the folder is missing, foreign or damaged.
        MachineError: the page cannot be written.
    """
    page = render(RunReader.open(run_dir, allow_incomplete=True))
    return write_page(run_dir / columns.REPORT, page)


def write_page(target: Path, page: str) -> Path:
    """Write a page; MachineError with the reason when that fails."""
    try:
        write_atomic(target, page.encode())
    except OSError as error:
        raise MachineError(f"{target} cannot be written: {error.strerror}") from error
    return target


def render(run: RunReader) -> str:
    """The page of a run as text."""
    spec, samples = run.spec(), run.queues()
    summary = run.summary or _summary_of_unfinished(run, spec)
    words = port_words(manifest_ports(run.manifest))
    places = explain.place_rows(extract.places(run.table("events"), samples), words)
    shown = pictures(run, summary, spec, samples)
    return (
        environment()
        .get_template("report.html.j2")
        .render(
            title=run.name,
            verdict=str(summary["verdict"]) if run.complete else "INCOMPLETE",
            reasons=summary["reasons"],
            workload_header=WORKLOAD_HEADER,
            workloads=table.workload_rows(summary),
            class_header=table.CLASS_HEADER,
            classes=table.class_rows(summary),
            recorded="" if run.complete else recorded_sentence(run),
            totals=table.packet_totals(summary),
            facts=explain.what_was_run(run.manifest, summary, spec),
            scale=explain.scale_sentences(run.manifest, summary),
            pictures=shown,
            pause_header=pauses.HEADER,
            pauses=pause_rows(run, samples, words),
            place_header=PLACE_HEADER,
            places=places,
            checks=explain.checks(summary),
            spec_text=run.spec_text(),
            versions=explain.version_rows(run.manifest),
            hashes=[(key, value) for key, value in summary["hashes"].items() if value],
            notes=run.notes,
            folder=run.path.name,
        )
    )


def pause_rows(
    run: RunReader, samples: QueueSeries | None, words: Mapping[str, str]
) -> list[list[str]]:
    """Who paused whom; empty when nobody did."""
    events = run.table("events")
    times = [*events.numbers("time_ns").tolist(), *(samples.time_ns.tolist() if samples else ())]
    end_ns = int(max(times, default=0))
    return pauses.rows(pauses.found(events, end_ns), words, end_ns)


def recorded_sentence(run: RunReader) -> str:
    """What a run that was cut short has on record."""
    parts = []
    for name, words in (("flows", "flows"), ("requests", "requests")):
        status = run.table(name).text("status")
        done = fmt.count(sum(1 for item in status if item == columns.STATUS_DONE))
        parts.append(f"{done} finished {words}")
    parts.append(f"{fmt.count(len(run.table('probes')))} probes")
    parts.append(f"{fmt.count(len(run.table('events')))} events")
    return f"On record: {', '.join(parts)}. Totals and the verdict are missing."


def _summary_of_unfinished(run: RunReader, spec: Mapping[str, Any]) -> dict[str, Any]:
    profile = spec.get("profile")
    known = {"profile": profile if isinstance(profile, str) else None}
    return unfinished_summary({**known, **run.manifest, "name": run.name}, CUT_SHORT)


def pictures(
    run: RunReader,
    summary: Mapping[str, Any],
    spec: Mapping[str, Any],
    samples: QueueSeries | None,
) -> list[Picture]:
    """All pictures of a run, in the order of the page."""
    shrink = float(summary["shrink"] or 1)
    names = [job["name"] for job in summary["training"]] if run.complete else None
    jobs = timelines(run.table("flows"), run.table("computes"), names)
    services = extract.request_latencies(run.table("requests"), shrink)
    probed = extract.probe_classes(run.table("probes"))
    predicted = {item.tc: extract.unloaded_latency_ns(run.manifest, item.tc) for item in probed}
    ports = manifest_ports(run.manifest)
    rules = extract.mark_rules(spec, run.manifest)
    return [
        charts_map.fabric_picture(build_map(run.manifest, samples)),
        charts_jobs.timeline_picture(jobs, shrink),
        charts_jobs.iterations_picture(jobs, shrink),
        charts_jobs.requests_picture(
            services, {item.job: extract.slo_ms(spec, item.job) for item in services}
        ),
        charts_probes.probes_picture(probed, {tc: at for tc, at in predicted.items() if at}),
        charts_ports.queue_picture(samples, ports, rules),
        charts_ports.rates_picture(samples, run.manifest),
    ]
