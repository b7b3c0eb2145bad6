"""What commands about existing runs share."""

from __future__ import annotations

import argparse
from pathlib import Path

from emulator.results import columns


def add_results_argument(parser: argparse.ArgumentParser) -> None:
    """``--results DIR``: where runs are looked for."""
    parser.add_argument(
        "--results",
        metavar="DIR",
        type=Path,
        default=Path(columns.ROOT),
        help=f"folder of all runs (default: {columns.ROOT})",
    )
