"""Kinds of workload by name; each kind registers its reader and its builder where it is written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from topologies.errors import SpecError, UnknownNameError
from topologies.model import Fabric
from topologies.reading import Reader, as_list, as_mapping, join
from traffic.workloads.base import Context, Workload, WorkloadSpec


@dataclass(frozen=True)
class Kind:
    """One kind of workload.

    Attributes:
        name: what a user writes as ``kind``.
        read: takes the reader of its mapping and the folder of the experiment file.
        build: takes the specification that `read` made and the context; gives the tasks.
    """

    name: str
    read: Callable[[Reader, Path], WorkloadSpec]
    build: Callable[[Any, Context], Workload]


_KINDS: dict[str, Kind] = {}


def register(kind: Kind) -> None:
    """Add a kind; a second one of the same name is an error."""
    if kind.name in _KINDS:
        raise ValueError(f"two kinds of workload are named {kind.name}")
    _KINDS[kind.name] = kind


def kinds() -> list[str]:
    """Names of all kinds."""
    return sorted(_KINDS)


def parse_workload(raw: Mapping[str, object], path: str, folder: Path = Path()) -> WorkloadSpec:
    """Read one workload, strictly.

    Args:
        raw: the mapping that the user wrote.
        path: its key path, such as ``workloads[0]``.
        folder: folder of the experiment file, to which file names in it are relative.

    Raises:
        SpecError: a missing, unknown or wrong key; the message says which.
    """
    with Reader(raw, path) as reader:
        kind = reader.text("kind")
        if kind not in _KINDS:
            raise UnknownNameError(reader.at("kind"), "kind of workload", kind, _KINDS)
        return _KINDS[kind].read(reader, folder)


def parse_workloads(
    raw: object, path: str = "workloads", folder: Path = Path()
) -> tuple[WorkloadSpec, ...]:
    """Read a list of workloads, whose names must differ."""
    specs: dict[str, WorkloadSpec] = {}
    for place, entry in as_list(raw, path):
        spec = parse_workload(as_mapping(entry, place), place, folder)
        if spec.name in specs:
            rule = f"is also the name of {specs[spec.name].path}"
            raise SpecError(join(place, "name"), spec.name, rule, "give each workload a name")
        specs[spec.name] = spec
    return tuple(specs.values())


def build(
    spec: WorkloadSpec, fabric: Fabric, seed: int, shrink: float = 1.0, first_id: int = 0
) -> Workload:
    """The tasks of one workload.

    Args:
        spec: what `parse_workload` gave.
        fabric: where it runs.
        seed: the experiment's seed; equal seeds give equal tasks.
        shrink: message sizes, computations and gaps are divided by it; at least 1.
        first_id: id of its first task.

    Raises:
        SpecError: the workload does not fit the fabric, or a file of it is wrong.
    """
    if spec.plane not in fabric.planes:
        rule = f"is not a plane of the fabric, which has {list(fabric.planes)}"
        raise SpecError(spec.at("plane"), spec.plane, rule)
    if not shrink >= 1:
        raise SpecError("shrink", shrink, "must be at least 1")
    return _KINDS[spec.kind].build(spec, Context(fabric, seed, shrink, first_id))


def build_all(
    specs: Iterable[WorkloadSpec], fabric: Fabric, seed: int, shrink: float = 1.0
) -> tuple[Workload, ...]:
    """The tasks of all workloads of an experiment, with ids that are unique over them."""
    workloads: list[Workload] = []
    first_id = 0
    for spec in specs:
        workload = build(spec, fabric, seed, shrink, first_id)
        first_id += len(workload.tasks)
        workloads.append(workload)
    return tuple(workloads)
