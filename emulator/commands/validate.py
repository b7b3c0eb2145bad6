"""``fabriclab validate``: is an experiment file right? Needs no root and starts nothing."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from emulator import DISTRIBUTION
from emulator.commands.common import add_experiment_arguments, overrides
from topologies.errors import FabriclabError


def add_parser(commands: Any) -> None:
    """Add the sub-parser."""
    parser = commands.add_parser("validate", help="check experiment files")
    add_experiment_arguments(parser, many=True)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Check every file; 2 when one is wrong, after all have been looked at."""
    changes = overrides(arguments)
    wrong = [path for path in arguments.file if not _is_valid(path, changes)]
    return 2 if wrong else 0


def _is_valid(path: Path, changes: Any) -> bool:
    from emulator.spec import load  # noqa: PLC0415 - keeps the help text quick

    try:
        experiment = load(path, changes)
    except FabriclabError as error:
        print(f"{DISTRIBUTION}: error: {' '.join(str(error).split())}", file=sys.stderr)
        return False
    fabric, workloads = experiment.fabric, experiment.workloads
    names = ", ".join(f"{spec.name} ({spec.kind})" for spec in workloads) or "probes only"
    print(
        f"{path}: valid; {experiment.name}, profile {experiment.profile}, {fabric.kind} with "
        f"{len(fabric.hosts)} hosts and {len(fabric.switches)} switches; {names}"
    )
    return True
