"""``fabriclab compare``: runs side by side, each against the first."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from emulator.commands.common_results import add_results_argument

_MAX_NAMED = 4


def add_parser(commands: Any) -> None:
    """Add the sub-parser."""
    parser = commands.add_parser("compare", help="put runs side by side")
    parser.add_argument(
        "runs", metavar="RUN", nargs="+", help="run folders or run ids; the first is the yardstick"
    )
    parser.add_argument(
        "--out", metavar="DIR", type=Path, help="where compare.html, .csv and .txt go"
    )
    add_results_argument(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Write the comparison of existing runs; print it and where its page is."""
    from emulator.results.catalog import resolve_run  # noqa: PLC0415 - keeps the help text quick

    paths = [resolve_run(name, arguments.results) for name in arguments.runs]
    show(paths, arguments.out or default_out(paths, arguments.results))
    return 0


def show(paths: Sequence[Path], out: Path) -> None:
    """Write the comparison of runs into a folder; print it and where its page is."""
    from emulator.report import compare  # noqa: PLC0415 - Matplotlib takes a second

    page = compare.build_compare(paths, out)
    print((out / compare.TEXT).read_text(encoding="utf-8"))
    print(f"comparison: {page}")


def default_out(paths: Sequence[Path], root: Path) -> Path:
    """A folder beside the runs, named after their ids."""
    from emulator.results.reader import read_manifest  # noqa: PLC0415

    ids = [str(read_manifest(path).get("run")) for path in paths]
    more = [f"and-{len(ids) - _MAX_NAMED}-more"] if len(ids) > _MAX_NAMED else []
    return root / "-".join(["compare", *ids[:_MAX_NAMED], *more])
