"""``fabriclab topo``: shows a fabric as a tree and tables, as a graph, as JSON, or builds it."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from emulator import DISTRIBUTION
from emulator.commands.common import add_experiment_arguments, experiment_of, overrides
from emulator.commands.common_run import add_alongside_argument
from topologies.errors import SpecError

EXIT_FAILED = 1


def add_parser(commands: Any) -> None:
    """Add the sub-parser."""
    parser = commands.add_parser("topo", help="show the fabric of an experiment, or build it")
    add_experiment_arguments(parser)
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--dot", action="store_true", help="print a graph for Graphviz (dot, neato)")
    form.add_argument(
        "--json", action="store_true", help="print nodes, links and addresses as JSON"
    )
    form.add_argument(
        "--up", action="store_true", help="build it and open Mininet's command line (needs root)"
    )
    parser.add_argument(
        "--exec",
        dest="commands",
        metavar='"NODE COMMAND"',
        action="append",
        default=[],
        help="with --up: run this instead of the command line; repeatable",
    )
    parser.add_argument("--quiet", action="store_true", help="with --up: no progress")
    add_alongside_argument(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the fabric; the file's other sections are not looked at. Or build it."""
    from emulator import topo_text  # noqa: PLC0415 - keeps the help text quick
    from emulator.spec.load import load_fabric  # noqa: PLC0415
    from topologies.files import fabric_to_dict  # noqa: PLC0415

    if arguments.up:
        return run_up(arguments)
    if arguments.commands:
        raise SpecError("--exec", arguments.commands[0], "needs a fabric that stands", "add --up")
    fabric = load_fabric(arguments.file, overrides(arguments))
    if arguments.json:
        print(json.dumps(fabric_to_dict(fabric), indent=2))
    else:
        print(topo_text.dot(fabric) if arguments.dot else topo_text.render(fabric))
    return 0


def run_up(arguments: argparse.Namespace) -> int:
    """Build, let the user or the commands work, take away; 1 when a command failed."""
    from emulator.node_commands import parse_command  # noqa: PLC0415 - keeps the help text quick
    from emulator.run import by_hand  # noqa: PLC0415
    from emulator.run.progress import Progress  # noqa: PLC0415

    experiment = experiment_of(arguments)
    nodes = set(experiment.fabric.by_name)
    commands = [parse_command(text, nodes) for text in arguments.commands]
    note = Progress(quiet=arguments.quiet).note
    with by_hand.raised(experiment, note, arguments.alongside) as live:
        if not commands:
            by_hand.prompt(live)
        failures = by_hand.execute(live, commands, note)
    for failure in failures:
        print(f"{DISTRIBUTION}: {failure}", file=sys.stderr)
    return EXIT_FAILED if failures else 0
