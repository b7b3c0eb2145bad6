"""``fabriclab report``: the table and the page of runs that exist."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

from emulator.commands.common_results import add_results_argument


def add_parser(commands: Any) -> None:
    """Add the sub-parser."""
    parser = commands.add_parser("report", help="make the report of a run again")
    parser.add_argument(
        "runs", metavar="RUN", nargs="*", help="run folder or run id; without one, the latest run"
    )
    add_results_argument(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Write report.html of every run and print its table and its path."""
    from emulator.results import catalog  # noqa: PLC0415 - keeps the help text quick

    root = arguments.results
    names = arguments.runs
    paths = [catalog.resolve_run(name, root) for name in names] or [catalog.latest_run(root)]
    for path in paths:
        show(path)
    return 0


def show(path: Path) -> None:
    """Write one run's report; print its table and where the report is."""
    from emulator.report.html import build_report  # noqa: PLC0415 - Matplotlib takes a second

    report = build_report(path)
    show_table(path)
    print(f"\nreport: {report}")


def show_table(path: Path) -> None:
    """Print one run's table."""
    from emulator.results.reader import RunReader  # noqa: PLC0415 - keeps the help text quick
    from emulator.results.table import print_table  # noqa: PLC0415

    summary = RunReader.open(path, allow_incomplete=True).summary
    if summary is None:
        print(f"INCOMPLETE  {path.name}: the run is still going or was cut short")
    else:
        print_table(summary, sys.stdout, os.environ)
