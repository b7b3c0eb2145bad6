"""``fabriclab bench``: how fast this machine is with fabriclab, against the requirements."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from emulator import DISTRIBUTION, __version__
from emulator.commands.common_run import add_alongside_argument
from topologies.errors import MachineError

EXIT_MISSED = 1


def add_parser(commands: Any) -> None:
    """Add the sub-parser."""
    parser = commands.add_parser(
        "bench",
        help="measure start-up, frames, throughput and cost on this machine (needs root)",
        description="Measures side by side in one go and prints the requirement beside each "
        "figure. Exit code 1 when one is missed.",
    )
    parser.add_argument("names", metavar="NAME", nargs="*", help="which measurements; else all")
    parser.add_argument("--list", action="store_true", help="list the measurements and end")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write the figures there as well")
    parser.add_argument("--quiet", action="store_true", help="no progress, only the tables")
    add_alongside_argument(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Measure and print; 0 when every requirement is met."""
    from emulator.bench import registry, rows  # noqa: PLC0415 - keeps the help text quick

    benches = registry.chosen(arguments.names)
    if arguments.list:
        print("\n".join(f"{bench.NAME}: {bench.SUMMARY}" for bench in benches))
        return 0
    _check_target(arguments.json)
    found = _measure(benches, arguments)
    missed = [f"{measured.name}: {what}" for measured in found for what in measured.missed]
    if arguments.json:
        _write(arguments.json, [rows.to_data(measured) for measured in found])
    for what in missed:
        print(f"{DISTRIBUTION}: requirement missed: {what}", file=sys.stderr)
    return EXIT_MISSED if missed else 0


def _measure(benches: Sequence[Any], arguments: argparse.Namespace) -> list[Any]:
    from emulator import doctor  # noqa: PLC0415 - keeps the help text quick
    from emulator.bench import registry, rows  # noqa: PLC0415
    from emulator.run.alone import alone  # noqa: PLC0415
    from emulator.run.ending import orderly  # noqa: PLC0415
    from emulator.run.progress import Progress  # noqa: PLC0415

    doctor.require()
    note, found = Progress(quiet=arguments.quiet).note, []
    with alone("bench", arguments.alongside), orderly():
        print(f"load of the machine before: {os.getloadavg()[0]:.2f} over the last minute\n")
        for measured in registry.measure_all(benches, doctor.datapath(), note):
            print(f"{rows.to_text(measured)}\n", flush=True)
            found.append(measured)
    return found


def _check_target(path: Path | None) -> None:
    """A file that cannot be written is refused before minutes of measuring."""
    if path is not None and (path.is_dir() or not path.absolute().parent.is_dir()):
        raise MachineError(f"{path} cannot be written: it is a folder, or its folder is missing")


def _write(path: Path, data: Sequence[Any]) -> None:
    from emulator.run.machine import description  # noqa: PLC0415 - keeps the help text quick

    head = {"version": __version__, "machine": description(), "load": os.getloadavg()[0]}
    try:
        path.write_text(json.dumps({**head, "benches": data}, indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise MachineError(f"{path} cannot be written: {error.strerror}") from error
