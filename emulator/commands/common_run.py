"""What commands that run experiments share."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from emulator.run.launch import Launcher
    from emulator.spec.model import Experiment

EXIT_INVALID = 1
EXIT_INTERRUPTED = 130
BUDGET = "budget"


def add_run_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of all commands that run an experiment file."""
    add_budget_argument(parser)
    add_progress_arguments(parser)


def add_budget_argument(parser: argparse.ArgumentParser) -> None:
    """``--budget``."""
    parser.add_argument(
        f"--{BUDGET}", metavar="TIME", help="wall time that shrink: auto aims for, such as 60s"
    )


def add_progress_arguments(parser: argparse.ArgumentParser) -> None:
    """``--quiet``, ``--verbose`` and ``--alongside``."""
    parser.add_argument("--quiet", action="store_true", help="no progress, only the table")
    parser.add_argument("--verbose", action="store_true", help="say where the time went")
    add_alongside_argument(parser)


def add_alongside_argument(parser: argparse.ArgumentParser) -> None:
    """``--alongside``."""
    parser.add_argument(
        "--alongside",
        action="store_true",
        help="start although another run is under way, at the risk of an INVALID verdict",
    )


def launched(
    arguments: argparse.Namespace, experiments: Iterable[Experiment]
) -> AbstractContextManager[Launcher]:
    """The launcher that the arguments of a command ask for, for these experiments."""
    from emulator.run.launch import launcher  # noqa: PLC0415 - keeps the help text quick
    from emulator.run.progress import Progress  # noqa: PLC0415

    clocks = {experiment.clock for experiment in experiments}
    progress = Progress(quiet=arguments.quiet, verbose=getattr(arguments, "verbose", False))
    return launcher(arguments.results, clocks, progress, arguments.alongside)
