"""``fabriclab doctor``: what this machine has and lacks, and how to get it."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from emulator.commands.common_results import add_results_argument

EXIT_NOT_READY = 2


def add_parser(commands: Any) -> None:
    """Add the sub-parser."""
    parser = commands.add_parser("doctor", help="say what this machine has and lacks")
    parser.add_argument("--json", action="store_true", help="print JSON instead of text")
    add_results_argument(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the findings; 0 when a run can start."""
    from emulator import doctor  # noqa: PLC0415 - keeps the help text quick
    from emulator.remarks import remarks  # noqa: PLC0415

    findings = [*doctor.examine(), *remarks(arguments.results)]
    lacking = [finding.what for finding in doctor.missing(findings)]
    if arguments.json:
        rows = [asdict(finding) for finding in findings]
        print(json.dumps({"ready": not lacking, "findings": rows}, indent=2))
    else:
        print("\n".join(_text(findings, lacking)))
    return EXIT_NOT_READY if lacking else 0


def _text(findings: Sequence[Any], lacking: Sequence[str]) -> list[str]:
    from emulator.doctor import MISSING, OK, REMARK  # noqa: PLC0415
    from emulator.tables import aligned  # noqa: PLC0415

    marks = {OK: "ok", REMARK: "note", MISSING: "MISSING"}
    lines = aligned([(marks[entry.state], entry.what, entry.detail) for entry in findings])
    verdict = f"no run can start here: {', '.join(lacking)}" if lacking else "runs can start here"
    return [*lines, "", verdict]
