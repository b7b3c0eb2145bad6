"""Samples of queues over time: their shape, their files, and the recorder that makes chunks."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from emulator.results.columns import (
    LATER_QUEUE_ARRAYS,
    QUEUE_ARRAYS,
    QUEUE_NAMES,
    TRAFFIC_CLASSES,
)
from topologies.errors import SpecError

if TYPE_CHECKING:
    from emulator.results.store import RunFolder

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class QueueSeries:
    """What queues.npz holds; counters are cumulative since the run's start.

    Attributes:
        ports: interface names, axis P.
        switches: switch names, axis S.
        arrays: name -> array with the axes that `columns.QUEUE_ARRAYS` gives (T, P, S, C = class).
    """

    ports: tuple[str, ...]
    switches: tuple[str, ...]
    arrays: Mapping[str, Ints]

    def __post_init__(self) -> None:
        """Refuse arrays that are missing or have a wrong shape."""
        axes = {"P": len(self.ports), "S": len(self.switches), "C": TRAFFIC_CLASSES}
        axes["T"] = len(self.arrays["time_ns"]) if "time_ns" in self.arrays else 0
        for name, letters in QUEUE_ARRAYS.items():
            wanted = tuple(axes[letter] for letter in letters)
            shape = self.arrays[name].shape if name in self.arrays else None
            if shape != wanted:
                raise SpecError(name, shape, f"must be an array of shape {wanted}")

    @property
    def time_ns(self) -> Ints:
        """Model time of each sample, ns."""
        return self.arrays["time_ns"]

    def of_port(self, array: str, port: str) -> Ints:
        """One port's column of a ``TP`` array over time; KeyError for an unknown port."""
        if port not in self.ports:
            raise KeyError(port)
        return self.arrays[array][:, self.ports.index(port)]

    def names(self) -> dict[str, tuple[str, ...]]:
        """The name arrays: ports and switches."""
        return {"ports": self.ports, "switches": self.switches}

    def save(self, path: Path) -> None:
        """Write one compressed .npz file (not atomic: see `files.replace_atomic`)."""
        members: dict[str, Any] = {key: _name_array(value) for key, value in self.names().items()}
        members |= self.arrays
        with path.open("wb") as handle:
            np.savez_compressed(handle, **members)


def load(path: Path) -> QueueSeries:
    """Read one .npz file; SpecError when it is damaged or is something else."""
    try:
        with path.open("rb") as handle, np.load(handle, allow_pickle=False) as data:
            names = {name: tuple(str(item) for item in data[name]) for name in QUEUE_NAMES}
            arrays = {
                name: data[name].astype(np.int64, copy=False)
                for name in QUEUE_ARRAYS
                if name in data or name not in LATER_QUEUE_ARRAYS
            }
        for name in LATER_QUEUE_ARRAYS:
            arrays.setdefault(name, np.zeros_like(arrays["dropped"]))
        return QueueSeries(names["ports"], names["switches"], arrays)
    except SpecError as error:
        raise error.under("", file=str(path)) from error
    except (KeyError, ValueError, EOFError, OSError, zipfile.BadZipFile) as error:
        rule = f"cannot be read as queue samples ({error})"
        raise SpecError("queues", path.name, rule, file=str(path)) from error


def concat(parts: Sequence[QueueSeries]) -> QueueSeries:
    """The parts one after the other; SpecError when they are of different ports."""
    first = parts[0]
    for part in parts[1:]:
        if part.names() != first.names():
            raise SpecError("ports", list(part.ports), "differ from the chunk before")
    arrays = {name: np.concatenate([part.arrays[name] for part in parts]) for name in QUEUE_ARRAYS}
    return QueueSeries(first.ports, first.switches, arrays)


def chunk_files(directory: Path) -> list[Path]:
    """The chunk files of a run in the order of time."""
    chunks = [path for path in directory.glob("*.npz") if path.stem.isdigit()]
    return sorted(chunks, key=lambda path: int(path.stem))


def merge_chunks(directory: Path, target: Path) -> None:
    """Join all chunks into one file; one array is in memory at a time, so long runs fit.

    Args:
        directory: the folder of chunks, at least one.
        target: the file to write (not atomic: see `files.replace_atomic`).
    """
    chunks = chunk_files(directory)
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        with np.load(chunks[0], allow_pickle=False) as first:
            for name in QUEUE_NAMES:
                _write_member(archive, name, first[name])
        for name in QUEUE_ARRAYS:
            _write_member(archive, name, np.concatenate([_member(path, name) for path in chunks]))


def _member(path: Path, name: str) -> NDArray[Any]:
    with np.load(path, allow_pickle=False) as data:
        array: NDArray[Any] = data[name]
    return array


def _write_member(archive: zipfile.ZipFile, name: str, array: NDArray[Any]) -> None:
    with archive.open(f"{name}.npy", "w", force_zip64=True) as handle:
        np.lib.format.write_array(handle, array, allow_pickle=False)


def _name_array(names: Sequence[str]) -> NDArray[np.str_]:
    return np.array(names, dtype=np.str_) if names else np.zeros(0, dtype="<U1")


class QueueRecorder:
    """Collects samples and hands them to a run folder in chunks.

    At most `chunk_samples` samples are in memory only; call `flush` at the end.

    Args:
        folder: where the chunks go.
        ports: interface names, in the order of the samples' columns.
        switches: switch names, in the order of `buffer_used`.
        chunk_samples: samples per chunk file.
    """

    def __init__(
        self,
        folder: RunFolder,
        ports: Sequence[str],
        switches: Sequence[str],
        chunk_samples: int = 100,
    ) -> None:
        self._folder, self._ports, self._switches = folder, tuple(ports), tuple(switches)
        self._chunk_samples = chunk_samples
        self._rows: dict[str, list[Any]] = {name: [] for name in QUEUE_ARRAYS}

    def add(self, time_ns: int, **sample: Any) -> None:
        """Add one sample.

        Args:
            time_ns: model time, ns.
            **sample: ``bytes_tc`` [P][8], ``tx_bytes``, ``dropped``, ``trimmed``, ``marked`` [P]
                and ``buffer_used`` [S]; ``bytes`` is the sum over the classes.
        """
        per_class = np.asarray(sample["bytes_tc"], dtype=np.int64)
        row = {**sample, "time_ns": time_ns, "bytes": per_class.reshape(-1, 8).sum(axis=1)}
        for name in QUEUE_ARRAYS:
            self._rows[name].append(np.array(row[name], dtype=np.int64))
        if len(self._rows["time_ns"]) >= self._chunk_samples:
            self.flush()

    def flush(self) -> None:
        """Write what is in memory as one chunk."""
        if not self._rows["time_ns"]:
            return
        arrays = {name: np.stack(rows) for name, rows in self._rows.items()}
        self._rows = {name: [] for name in QUEUE_ARRAYS}
        self._folder.add_queue_chunk(QueueSeries(self._ports, self._switches, arrays))
