"""``fabriclab validate-physics``: the fabric against theory and published tables."""

from __future__ import annotations

import argparse
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from emulator.clock.traits import CLOCKS, VIRTUAL_CLOCK
from emulator.commands.common_results import add_results_argument
from emulator.commands.common_run import EXIT_INTERRUPTED, add_progress_arguments, launched

if TYPE_CHECKING:
    from emulator.physics.running import Results

EXIT_FAILED = 1


def add_parser(commands: Any) -> None:
    """Add the sub-parser."""
    parser = commands.add_parser(
        "validate-physics",
        help="run named cases and compare them with theory and published tables",
        description="Runs named cases on the fabric, compares what they measure with closed forms "
        "and published tables, and writes a page. Exit code 0 when all pass, 1 when one fails.",
    )
    parser.add_argument(
        "--clock",
        choices=CLOCKS,
        default=VIRTUAL_CLOCK,
        help="virtual (default): all cases, half of the tables' tolerances; live: some, all of it",
    )
    parser.add_argument(
        "--case",
        dest="names",
        metavar="NAME",
        nargs="+",
        action="extend",
        default=[],
        help="only these cases",
    )
    parser.add_argument("--list", action="store_true", help="list the cases and end")
    parser.add_argument(
        "--out", metavar="DIR", type=Path, help="where physics.html, .txt and .json go"
    )
    add_results_argument(parser)
    add_progress_arguments(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the cases; print the table and where the page is."""
    from emulator.physics import page, registry, running, text  # noqa: PLC0415 - quick help text

    cases = registry.chosen(arguments.names, arguments.clock)
    if arguments.list:
        print(text.listing(cases))
        return 0
    prepared = running.prepare(cases, arguments.clock)
    out = arguments.out or default_out(arguments.results, arguments.clock)
    page.make_folder(out)
    experiments = [experiment for _, runs in prepared for _, experiment in runs]
    with launched(arguments, experiments) as launcher:
        found = running.run_all(launcher, prepared, arguments.clock)
    return conclude(found, arguments.clock, out)


def conclude(found: Results, clock: str, out: Path) -> int:
    """Write and print what was found; the exit code."""
    from emulator.physics import page, text  # noqa: PLC0415 - quick help text
    from emulator.run.machine import description  # noqa: PLC0415

    context = page.Context(clock, found.interrupted, description())
    written = page.write(found.results, context, out)
    print(text.to_text(found.results))
    print(f"\npage: {written}")
    if found.interrupted:
        return EXIT_INTERRUPTED
    return 0 if found.passed else EXIT_FAILED


def default_out(root: Path, clock: str) -> Path:
    """A folder beside the runs, named after the clock and now."""
    return root / f"physics-{clock}-{datetime.now().astimezone():%Y%m%d-%H%M%S}"
