"""``fabriclab list``: the runs that exist, with their verdicts."""

from __future__ import annotations

import argparse
import json
from typing import Any

from emulator.commands.common_results import add_results_argument


def add_parser(commands: Any) -> None:
    """Add the sub-parser."""
    parser = commands.add_parser("list", help="list the runs that exist")
    parser.add_argument("--json", action="store_true", help="print JSON instead of text")
    add_results_argument(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print one line per run, the latest last."""
    from emulator.results import catalog  # noqa: PLC0415 - keeps the help text quick

    entries = [catalog.entry_of(path) for path in catalog.find_runs(arguments.results)]
    if arguments.json:
        print(json.dumps(catalog.list_data(entries), indent=2))
    elif entries:
        print(catalog.list_text(entries))
    else:
        print(f"no runs in {arguments.results}")
    return 0
