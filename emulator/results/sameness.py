"""Whether two run folders hold the same: hashes, what the results depend on, file by file. PURE.

A run's identity and its wall times never count: they are no result. Under the virtual clock all
else of two runs of one experiment and seed must be equal, to the byte.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from emulator.results import columns
from emulator.results.reader import RunReader
from topologies.errors import SpecError

SCHEDULE, RESULTS = "schedule", "results"
EQUAL, DIFFERENT, ONE_SIDED = "equal", "different", "only in one"
IDENTITY = ("run", "started")
"""Keys of the manifest by which each run is told from all others."""
NOT_COMPARED: Mapping[str, str] = {
    columns.WALL: "wall times",
    columns.REPORT: "made from the other files",
}
"""Files that are left out, and why."""
MAX_DETAILS = 5
_SHOWN = 60
_TEXT = (".csv", ".log", ".yaml", ".txt", ".json")


@dataclass(frozen=True)
class Change:
    """A value that two runs do not share.

    Attributes:
        what: its key path, such as ``versions.numpy``.
        first: of the first run; None where it has none.
        second: of the second.
    """

    what: str
    first: object
    second: object

    def __str__(self) -> str:
        """Both values, as long as they can be read in a line."""
        return f"{self.what}: {short(self.first)}, {short(self.second)}"


@dataclass(frozen=True)
class FileState:
    """One file of two runs.

    Attributes:
        name: relative to the run folders.
        state: ``equal``, ``different`` or ``only in one``.
        details: what differs, a few clauses.
    """

    name: str
    state: str
    details: Sequence[str] = ()


@dataclass(frozen=True)
class Sameness:
    """What two run folders have in common.

    Attributes:
        first: the first run.
        second: the second.
        depends_on: what their results depend on and is not the same.
        recorded: whether both say what their results depend on.
        files: every file of either, by name.
    """

    first: RunReader
    second: RunReader
    depends_on: Sequence[Change]
    recorded: bool
    files: Sequence[FileState]

    def hashes(self, name: str) -> tuple[str | None, str | None]:
        """A hash of both runs' summaries; `name` is ``schedule`` or ``results``."""
        both = [(run.summary or {}).get("hashes", {}).get(name) for run in self.runs]
        return both[0], both[1]

    @property
    def runs(self) -> tuple[RunReader, RunReader]:
        """Both."""
        return self.first, self.second

    def same(self, name: str) -> bool:
        """Whether both runs have the hash, and the same."""
        first, second = self.hashes(name)
        return first is not None and first == second

    @property
    def differing(self) -> list[FileState]:
        """Files that are not equal."""
        return [file for file in self.files if file.state != EQUAL]

    @property
    def identical(self) -> bool:
        """True when nothing differs but identity and wall times."""
        return not self.differing and self.same(RESULTS) and self.same(SCHEDULE)


def compare(first: Path, second: Path) -> Sameness:
    """Compares two finished runs.

    Raises:
        SpecError: one is no run folder, is damaged, or did not come to its end.
    """
    runs = RunReader.open(first), RunReader.open(second)
    entries = [run.manifest.get(columns.DEPENDS_ON) for run in runs]
    known = [entry if isinstance(entry, Mapping) else {} for entry in entries]
    return Sameness(
        first=runs[0],
        second=runs[1],
        depends_on=changes(known[0], known[1]) if all(known) else [],
        recorded=all(known),
        files=list(_files(*runs)),
    )


