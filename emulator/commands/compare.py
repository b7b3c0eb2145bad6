"""``fabriclab compare``: runs side by side, each against the first; existing ones or new ones."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from emulator import DISTRIBUTION
from emulator.commands.common import add_override_arguments, overrides
from emulator.commands.common_results import add_results_argument
from emulator.commands.common_run import (
    EXIT_INTERRUPTED,
    EXIT_INVALID,
    add_run_arguments,
    launched,
)
from topologies.errors import FabriclabError, SpecError

if TYPE_CHECKING:
    from emulator.run.series import Series

EXIT_FAILED = 2
T = TypeVar("T")
_MAX_NAMED = 4
_ENDINGS = (".yaml", ".yml")


def add_parser(commands: Any) -> None:
    """Add the sub-parser."""
    parser = commands.add_parser(
        "compare",
        help="run one file under several settings, or take existing runs, side by side",
        description="Puts runs side by side. Either name run folders or run ids, or one experiment "
        "file and the settings to run it under (needs root).",
    )
    parser.add_argument(
        "runs",
        metavar="RUN|FILE",
        nargs="+",
        help="run folders or run ids, the first is the yardstick; or one experiment file",
    )
    parser.add_argument("--profiles", metavar="A,B", help="run the file under these profiles")
    parser.add_argument(
        "--with",
        dest="changes",
        metavar='"LABEL: KEY=VALUE, ..."',
        action="append",
        default=[],
        help="run the file with these changes; repeatable; with --profiles, under each of them",
    )
    parser.add_argument(
        "--clock",
        metavar="A[,B]",
        help="run the file under this clock; live,virtual: under both, and say whether they agree",
    )
    add_override_arguments(parser)
    parser.add_argument(
        "--out", metavar="DIR", type=Path, help="where compare.html, .csv and .txt go"
    )
    add_results_argument(parser)
    add_run_arguments(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Write the comparison; print it and where its page is."""
    if is_experiment(arguments):
        return run_file(arguments, Path(arguments.runs[0]))
    from emulator.results.catalog import resolve_run  # noqa: PLC0415 - keeps the help text quick

    paths = [resolve_run(name, arguments.results) for name in arguments.runs]
    show(paths, arguments.out or default_out(paths, arguments.results))
    return 0


def is_experiment(arguments: argparse.Namespace) -> bool:
    """Whether the arguments name an experiment file; SpecError when they mix it with runs."""
    names: list[str] = arguments.runs
    files = [name for name in names if _is_file(name)]
    if files and len(names) > 1:
        way_out = "name one experiment file, or run folders"
        raise SpecError("compare", files[0], "is a file beside other files or runs", way_out)
    given = run_options(arguments)
    if given and not files and not names[0].endswith(_ENDINGS):
        rule = "has no meaning for runs that exist"
        raise SpecError(given[0], names[0], rule, "name an experiment file, or leave it out")
    return bool(files or (names[0].endswith(_ENDINGS) and not Path(names[0]).is_dir()))


def _is_file(name: str) -> bool:
    path = Path(name)
    return path.exists() and not path.is_dir()


def run_options(arguments: argparse.Namespace) -> list[str]:
    """Options that were given and that only mean something for an experiment file."""
    given: Mapping[str, object] = {
        "--profiles": arguments.profiles,
        "--with": arguments.changes,
        "--clock": arguments.clock,
        "--set": arguments.settings,
        "--seed": arguments.seed,
        "--budget": arguments.budget,
    }
    return [flag for flag, value in given.items() if value]


def run_file(arguments: argparse.Namespace, file: Path) -> int:
    """Run a file under all settings, compare what finished, say where everything is.

    Nothing is created before all settings have been checked. 0 when all runs are VALID.
    """
    from emulator import calibration, variants  # noqa: PLC0415 - keeps the help text quick
    from emulator.run import series  # noqa: PLC0415

    wanted = variants.variants_of(arguments.profiles, arguments.changes, arguments.clock)
    experiments = series.prepare(file, _common(arguments), wanted, calibration.cached())
    with launched(arguments, [experiment for _, experiment in experiments]) as launcher:
        done = series.run_series(launcher, experiments)
    missing = finish(done, arguments.out, arguments.results)
    if done.interrupted:
        return EXIT_INTERRUPTED
    if done.problems or missing:
        return EXIT_FAILED
    return EXIT_INVALID if done.invalid else 0


def _common(arguments: argparse.Namespace) -> Mapping[str, str]:
    """What holds under all settings."""
    common, clocks = overrides(arguments), arguments.clock
    if clocks and "," in clocks and common["clock"] != clocks:
        rule = f"contradicts --clock {clocks}"
        raise SpecError("--set clock", common["clock"], rule, "leave one of them out")
    return common


def finish(done: Series, out: Path | None, results: Path) -> list[str]:
    """Print the comparison of what finished, the reports' paths, and what is missing.

    Returns:
        A sentence for each page that could not be written; the others are.
    """
    from emulator.commands import report  # noqa: PLC0415 - keeps the help text quick
    from emulator.report.html import build_report  # noqa: PLC0415 - Matplotlib takes a second

    missing: list[str] = []
    # Reports first: the comparison links to them.
    tries = [_try(missing, partial(build_report, folder)) for folder in done.folders]
    pages = [page for written in tries for page in written]
    if len(done.finished) > 1:
        target = out or default_out(done.finished, results)
        _try(missing, lambda: show(done.finished, target))
    else:
        for folder in done.folders:
            report.show_table(folder)
    for page in pages:
        print(f"report: {page}")
    for problem in [*done.problems, *missing, *_cautions(done)]:
        print(f"{DISTRIBUTION}: {problem}", file=sys.stderr)
    return missing


def _try(problems: list[str], write: Callable[[], T]) -> list[T]:
    """What `write` returns, in a list; an error becomes one of the problems instead."""
    try:
        return [write()]
    except FabriclabError as error:
        problems.append(str(error))
        return []


def _cautions(done: Series) -> list[str]:
    """What a reader of the table must know."""
    cautions = [f"the run {label!r} is INVALID; its report says why" for label in done.invalid]
    if done.interrupted:
        several = len(done.finished) > 1
        what = "holds the runs that had finished" if several else "needs two runs that finished"
        cautions.append(f"ended early: the comparison {what}")
    return cautions


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
