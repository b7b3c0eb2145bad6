"""The run folders below a results folder: finding them, and one line about each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from emulator.results import columns
from emulator.results.reader import RunReader, read_manifest
from emulator.results.table import align
from topologies.errors import SpecError

RESULTS = Path(columns.ROOT)

INCOMPLETE, DAMAGED = "INCOMPLETE", "DAMAGED"


@dataclass(frozen=True)
class Entry:
    """What `list` says about a run.

    Attributes:
        started: wall-clock time of the start, ISO 8601.
        run: its id.
        name: the experiment's name.
        profile: its profile; "" when unknown.
        policy: its routing policy; "" when unknown.
        seed: its seed; "" when unknown.
        verdict: VALID, INVALID, INCOMPLETE (no summary) or DAMAGED (cannot be read).
        folder: path of the folder.
    """

    started: str
    run: str
    name: str
    profile: str
    policy: str
    seed: str
    verdict: str
    folder: str


def is_run_folder(path: Path) -> bool:
    """True when the folder carries the mark of a run that this version reads."""
    try:
        return bool(read_manifest(path))
    except SpecError:
        return False


def find_runs(root: Path) -> list[Path]:
    """Run folders directly below `root`, oldest first (by the start in the manifest)."""
    if not root.is_dir():
        return []
    runs = [path for path in root.iterdir() if path.is_dir() and is_run_folder(path)]
    return sorted(runs, key=lambda path: (str(read_manifest(path).get("started")), path.name))


def resolve_run(name: str, root: Path = RESULTS) -> Path:
    """The run folder that the user means.

    Args:
        name: a path, a run's id, a folder's name, or the beginning of one of them.
        root: where to look for it when it is not a path.

    Raises:
        SpecError: no run fits, or several do.
    """
    path = Path(name)
    if path.exists():
        return path
    runs = find_runs(root)
    exact = [run for run in runs if name in _names(run)]
    fitting = exact or [run for run in runs if any(n.startswith(name) for n in _names(run))]
    if len(fitting) == 1:
        return fitting[0]
    way_out = "see `fabriclab list`"
    if fitting:
        found = ", ".join(run.name for run in fitting[:5])
        raise SpecError("run", name, f"fits {len(fitting)} runs ({found})", way_out)
    raise SpecError("run", name, f"is neither a folder nor a run in {root}", way_out)


def _names(run: Path) -> tuple[str, str]:
    return str(read_manifest(run).get("run")), run.name


def latest_run(root: Path = RESULTS) -> Path:
    """The run that was started last; SpecError when there is none."""
    runs = find_runs(root)
    if not runs:
        raise SpecError("run", str(root), "holds no run", "name a run folder, or --results")
    return runs[-1]


def entry_of(path: Path) -> Entry:
    """What there is to say about one run folder."""
    manifest = read_manifest(path)
    summary: dict[str, Any] = {}
    try:
        run = RunReader.open(path, allow_incomplete=True)
        summary = dict(run.summary or {"verdict": INCOMPLETE})
    except SpecError:
        summary = {"verdict": DAMAGED}
    known = {**manifest, **summary}
    fields = {key: _text(known.get(key)) for key in Entry.__dataclass_fields__}
    return Entry(**fields | {"folder": str(path)})


def _text(value: object) -> str:
    return "" if value is None else str(value)


def list_text(entries: Sequence[Entry]) -> str:
    """A table of runs for a terminal."""
    header = ["started", "run", "name", "profile", "policy", "seed", "verdict"]
    rows = [[getattr(entry, key) or "-" for key in header] for entry in entries]
    return align([header, *([row[0][:19].replace("T", " "), *row[1:]] for row in rows)])


def list_data(entries: Sequence[Entry]) -> list[dict[str, str]]:
    """The same for programs."""
    return [asdict(entry) for entry in entries]
