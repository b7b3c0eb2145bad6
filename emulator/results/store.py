"""The writer's side of a run folder.

Rows reach the kernel as they are appended, whole files are replaced atomically, so that a killed
run leaves everything that happened up to then. A full disk ends the tables, not the run.
"""

from __future__ import annotations

import csv
import io
import re
import shutil
import threading
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from emulator.results import columns
from emulator.results.files import (
    LineFile,
    SafeWriter,
    json_text,
    replace_atomic,
    write_atomic,
)
from topologies.errors import MachineError

if TYPE_CHECKING:
    from emulator.results.queues import QueueSeries
    from emulator.results.reader import RunReader

Row = Mapping[str, object] | Sequence[object]
_SLUG_LENGTH = 60


def folder_name(name: str, started: datetime, run_id: str) -> str:
    """``<name>-<time>-<id>`` with a name that every file system takes."""
    slug = re.sub(r"[^A-Za-z0-9._]+", "-", name).strip("-.")[:_SLUG_LENGTH] or "run"
    return f"{slug}-{started:%Y%m%d-%H%M%S}-{run_id}"


def new_folder(root: Path, name: str, run_id: str, started: datetime) -> Path:
    """Makes the empty folder of a run; MachineError when that cannot be."""
    path = root / folder_name(name, started, run_id)
    try:
        path.mkdir(parents=True)
    except OSError as error:
        raise MachineError(_cannot_create(path, error)) from error
    return path


