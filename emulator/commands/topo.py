"""``fabriclab topo``: shows a fabric as a tree and tables, as a Graphviz graph, or as JSON."""

from __future__ import annotations

import argparse
import json
from typing import Any

from emulator.commands.common import add_experiment_arguments, overrides


def add_parser(commands: Any) -> None:
    """Add the sub-parser."""
    parser = commands.add_parser("topo", help="show the fabric of an experiment")
    add_experiment_arguments(parser)
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--dot", action="store_true", help="print a graph for Graphviz (dot, neato)")
    form.add_argument(
        "--json", action="store_true", help="print nodes, links and addresses as JSON"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the fabric; the file's other sections are not looked at."""
    from emulator import topo_text  # noqa: PLC0415 - keeps the help text quick
    from emulator.spec.load import load_fabric  # noqa: PLC0415
    from topologies.files import fabric_to_dict  # noqa: PLC0415

    fabric = load_fabric(arguments.file, overrides(arguments))
    if arguments.json:
        print(json.dumps(fabric_to_dict(fabric), indent=2))
    else:
        print(topo_text.dot(fabric) if arguments.dot else topo_text.render(fabric))
    return 0
