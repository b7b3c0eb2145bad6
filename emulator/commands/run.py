"""``fabriclab run``: run an experiment on this machine."""

from __future__ import annotations

import argparse
from typing import Any

from emulator.commands.common import add_experiment_arguments, experiment_of
from emulator.commands.common_results import add_results_argument
from emulator.commands.common_run import EXIT_INTERRUPTED, EXIT_INVALID, add_run_arguments, launched


def add_parser(commands: Any) -> None:
    """Add the sub-parser."""
    parser = commands.add_parser("run", help="run an experiment (with the live clock: needs root)")
    add_experiment_arguments(parser)
    add_results_argument(parser)
    add_run_arguments(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run it, show the table; 1 when the verdict is INVALID."""
    from emulator.commands.report import show  # noqa: PLC0415 - keeps the help text quick

    experiment = experiment_of(arguments)
    with launched(arguments, [experiment]) as launcher:
        outcome = launcher.run(experiment)
    show(outcome.folder)
    if outcome.interrupted:
        return EXIT_INTERRUPTED
    return 0 if outcome.verdict.valid else EXIT_INVALID
