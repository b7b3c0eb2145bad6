"""Collectives by name; each algorithm is one entry, registered where it is written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from topologies.errors import SpecError, UnknownNameError
from traffic.workloads.collectives.plan import Plan

PlanFunction = Callable[[int, int, int], Plan]
"""Takes the number of ranks, the size in bytes and the number of pieces; returns the plan."""


@dataclass(frozen=True, slots=True)
class Algorithm:
    """One way to carry out a collective.

    Attributes:
        collective: the operation, such as ``all-reduce``.
        name: the algorithm, such as ``ring``.
        build: makes the plan.
        parts: number of blocks that the buffer is cut into, which is also its least size in bytes.
        piecewise: whether the number of pieces matters.
        default: whether it is used where no algorithm is named.
    """

    collective: str
    name: str
    build: PlanFunction
    parts: Callable[[int, int], int]
    piecewise: bool = False
    default: bool = False


_ALGORITHMS: dict[str, dict[str, Algorithm]] = {}


def register(
    collective: str,
    name: str,
    parts: Callable[[int, int], int] = lambda ranks, pieces: ranks,
    piecewise: bool = False,
    default: bool = False,
) -> Callable[[PlanFunction], PlanFunction]:
    """Decorator that names an algorithm; a collective has one that is its default."""

    def enter(build: PlanFunction) -> PlanFunction:
        known = _ALGORITHMS.setdefault(collective, {})
        if name in known:
            raise ValueError(f"{collective} has two algorithms named {name}")
        if default and any(other.default for other in known.values()):
            raise ValueError(f"{collective} has two default algorithms")
        known[name] = Algorithm(collective, name, build, parts, piecewise, default)
        return build

    return enter


def collectives() -> list[str]:
    """Names of all collectives."""
    return sorted(_ALGORITHMS)


def algorithms(collective: str) -> list[str]:
    """Names of a collective's algorithms, the default first."""
    known = _ALGORITHMS[collective].values()
    return [entry.name for entry in sorted(known, key=lambda e: (not e.default, e.name))]


def algorithm(collective: str, name: str | None = None, path: str = "") -> Algorithm:
    """The algorithm of this name, or the collective's default.

    Args:
        collective: the operation.
        name: the algorithm; None for the default.
        path: key path of the workload, for the error.

    Raises:
        UnknownNameError: no such collective, or no such algorithm of it.
    """
    prefix = f"{path}." if path else ""
    if collective not in _ALGORITHMS:
        raise UnknownNameError(f"{prefix}collective", "collective", collective, _ALGORITHMS)
    known = _ALGORITHMS[collective]
    if name is None:
        name = algorithms(collective)[0]
    if name not in known:
        what = f"algorithm of {collective}"
        raise UnknownNameError(f"{prefix}algorithm", what, name, known)
    return known[name]


def build_plan(chosen: Algorithm, ranks: int, size_bytes: int, pieces: int = 1) -> Plan:
    """The sends of one collective.

    Args:
        chosen: the algorithm.
        ranks: number of ranks, at least 2.
        size_bytes: size of the operation as nccl-tests counts it (the full buffer per rank).
        pieces: number of pieces of a pipelined algorithm; ignored by the others.

    Raises:
        SpecError: fewer than 2 ranks, or fewer bytes than blocks.
    """
    if ranks < 2:
        raise SpecError("ranks", ranks, "must be at least 2")
    parts = chosen.parts(ranks, pieces)
    if size_bytes < parts:
        rule = f"is less than a byte for each of the {parts} blocks that {chosen.name} needs"
        raise SpecError("bytes", size_bytes, rule, "raise bytes, or lower shrink")
    return chosen.build(ranks, size_bytes, pieces)
