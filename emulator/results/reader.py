"""The reader's side of a run folder: read-only, of finished runs and of those cut short."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray

from emulator.results import columns, queues
from emulator.results.summary import completed, validate_summary
from topologies.errors import SpecError

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Table:
    """A CSV table by columns.

    Attributes:
        path: the file, for messages.
        columns: column -> fields as text, all of one length.
    """

    path: Path
    columns: Mapping[str, Sequence[str]]

    def __len__(self) -> int:
        """Number of rows."""
        return len(next(iter(self.columns.values()), ()))

    def text(self, column: str) -> Sequence[str]:
        """A column as it is written."""
        return self.columns[column]

    def numbers(self, column: str) -> Floats:
        """A column of numbers; NaN where the field is empty. Exact up to 2**53."""
        fields = self.columns[column]
        try:
            return np.array([float(item) if item else np.nan for item in fields], dtype=np.float64)
        except ValueError as error:
            raise self._not_a_number(column) from error

    def _not_a_number(self, column: str) -> SpecError:
        for line, item in enumerate(self.columns[column], start=2):
            try:
                float(item or 0)
            except ValueError:
                return SpecError(
                    f"line {line}, {column}", item, "is not a number", file=str(self.path)
                )
        raise AssertionError(column)

    def rows(self) -> Iterator[dict[str, str]]:
        """The rows as mappings of text."""
        for values in zip(*self.columns.values(), strict=True):
            yield dict(zip(self.columns, values, strict=True))


@dataclass
class RunReader:
    """An existing run folder.

    Attributes:
        path: the folder.
        manifest: manifest.json.
        summary: summary.json, or None when the run did not come to its end.
        notes: what was found to be missing or cut off while reading, sentences.
    """

    path: Path
    manifest: Mapping[str, Any]
    summary: Mapping[str, Any] | None
    notes: list[str] = field(default_factory=list)

    @classmethod
    def open(cls, path: Path, allow_incomplete: bool = False) -> RunReader:
        """Open a folder.

        Args:
            path: the run folder.
            allow_incomplete: also take a run without summary.json (running, or cut short).

        Raises:
            SpecError: missing, not a run folder, of another version, damaged, or incomplete.
        """
        manifest = read_manifest(path)
        summary = _read_summary(path)
        if summary is None and not allow_incomplete:
            raise SpecError(
                "run",
                str(path),
                f"has no {columns.SUMMARY}: the run is still going or was cut short",
                f"see what there is with: fabriclab report {path}",
            )
        return cls(path, manifest, summary)

    @property
    def complete(self) -> bool:
        """True when the run came to its end."""
        return self.summary is not None

    @property
    def name(self) -> str:
        """The experiment's name."""
        return str((self.summary or self.manifest).get("name") or self.path.name)

    def spec_text(self) -> str:
        """spec.yaml as it stands; empty when it is missing."""
        file = self.path / columns.SPEC
        return file.read_text(encoding="utf-8", errors="replace") if file.is_file() else ""

    def spec(self) -> Mapping[str, Any]:
        """spec.yaml as a mapping; empty when it is missing or damaged (with a note)."""
        try:
            value = yaml.safe_load(self.spec_text())
        except yaml.YAMLError as error:
            self._note(f"{columns.SPEC} cannot be read: {' '.join(str(error).split())}")
            return {}
        return value if isinstance(value, Mapping) else {}

    def table(self, name: str) -> Table:
        """A CSV table; empty when the file is missing. A half last line is left out (see notes)."""
        file = self.path / columns.csv_name(name)
        wanted = tuple(columns.CSV_TABLES[name])
        if not file.is_file():
            self._note(f"{file.name} is missing")
            return Table(file, dict.fromkeys(wanted, ()))
        raw = file.read_bytes()
        if raw and not raw.endswith(b"\n"):
            self._note(f"the last line of {file.name} is cut off and left out")
            raw = raw[: raw.rfind(b"\n") + 1]
        return _parse_table(file, wanted, raw.decode("utf-8", errors="replace"))

    def queues(self) -> queues.QueueSeries | None:
        """The queue samples: queues.npz, else the chunks of a run that was cut short, else None."""
        merged = self.path / columns.QUEUES
        if merged.is_file():
            return queues.load(merged)
        chunks = queues.chunk_files(self.path / columns.QUEUE_CHUNKS)
        if not chunks:
            return None
        self._note("queue samples were read from the chunks of an unfinished run")
        return queues.concat([queues.load(path) for path in chunks])

    def _note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)


def _read_json(file: Path) -> Mapping[str, Any]:
    try:
        value = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SpecError("file", file.name, f"cannot be read ({error})", file=str(file)) from error
    if not isinstance(value, dict):
        raise SpecError("file", file.name, "must hold a JSON object", file=str(file))
    return value


def read_manifest(path: Path) -> Mapping[str, Any]:
    """manifest.json of a run folder; SpecError when the path is not one."""
    way_out = "give a folder that `fabriclab run` made; `fabriclab list` shows them"
    if not path.exists():
        raise SpecError("run", str(path), "does not exist", way_out)
    if not path.is_dir() or not (path / columns.MANIFEST).is_file():
        raise SpecError("run", str(path), f"is not a run folder (no {columns.MANIFEST})", way_out)
    manifest = _read_json(path / columns.MANIFEST)
    if manifest.get("format") != columns.FORMAT:
        raise SpecError("run", str(path), "is not a run folder of fabriclab", way_out)
    if manifest.get("format_version") != columns.FORMAT_VERSION:
        rule = f"is of another version (this one reads {columns.FORMAT_VERSION})"
        file = str(path / columns.MANIFEST)
        raise SpecError("format_version", manifest.get("format_version"), rule, file=file)
    return manifest


def _read_summary(path: Path) -> Mapping[str, Any] | None:
    file = path / columns.SUMMARY
    if not file.is_file():
        return None
    summary = completed(_read_json(file))
    problems = validate_summary(summary)
    if problems:
        raise SpecError("summary", file.name, "; ".join(problems), file=str(file))
    return summary


def _parse_table(file: Path, wanted: Sequence[str], text: str) -> Table:
    rows = list(csv.reader(io.StringIO(text, newline="")))
    header = tuple(rows[0]) if rows else tuple(wanted)
    if header != tuple(wanted):
        rule = f"must have the columns {', '.join(wanted)}"
        raise SpecError("line 1", ",".join(header), rule, file=str(file))
    for line, row in enumerate(rows[1:], start=2):
        if len(row) != len(wanted):
            rule = f"must have {len(wanted)} fields, has {len(row)}"
            raise SpecError(f"line {line}", ",".join(row), rule, file=str(file))
    body = zip(*rows[1:], strict=True) if len(rows) > 1 else ((),) * len(wanted)
    return Table(file, {name: tuple(values) for name, values in zip(wanted, body, strict=True)})
