"""What all kinds of workload share: the common keys, host selection, the result of a builder."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import TypedDict

from topologies.errors import SpecError
from topologies.model import Fabric
from topologies.reading import Reader
from traffic import wire
from traffic.tasks import Task

DEFAULT_DSCP = 26
"""AF31: traffic class 3, which lossless RoCE deployments use (SONiC: classes 3 and 4)."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


@dataclass(frozen=True, kw_only=True)
class WorkloadSpec:
    """Keys that every kind has.

    Attributes:
        kind: which builder makes it.
        name: unique among the workloads of an experiment.
        dscp: code point of its packets; the traffic class is ``dscp >> 3``.
        plane: fabric plane that it uses.
        start_ns: when it begins, ns after the run's start.
        path: key path in the file, for errors.
    """

    kind: str
    name: str
    dscp: int = DEFAULT_DSCP
    plane: int = 1
    start_ns: int = 0
    path: str = field(default="", compare=False, repr=False)

    def at(self, key: str) -> str:
        """Key path of one of its keys."""
        return f"{self.path}.{key}" if self.path else key


@dataclass(frozen=True)
class Workload:
    """A workload as tasks.

    Attributes:
        name: the workload's name.
        kind: its kind.
        tasks: flows and computations, ids ascending from the given first one.
        meta: JSON-able description from which `traffic.metrics` computes results.
    """

    name: str
    kind: str
    tasks: tuple[Task, ...]
    meta: dict[str, object]


@dataclass(frozen=True)
class Context:
    """What a builder is given besides its specification.

    Attributes:
        fabric: where the workload runs.
        seed: the experiment's seed.
        shrink: message sizes, computations and gaps are divided by it; at least 1.
        first_id: id of the first task.
    """

    fabric: Fabric
    seed: int
    shrink: float
    first_id: int

    def rng(self, spec: WorkloadSpec, purpose: str) -> random.Random:
        """A random generator of its own for each workload and purpose."""
        return random.Random(f"{self.seed}/{spec.name}/{purpose}")

    def shrunk_ns(self, duration_ns: float) -> int:
        """A duration divided by shrink, to the nearest ns."""
        return round(Fraction(duration_ns) / Fraction(self.shrink))

    def shrunk_bytes(self, size_bytes: int) -> int:
        """A message size divided by shrink, to the nearest byte, at least 1."""
        return max(1, round(Fraction(size_bytes) / Fraction(self.shrink)))

    @property
    def payload_bytes(self) -> int:
        """Payload of a full packet in this fabric."""
        return wire.max_payload_bytes(self.fabric.mtu_bytes)


class Common(TypedDict):
    """The common keys, ready to be passed to a specification's constructor."""

    kind: str
    name: str
    dscp: int
    plane: int
    start_ns: int
    path: str


def host_rates(fabric: Fabric, plane: int) -> dict[str, int]:
    """Rate of each host's slowest link in a plane, bit/s."""
    rates: dict[str, int] = {}
    for link in fabric.links:
        if link.plane == plane and (link.a, plane) in fabric.attachment:
            rates[link.a] = min(link.rate_bps, rates.get(link.a, link.rate_bps))
    return rates


def read_common(reader: Reader, kind: str, default_dscp: int = DEFAULT_DSCP) -> Common:
    """Read the keys that every kind has."""
    reader.has("kind")
    reader.exclusive("class", "dscp")
    if reader.has("class"):
        dscp = wire.dscp_of(reader.integer("class", minimum=0, maximum=7))
    else:
        dscp = reader.integer("dscp", default_dscp, minimum=0, maximum=63)
    return Common(
        kind=kind,
        name=_read_name(reader, kind),
        dscp=dscp,
        plane=reader.integer("plane", 1, minimum=1),
        start_ns=reader.duration("start", 0),
        path=reader.path,
    )


def _read_name(reader: Reader, default: str) -> str:
    name = reader.text("name", default)
    if not _NAME.fullmatch(name):
        rule = (
            "may contain letters, digits, '.', '_' and '-' only, and begins with one of the former"
        )
        raise SpecError(reader.at("name"), name, rule, "write e.g. job-a")
    return name


def read_positive(reader: Reader, key: str, default: float) -> float:
    """A number above 0."""
    value = reader.number(key, default)
    if value <= 0:
        raise SpecError(reader.at(key), value, "must be above 0")
    return value


def resolve(folder: Path, name: str) -> Path:
    """A file that the user named, relative to the folder of the experiment file."""
    return folder / Path(name).expanduser()
