"""``fabriclab clean``: removes what dead runs left behind, and only that."""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any

from topologies.errors import MachineError


def add_parser(commands: Any) -> None:
    """Add the sub-parser."""
    parser = commands.add_parser("clean", help="remove what interrupted runs left behind")
    parser.add_argument("--dry-run", action="store_true", help="only say what would be removed")
    parser.add_argument(
        "--force",
        metavar="RUN_ID",
        action="append",
        default=[],
        help="end this run and remove it, or remove it although its file is damaged; repeatable",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Remove, and list what was removed and what was kept."""
    from emulator import leftovers  # noqa: PLC0415 - keeps the help text quick
    from emulator.clock.virtual import control  # noqa: PLC0415

    if os.geteuid() != 0 and not arguments.dry_run:
        raise MachineError("clean needs root; run it with sudo, or look with clean --dry-run")
    swept = leftovers.sweep(arguments.force, arguments.dry_run)
    guests = control.stale() if arguments.dry_run else control.remove_stale()
    word = "would remove" if arguments.dry_run else "removed"
    for entry in swept:
        if entry.kept:
            print(f"kept: {entry.kept}", file=sys.stderr)
        for item in entry.removed:
            print(f"{word}: {item}")
    for folder in guests:
        print(f"{word}: folder {folder}")
    if not guests and not any(entry.removed for entry in swept):
        print("nothing to remove")
    return 0
