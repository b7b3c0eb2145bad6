"""``fabriclab rerun``: repeat a run from its folder, and say whether the results are the same."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from emulator import DISTRIBUTION
from emulator.commands.common_results import add_results_argument
from emulator.commands.common_run import (
    EXIT_INTERRUPTED,
    add_progress_arguments,
    launched,
)

if TYPE_CHECKING:
    from emulator.results.sameness import Sameness

EXIT_NOT_THE_SAME = 1
_WHO = ("first run", "repeated")


def add_parser(commands: Any) -> None:
    """Add the sub-parser."""
    parser = commands.add_parser(
        "rerun",
        help="repeat a run from its folder and compare the results",
        description="Repeats a run as it was: experiment, seed, clock, dilation and shrink. Under "
        "the virtual clock the results must be equal to the byte; under the live clock their "
        "statistics must agree. Under another seed (--seed) the means must fit within their "
        "intervals. Exit code 0 when they do, 1 when not.",
    )
    parser.add_argument("run_name", metavar="RUN", help="run folder or run id")
    parser.add_argument("--seed", metavar="N", help="use another seed, and compare the means")
    add_results_argument(parser)
    add_progress_arguments(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Repeat it, print what is the same and what is not."""
    from emulator.commands.report import show  # noqa: PLC0415 - keeps the help text quick
    from emulator.results import sameness  # noqa: PLC0415
    from emulator.results.catalog import resolve_run  # noqa: PLC0415
    from emulator.results.reader import RunReader  # noqa: PLC0415
    from emulator.run import repeating  # noqa: PLC0415

    first = RunReader.open(resolve_run(arguments.run_name, arguments.results))
    experiment = repeating.experiment_of(first, arguments.seed)
    with launched(arguments, [experiment]) as launcher:
        outcome = launcher.run(experiment, repeating.label_of(first))
    show(outcome.folder)
    if outcome.interrupted:
        print(f"{DISTRIBUTION}: ended early, so nothing is compared", file=sys.stderr)
        return EXIT_INTERRUPTED
    return conclude(sameness.compare(first.path, Path(outcome.folder)))


def conclude(found: Sameness) -> int:
    """Print the comparison; the exit code."""
    from emulator.clock.traits import LIVE_CLOCK  # noqa: PLC0415 - keeps the help text quick

    seeds = {run.manifest.get("seed") for run in found.runs}
    if len(seeds) > 1:
        return _conclude_seeds(found)
    live = found.first.manifest.get("clock") == LIVE_CLOCK
    return _conclude_live(found) if live else _conclude_virtual(found)


def _conclude_virtual(found: Sameness) -> int:
    from emulator.results import sameness, sameness_text  # noqa: PLC0415

    for block in (
        sameness_text.hash_table(found, _WHO),
        sameness_text.dependence(found, _WHO),
        sameness_text.file_lines(found),
    ):
        print(f"\n{block}")
    same = found.same(sameness.RESULTS)
    print("\nThe results are the same." if same else "\nThe results are NOT the same.")
    return 0 if same else EXIT_NOT_THE_SAME


def _conclude_live(found: Sameness) -> int:
    from emulator.report import agreement  # noqa: PLC0415
    from emulator.report.comparison import Compared, figures  # noqa: PLC0415
    from emulator.results import sameness, sameness_text, table  # noqa: PLC0415

    runs = [
        Compared(label, run, run.summary or {}) for label, run in zip(_WHO, found.runs, strict=True)
    ]
    rows = agreement.rows_of(figures(runs), 1, 0)
    head = ["", "", "repeated", "first run", *agreement.HEADER[4:]]
    print(f"\n{sameness_text.hash_table(found, _WHO)}")
    print(f"\n{sameness_text.dependence(found, _WHO)}")
    print("\nRuns under the live clock do not repeat to the byte; their statistics must agree:")
    print(f"\n{table.align([head, *(row.cells for row in rows)])}")
    print(f"\n{agreement.sentence(rows, runs, 'The runs')}")
    same = found.same(sameness.SCHEDULE) and agreement.agrees(rows, runs)
    return 0 if same else EXIT_NOT_THE_SAME


def _conclude_seeds(found: Sameness) -> int:
    from emulator.results import sameness, sameness_text, seeds, table  # noqa: PLC0415
    from traffic.intervals import CONFIDENCE  # noqa: PLC0415

    rows, confidence = seeds.compare(*found.runs), f"{CONFIDENCE * 100:g} %"
    print(f"\n{sameness_text.hash_table(found, _WHO)}")
    print(f"\n{sameness_text.dependence(found, _WHO)}")
    print(f"\nAnother seed gives other results; their means must fit, at {confidence} for all:")
    print(f"\n{table.align([['', 'mean of', *_WHO, ''], *(row.cells for row in rows)])}")
    effect, fit = not found.same(sameness.RESULTS), all(row.fits for row in rows)
    if not effect:
        print("\nThe results are the same, so the seed decides about nothing.")
    elif not rows:
        print("\nThe runs have too few samples in common.")
    else:
        print("\nThe means fit." if fit else "\nThe means do NOT fit.")
    return 0 if effect and rows and fit else EXIT_NOT_THE_SAME
