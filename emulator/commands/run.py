"""``fabriclab run``: run an experiment on this machine."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from emulator.commands.common import add_experiment_arguments, experiment_of
from emulator.commands.common_results import add_results_argument

EXIT_INVALID = 1
EXIT_INTERRUPTED = 130


def add_parser(commands: Any) -> None:
    """Add the sub-parser."""
    parser = commands.add_parser("run", help="run an experiment (needs root)")
    add_experiment_arguments(parser)
    add_results_argument(parser)
    add_run_arguments(parser)
    parser.set_defaults(run=run)


def add_run_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of all commands that run something."""
    parser.add_argument("--budget", metavar="TIME", help="wall time that shrink: auto aims for")
    parser.add_argument("--quiet", action="store_true", help="no progress, only the table")


def run(arguments: argparse.Namespace) -> int:
    """Run it, show the table; 1 when the verdict is INVALID."""
    from emulator.commands.report import show  # noqa: PLC0415 - keeps the help text quick

    if arguments.budget:
        arguments.settings.append(f"budget={arguments.budget}")
    experiment = experiment_of(arguments)
    outcome = execute(experiment, arguments.results, quiet=arguments.quiet)
    show(outcome.folder)
    if outcome.interrupted:
        return EXIT_INTERRUPTED
    return 0 if outcome.verdict.valid else EXIT_INVALID


def execute(experiment: Any, results: Path, label: str = "", quiet: bool = False) -> Any:
    """Check the machine, measure it once, run; returns a `session.Outcome`."""
    from emulator import calibration, doctor  # noqa: PLC0415
    from emulator.run import session  # noqa: PLC0415
    from emulator.run.progress import Progress  # noqa: PLC0415
    from emulator.run.supervising import Interrupt  # noqa: PLC0415

    doctor.require()
    progress, interrupt = Progress(quiet=quiet), Interrupt()
    with interrupt.armed():
        capacity = calibration.capacity_pps(progress.note)
        request = session.Request(experiment, capacity, results, label, doctor.datapath())
        return session.run(request, progress, interrupt)
