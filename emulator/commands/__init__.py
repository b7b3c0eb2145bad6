"""The commands of the command line, one file each.

A command's module has ``add_parser(commands)``, which adds its sub-parser and ends with
``parser.set_defaults(run=run)``, and ``run(arguments) -> int``, which gives the exit code. Heavy
imports belong into ``run``, so that ``fabriclab --help`` stays quick.

To add a command: write its file and name it in `COMMANDS`, in the order of the help text.
"""

from __future__ import annotations

import argparse
from typing import Any, Protocol

from emulator.commands import (
    bench,
    clean,
    compare,
    demo,
    doctor,
    kernel,
    list_runs,
    plan,
    report,
    rerun,
    run,
    topo,
    validate,
    validate_physics,
)


class Command(Protocol):
    """What a command's module has."""

    def add_parser(self, commands: Any) -> None:
        """Add the sub-parser."""

    def run(self, arguments: argparse.Namespace) -> int:
        """Do it; the result is the exit code."""


COMMANDS: tuple[Command, ...] = (
    doctor,
    validate,
    plan,
    run,
    rerun,
    topo,
    report,
    compare,
    list_runs,
    validate_physics,
    bench,
    kernel,
    demo,
    clean,
)
