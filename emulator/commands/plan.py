"""``fabriclab plan``: what a run would do and how long it would take, without doing it."""

from __future__ import annotations

import argparse
import json
from typing import Any

from emulator.commands.common import add_experiment_arguments, experiment_of
from emulator.commands.common_run import add_budget_argument
from topologies.reading import as_number


def add_parser(commands: Any) -> None:
    """Add the sub-parser."""
    parser = commands.add_parser("plan", help="show what a run would do")
    add_experiment_arguments(parser)
    add_budget_argument(parser)
    parser.add_argument("--json", action="store_true", help="print JSON instead of text")
    parser.add_argument(
        "--capacity",
        metavar="PPS",
        type=float,
        help="data packets/s that the machine carries over three switches; else as measured",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the plan."""
    from emulator.plan import make_plan, to_dict  # noqa: PLC0415 - keeps the help text quick
    from emulator.plan_text import render  # noqa: PLC0415

    plan = make_plan(experiment_of(arguments), capacity_pps(arguments))
    print(json.dumps(to_dict(plan), indent=2) if arguments.json else render(plan))
    return 0


def capacity_pps(arguments: argparse.Namespace) -> float | None:
    """The capacity that the user names, or as it was measured; None when it was not."""
    from emulator import calibration  # noqa: PLC0415 - keeps the help text quick

    if arguments.capacity is None:
        return calibration.cached()
    return as_number(arguments.capacity, "--capacity", minimum=1)
