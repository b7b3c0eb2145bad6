"""compare.html, compare.csv and compare.txt: several run folders side by side."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from emulator.report import agreement, charts_compare, comparison, extract, who_pays
from emulator.report.agreement import Agreement
from emulator.report.comparison import Compared, Figure
from emulator.report.html import environment, write_page
from emulator.report.picture import Picture
from emulator.results import columns
from emulator.results.reader import RunReader
from emulator.results.table import align
from topologies.errors import MachineError

PAGE, CSV, TEXT = "compare.html", "compare.csv", "compare.txt"


def build_compare(run_dirs: Sequence[Path], out_dir: Path) -> Path:
    """Write the comparison of finished runs into a folder.

    Args:
        run_dirs: run folders; the first is what the others are compared with.
        out_dir: where compare.html, .csv and .txt go; made when it is missing.

    Returns:
        The page's path.

    Raises:
        SpecError: fewer than two runs, or one is missing, foreign, damaged or incomplete.
        MachineError: the files cannot be written.
    """
    runs = open_runs(run_dirs)
    try:
        out_dir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise MachineError(f"{out_dir} cannot be created: {error.strerror}") from error
    write_page(out_dir / TEXT, compare_text(runs) + "\n")
    write_page(out_dir / CSV, compare_csv(runs))
    return write_page(out_dir / PAGE, render(runs, out_dir))


def open_runs(run_dirs: Sequence[Path]) -> list[Compared]:
    """Open and label the runs."""
    return comparison.label_runs([RunReader.open(path) for path in run_dirs])


def compare_text(runs: Sequence[Compared]) -> str:
    """The comparison for a terminal: cautions, table, who pays what, whether the clocks agree."""
    rows = comparison.figures(runs)
    table = align(_without_repeats(comparison.table_rows(runs, rows)))
    warned = [f"! {text}" for text in who_pays.cautions(runs)]
    blocks = ["\n".join(warned), table, "\n".join(who_pays.sentences(runs, rows))]
    blocks += [_agreement_text(found) for found in agreement.agreements(runs, rows)]
    return "\n\n".join(block for block in blocks if block)


def _agreement_text(found: Agreement) -> str:
    table = align(_without_repeats(agreement.table(found)))
    return f"{found.title}\n\n{table}\n\n{found.sentence}"


def _without_repeats(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    """A group's name only in its first row, so that groups stand out."""
    shown, before = [], ""
    for row in rows:
        shown.append(["" if row[0] == before else row[0], *row[1:]])
        before = row[0]
    return shown


def compare_csv(runs: Sequence[Compared]) -> str:
    """The comparison as CSV."""
    out = io.StringIO()
    figures = comparison.figures(runs)
    head, *rows = comparison.csv_rows(runs, figures)
    for found in agreement.agreements(runs, figures):
        head += agreement.csv_columns(found)
        for row in rows:
            row.extend(agreement.csv_cells(found, str(row[0]), str(row[1])))
    csv.writer(out, lineterminator="\n").writerows([head, *rows])
    return out.getvalue()


def render(runs: Sequence[Compared], out_dir: Path) -> str:
    """The page as text; `out_dir` is where it will lie, for links to the runs' reports."""
    rows = comparison.figures(runs)
    header, *table = comparison.table_rows(runs, rows)
    return (
        environment()
        .get_template("compare.html.j2")
        .render(
            title="Comparison of " + " and ".join(run.label for run in runs)
            if len(runs) < 4
            else f"Comparison of {len(runs)} runs",
            runs=[(run, _report_link(run, out_dir)) for run in runs],
            cautions=who_pays.cautions(runs),
            sentences=who_pays.sentences(runs, rows),
            agreements=[
                (found, _without_repeats([row.cells for row in found.rows]))
                for found in agreement.agreements(runs, rows)
            ],
            agreement_header=agreement.HEADER,
            header=header,
            table=_without_repeats(table),
            pictures=pictures(runs, rows),
        )
    )


def _report_link(run: Compared, out_dir: Path) -> str:
    report = run.run.path / columns.REPORT
    return os.path.relpath(report, out_dir) if report.is_file() else ""


def pictures(runs: Sequence[Compared], rows: Sequence[Figure]) -> list[Picture]:
    """All pictures of a comparison, in the order of the page."""
    services = [
        extract.request_latencies(run.run.table("requests"), float(run.summary["shrink"] or 1))
        for run in runs
    ]
    probes = [extract.probe_classes(run.run.table("probes")) for run in runs]
    return [
        _bars("training", runs, rows),
        _bars("inference", runs, rows),
        charts_compare.first_token_picture(runs, services),
        _bars("background", runs, rows),
        charts_compare.probes_picture(runs, probes),
        _bars("loss", runs, rows),
    ]


_BARS: Mapping[str, tuple[str, str, tuple[str, ...], str]] = {
    "training": (
        "Training",
        "One bar per run: shorter iterations and more bus bandwidth are better.",
        ("iteration, mean", "bus bandwidth"),
        "None of the runs had a training job.",
    ),
    "inference": (
        "Inference",
        "One bar per run: time to first token of the median and of the slowest per cent of "
        "requests; shorter is better.",
        ("TTFT p50", "TTFT p99"),
        "None of the runs had inference requests.",
    ),
    "background": (
        "Background traffic",
        "One bar per run: more goodput and shorter flow completion times are better.",
        ("goodput", "flow completion p50"),
        "None of the runs had background traffic.",
    ),
    "loss": (
        "Loss and marks",
        "One bar per run: share of the packets sent that were dropped, trimmed or marked.",
        ("dropped", "trimmed", "marked"),
        "No run dropped or marked a packet.",
    ),
}
"""Key of a section -> title, how to read it, names of its figures, sentence when there are none."""


def _bars(key: str, runs: Sequence[Compared], rows: Sequence[Figure]) -> Picture:
    title, aid, names, empty = _BARS[key]
    shown = [row for row in rows if row.name in names]
    return charts_compare.bars_picture(key, title, aid, runs, shown, empty)
