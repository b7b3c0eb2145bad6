"""physics.html, physics.txt and physics.json: what the suite found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from emulator import __version__
from emulator.physics import charts, text
from emulator.physics.judging import Result
from emulator.report.html import environment, write_page
from emulator.results.files import json_text
from topologies.errors import MachineError

PAGE, TEXT, DATA = "physics.html", "physics.txt", "physics.json"
FORMAT = "fabriclab-physics"


@dataclass(frozen=True)
class Context:
    """What a page says about all cases.

    Attributes:
        clock: under which they ran.
        interrupted: the user ended the suite before it was done.
        machine: key -> words about where it ran.
    """

    clock: str
    interrupted: bool
    machine: Mapping[str, Any]


def write(results: Sequence[Result], context: Context, out: Path) -> Path:
    """Write all three into a folder, which is made when it is missing; the page's path.

    Raises:
        MachineError: they cannot be written.
    """
    make_folder(out)
    write_page(out / TEXT, text.to_text(results) + "\n")
    write_page(out / DATA, json_text(to_data(results, context)))
    return write_page(out / PAGE, render(results, context))


def make_folder(out: Path) -> None:
    """Make a folder for results; MachineError when that fails."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise MachineError(f"{out} cannot be created: {error.strerror}") from error


def to_data(results: Sequence[Result], context: Context) -> dict[str, Any]:
    """What physics.json holds."""
    return {
        "format": FORMAT,
        "version": __version__,
        "clock": context.clock,
        "interrupted": context.interrupted,
        "passed": all(result.passed for result in results),
        "machine": dict(context.machine),
        "cases": text.to_data(results),
    }


def render(results: Sequence[Result], context: Context) -> str:
    """The page as text."""
    return (
        environment()
        .get_template("physics.html.j2")
        .render(
            title=f"Physics under the {context.clock} clock",
            clock=context.clock,
            good=all(result.passed for result in results),
            conclusion=text.conclusion(results),
            interrupted=context.interrupted,
            header=text.HEADER,
            overview=charts.overview_svg(results) if results else "",
            cases=[_section(result) for result in results],
            machine=[(key, str(value)) for key, value in context.machine.items()],
            version=__version__,
        )
    )


def _section(result: Result) -> dict[str, Any]:
    case = result.case
    drawn = charts.panels_svg(case.name, case.title, result.panels) if result.panels else ""
    return {
        "case": case,
        "word": text.word(result.passed),
        "passed": result.passed,
        "rows": [(text.cells(row), row.passed) for row in result.rows],
        "sources": sorted({row.target.source for row in result.rows if row.target.source}),
        "reasons": list(result.reasons),
        "svg": drawn,
        "runs": [(label, folder.name) for label, folder in result.folders.items()],
        "wall": f"{result.wall_s:.0f} s",
    }
