"""Input files of an experiment: what they contain, and how a run folder keeps them.

A run folder holds copies of the files that its experiment reads, and its spec.yaml names these. So
the folder alone repeats the run, wherever it is taken, and two runs from different places leave
equal files. Only a file of more than `MAX_BYTES` stays where it is.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from emulator.spec.dump import document_to_yaml, to_document
from emulator.spec.load import FILE_KEYS
from emulator.spec.model import Experiment
from topologies.errors import MachineError

FOLDER = "inputs"
"""Sub-folder of the run folder."""
MAX_BYTES = 32_000_000
"""Larger files are not copied: a trace of a week has gigabytes."""

Copy = Callable[[str, Path], bool]
"""Copies a file to a name within a folder; False when that failed."""


@dataclass(frozen=True)
class InputFile:
    """A file that an experiment reads.

    Attributes:
        workload: index of the workload that names it.
        key: under which key.
        path: where it is, absolute.
        sha256: of its content.
        size_bytes: its length.
    """

    workload: int
    key: str
    path: Path
    sha256: str
    size_bytes: int

    @property
    def path_in_spec(self) -> str:
        """Key path, such as ``workloads[1].trace``."""
        return f"workloads[{self.workload}].{self.key}"


def input_files(experiment: Experiment) -> list[InputFile]:
    """All files that an experiment reads, in the order of its workloads.

    Raises:
        MachineError: one cannot be read any more.
    """
    return [
        _read(index, key, Path(entry[key]))
        for index, entry in enumerate(experiment.document["workloads"])
        for key in FILE_KEYS
        if entry.get(key)
    ]


def _read(workload: int, key: str, path: Path) -> InputFile:
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            return InputFile(workload, key, path, digest, file.tell())
    except OSError as error:
        raise MachineError(f"{path} cannot be read: {error.strerror}") from error


def self_contained(experiment: Experiment, inputs: Sequence[InputFile], copy: Copy) -> str:
    """The experiment as the text of a file that names copies of its input files.

    Args:
        experiment: what runs.
        inputs: its input files.
        copy: makes the copies, in the folder where the text will lie; what it cannot copy, or what
            is too large, keeps its absolute name.
    """
    document: dict[str, Any] = to_document(experiment)
    copied: dict[str, bool] = {}
    for file in inputs:
        name = _name(file, inputs)
        if name not in copied:
            copied[name] = file.size_bytes <= MAX_BYTES and copy(name, file.path)
        if copied[name]:
            document["workloads"][file.workload][file.key] = name
    return document_to_yaml(document)


def _name(file: InputFile, inputs: Sequence[InputFile]) -> str:
    """Its own name, with some of its digest where another file has the same."""
    alike = {other.sha256 for other in inputs if other.path.name == file.path.name}
    name = file.path.name if len(alike) == 1 else f"{file.sha256[:8]}-{file.path.name}"
    return f"{FOLDER}/{name}"


def copier(folder: Path) -> Copy:
    """Copies into a folder of no special kind."""

    def copy(name: str, source: Path) -> bool:
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
        return True

    return copy