class RunFolder:
    """A run folder that is being written; use `create` (or `attach` in a second process).

    Each table has one writing process; within it, calls may come from several threads.

    Attributes:
        path: the folder.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._writer = SafeWriter(path, path / columns.RESERVE)
        self._files: dict[str, LineFile] = {}
        self._asked: dict[str, int] = {}
        self._lock = threading.RLock()
        self._chunks = 0

    @classmethod
    def create(cls, root: Path, name: str, run_id: str, started: datetime) -> RunFolder:
        """Make the folder, its first manifest and the empty tables.

        Args:
            root: folder of all results; made when it is missing.
            name: the experiment's name.
            run_id: identifies the run.
            started: wall-clock time of the start.

        Raises:
            MachineError: the folder cannot be made or written; nothing of it is left.
        """
        return cls.adopt(new_folder(root, name, run_id, started), name, run_id, started)

    @classmethod
    def adopt(cls, path: Path, name: str, run_id: str, started: datetime) -> RunFolder:
        """Make an empty folder a run folder: its first manifest and the empty tables.

        Args: as of `create`.

        Raises:
            MachineError: nothing can be written there; the folder is gone.
        """
        folder = cls(path)
        folder._start({"run": run_id, "name": name, "started": started.isoformat()})
        return folder

    def _start(self, manifest: Mapping[str, object]) -> None:
        self._writer.hold_reserve()
        self.write_manifest(manifest)
        for table in columns.CSV_TABLES:
            self.extend(table, ())
        if self.degraded is not None:
            self.close()
            shutil.rmtree(self.path, ignore_errors=True)
            raise MachineError(f"{self.path}: no results can be written: {self.degraded}")

    @classmethod
    def attach(cls, path: Path) -> RunFolder:
        """Write into a folder that another process of the same run created."""
        return cls(path)

    @staticmethod
    def open(path: Path, allow_incomplete: bool = False) -> RunReader:
        """Read an existing folder; see `reader.RunReader.open`."""
        from emulator.results.reader import RunReader  # noqa: PLC0415 - reader needs NumPy

        return RunReader.open(path, allow_incomplete)

    @property
    def degraded(self) -> str | None:
        """Why something of this run is missing (full disk), a sentence; None while all is well."""
        if self._writer.degraded is None:
            return None
        lost = ", ".join(f"{count} rows of {name}" for name, count in self.lost_rows.items())
        return f"{self._writer.degraded}; not written: {lost}" if lost else self._writer.degraded

    @property
    def lost_rows(self) -> dict[str, int]:
        """File name -> rows that were appended but could not be written; empty when none."""
        lost = {name: asked - self._written(name) for name, asked in self._asked.items()}
        return {columns.csv_name(name): count for name, count in lost.items() if count}

    def _written(self, table: str) -> int:
        return self._files[table].lines if table in self._files else 0

    def append(self, table: str, row: Row) -> bool:
        """Append one row to ``<table>.csv``; False when it could not be written.

        Args:
            table: a name in `columns.CSV_TABLES`.
            row: a mapping with exactly the table's columns, or their values in file order.
                None becomes an empty field.
        """
        return self.extend(table, (row,))

    def extend(self, table: str, rows: Iterable[Row]) -> bool:
        """Append rows with one write; False when (some of) them could not be written."""
        names = tuple(columns.CSV_TABLES[table])
        values = [_row_values(table, names, row) for row in rows]
        with self._lock:
            self._asked[table] = self._asked.get(table, 0) + len(values)
            return self._writer.run(
                columns.csv_name(table), lambda: self._write_rows(table, names, values), retry=False
            )

    def _write_rows(
        self, table: str, names: Sequence[str], values: Sequence[Sequence[object]]
    ) -> None:
        if table not in self._files:
            file = LineFile(self.path / columns.csv_name(table))
            self._files[table] = file
            if file.is_empty:
                file.append(_csv_text([names]))
                file.lines = 0
        if values:
            self._files[table].append(_csv_text(values))

    def write_text(self, name: str, text: str) -> bool:
        """Write a whole file atomically; False when that failed (see `degraded`)."""
        with self._lock:
            return self._writer.run(name, lambda: write_atomic(self.path / name, text.encode()))

    def copy_in(self, name: str, source: Path) -> bool:
        """Copy a file from elsewhere, atomically; False when that failed (see `degraded`)."""
        with self._lock:
            return self._writer.run(name, lambda: self._copy(self.path / name, source))

    def _copy(self, target: Path, source: Path) -> None:
        target.parent.mkdir(exist_ok=True)
        replace_atomic(target, lambda temporary: shutil.copyfile(source, temporary))

    def write_json(self, name: str, value: Mapping[str, object]) -> bool:
        """Write a JSON file atomically; NaN becomes null."""
        return self.write_text(name, json_text(value))

    def write_spec(self, text: str) -> bool:
        """Write spec.yaml, the experiment as resolved."""
        return self.write_text(columns.SPEC, text)

    def write_manifest(self, manifest: Mapping[str, object]) -> bool:
        """Write manifest.json; the mark that this is a run folder is added."""
        mark = {"format": columns.FORMAT, "format_version": columns.FORMAT_VERSION}
        return self.write_json(columns.MANIFEST, {**mark, **manifest})

    def write_summary(self, summary: Mapping[str, object]) -> bool:
        """Write summary.json; its existence says that the run came to its end."""
        self._writer.release_reserve()
        return self.write_json(columns.SUMMARY, summary)

    def add_queue_chunk(self, samples: QueueSeries) -> bool:
        """Write one chunk of queue samples as ``queues/NNNN.npz``."""
        with self._lock:
            self._chunks += 1
            name = f"{columns.QUEUE_CHUNKS}/{self._chunks:04d}.npz"
            return self._writer.run(name, lambda: self._write_chunk(name, samples), retry=False)

    def _write_chunk(self, name: str, samples: QueueSeries) -> None:
        target = self.path / name
        target.parent.mkdir(exist_ok=True)
        replace_atomic(target, samples.save)

    def finish_queues(self) -> bool:
        """Merge the chunks into queues.npz and remove them; the chunks stay when that fails."""
        with self._lock:
            return self._writer.run(columns.QUEUES, self._merge)

    def _merge(self) -> None:
        from emulator.results import queues  # noqa: PLC0415 - keeps NumPy out of the plain writer

        directory = self.path / columns.QUEUE_CHUNKS
        if not queues.chunk_files(directory):
            return
        target = self.path / columns.QUEUES
        replace_atomic(target, lambda path: queues.merge_chunks(directory, path))
        shutil.rmtree(directory)

    def close(self) -> None:
        """Close all files; harmless when done twice."""
        with self._lock:
            for file in self._files.values():
                file.close()
            self._writer.release_reserve()

    def __enter__(self) -> RunFolder:
        """The folder itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Merge the queue samples and close, also after an error."""
        self.finish_queues()
        self.close()


def _cannot_create(path: Path, error: OSError) -> str:
    return (
        f"{path}: the results folder cannot be created ({error.strerror}); "
        "give another place with --results, or free it"
    )


def _row_values(table: str, names: Sequence[str], row: Row) -> list[object]:
    if isinstance(row, Mapping):
        unknown = set(row) - set(names)
        if unknown or len(row) != len(names):
            raise ValueError(f"{table}.csv has the columns {list(names)}, got {list(row)}")
        row = [row[name] for name in names]
    if len(row) != len(names):
        raise ValueError(f"{table}.csv has {len(names)} columns, got {len(row)} values: {row!r}")
    return [_cell(value) for value in row]


def _cell(value: object) -> object:
    if isinstance(value, bool):
        return int(value)
    return " ".join(value.splitlines()) if isinstance(value, str) else value


def _csv_text(rows: Iterable[Sequence[object]]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue()