def short(value: object) -> str:
    """A value in a line of a table."""
    text = "none" if value is None else str(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."


def changes(first: Mapping[str, Any], second: Mapping[str, Any], prefix: str = "") -> list[Change]:
    """All values of two mappings that differ, by key path."""
    found: list[Change] = []
    for key in dict.fromkeys([*first, *second]):
        a, b, path = first.get(key), second.get(key), f"{prefix}{key}"
        if isinstance(a, Mapping) and isinstance(b, Mapping):
            found += changes(a, b, f"{path}.")
        elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
            found += changes(_numbered(a), _numbered(b), f"{path}.")
        elif a != b:
            found.append(Change(path, a, b))
    return found


def _numbered(items: Sequence[Any]) -> dict[str, Any]:
    return {str(at): item for at, item in enumerate(items)}


def _names(folder: Path) -> set[str]:
    """Files of a run, hidden ones and those that do not count aside."""
    found = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    plain = (path for path in found if not any(part.startswith(".") for part in path.parts))
    return {str(path) for path in plain} - set(NOT_COMPARED)


def _files(first: RunReader, second: RunReader) -> Iterator[FileState]:
    mine, others = _names(first.path), _names(second.path)
    for name in sorted(mine | others):
        if name in mine & others:
            yield _file(name, first, second)
        else:
            holder = "first" if name in mine else "second"
            yield FileState(name, ONE_SIDED, [f"only in the {holder} run"])


def _file(name: str, first: RunReader, second: RunReader) -> FileState:
    contents = [_content(run, name) for run in (first, second)]
    if contents[0] == contents[1]:
        return FileState(name, EQUAL)
    paths = first.path / name, second.path / name
    details = _details(name, contents, paths)
    return FileState(name, DIFFERENT, details) if details else FileState(name, EQUAL)


def _content(run: RunReader, name: str) -> bytes:
    """A file's bytes; texts with their run's own names replaced by what all runs have."""
    content = (run.path / name).read_bytes()
    if not name.endswith(_TEXT):
        return content
    return content.replace(run.path.name.encode(), b"<folder>")


def _details(name: str, contents: Sequence[bytes], paths: tuple[Path, Path]) -> list[str]:
    """What differs; nothing where it is only what each run has for itself."""
    try:
        if name.endswith(".json"):
            return _json_details(name, contents)
        if name.endswith(".npz"):
            return _array_details(paths)
    except (ValueError, SpecError):
        return ["cannot be read, and the bytes differ"]
    return _line_details(contents) if name.endswith(_TEXT) else _byte_details(contents)


def _json_details(name: str, contents: Sequence[bytes]) -> list[str]:
    values: list[Any] = [json.loads(content) for content in contents]
    if not all(isinstance(value, dict) for value in values):
        return _line_details(contents)
    own: set[str] = set()
    if name == columns.MANIFEST:
        # What results depend on is said on its own.
        own = {*IDENTITY, columns.DEPENDS_ON}
    first, second = ({k: v for k, v in value.items() if k not in own} for value in values)
    return _few([str(change) for change in changes(first, second)])


def _array_details(paths: tuple[Path, Path]) -> list[str]:
    with (
        np.load(paths[0], allow_pickle=False) as first,
        np.load(paths[1], allow_pickle=False) as second,
    ):
        found = []
        for name in sorted({*first.files, *second.files}):
            if name not in first.files or name not in second.files:
                found.append(f"{name} is in one only")
            elif first[name].shape != second[name].shape:
                found.append(f"{name} has the shapes {first[name].shape}, {second[name].shape}")
            elif not np.array_equal(first[name], second[name]):
                count = int((first[name] != second[name]).sum())
                found.append(f"{name} differs in {count:,} of {first[name].size:,} values")
        return _few(found)


def _line_details(contents: Sequence[bytes]) -> list[str]:
    lines = [content.split(b"\n") for content in contents]
    unlike = [at for at, (a, b) in enumerate(zip(*lines, strict=False), 1) if a != b]
    counts = [len(side) - 1 for side in lines]
    found = []
    if counts[0] != counts[1]:
        found.append(f"{counts[0]:,} and {counts[1]:,} lines")
    if len(unlike) == 1:
        found.append(f"line {unlike[0]:,} differs")
    elif unlike:
        found.append(f"{len(unlike):,} lines differ, the first is line {unlike[0]:,}")
    return found or ["one ends earlier"]


def _byte_details(contents: Sequence[bytes]) -> list[str]:
    a, b = contents
    same = next((at for at, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), len(a))
    return [f"{len(a):,} and {len(b):,} bytes, equal up to byte {min(same, len(a), len(b)):,}"]


def _few(details: list[str]) -> list[str]:
    more = len(details) - MAX_DETAILS
    return [*details[:MAX_DETAILS], f"and {more} more"] if more > 0 else details
