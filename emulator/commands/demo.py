"""``fabriclab demo``: training beside inference, with and without congestion control."""

from __future__ import annotations

import argparse
from typing import Any

from emulator.commands.common_results import add_results_argument
from emulator.commands.common_run import add_progress_arguments

EXAMPLE = "training-beside-inference.yaml"
PROFILES = "ethernet,roce-ecn"


def add_parser(commands: Any) -> None:
    """Add the sub-parser."""
    parser = commands.add_parser(
        "demo", help="run the demonstration (with the live clock: needs root)"
    )
    parser.add_argument("--clock", metavar="NAME", help="live or virtual")
    add_results_argument(parser)
    add_progress_arguments(parser)
    parser.set_defaults(
        run=run, profiles=PROFILES, changes=(), settings=(), seed=None, budget=None, out=None
    )


def run(arguments: argparse.Namespace) -> int:
    """Run the example under two profiles and compare them."""
    from emulator.commands.compare import run_file  # noqa: PLC0415 - keeps the help text quick
    from emulator.examples import example  # noqa: PLC0415

    return run_file(arguments, example(EXAMPLE))
