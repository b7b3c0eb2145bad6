"""Training: iterations of a computation on every rank and a collective between all of them.

Rank r computes (resource ``gpu:<job>:<r>``), then takes part in the collective; it computes again
as soon as it has its own last data. The collective itself holds all ranks in lock step. Tags:
``i2.r5`` is rank 5's computation of iteration 2, ``i2.s3.r5`` its message of step 3 (all from 0).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from topologies.errors import SpecError
from topologies.reading import Reader
from traffic.tasks import Compute, Flow, Task
from traffic.workloads.base import Context, Workload, WorkloadSpec, host_rates, read_common
from traffic.workloads.collectives import (
    Algorithm,
    Plan,
    algorithm,
    build_plan,
    exits,
    split_bytes,
)
from traffic.workloads.collectives.bounds import bus_factor
from traffic.workloads.placement import (
    HostSet,
    Placement,
    as_host_set,
    as_placement_or_hosts,
    place,
)
from traffic.workloads.registry import Kind, register

KIND = "training"
DEFAULT_PIECES = 8
"""Pieces of a pipelined broadcast, as many as the slots of NCCL's pipeline (NCCL_STEPS)."""


@dataclass(frozen=True, kw_only=True)
class TrainingSpec(WorkloadSpec):
    """A training job.

    Attributes:
        hosts: one host per rank.
        placement: order that a number of ranks is taken from.
        collective: operation at the end of each iteration.
        algorithm: how it is carried out.
        size_bytes: size of the operation as nccl-tests counts it, before shrinking.
        compute_ns: computation of each iteration, before shrinking.
        iterations: number of iterations.
        channels: queue pairs between two ranks; each message is split over them.
        pieces: pieces of a pipelined algorithm.
    """

    hosts: HostSet
    placement: Placement
    collective: str
    algorithm: str
    size_bytes: int
    compute_ns: int
    iterations: int
    channels: int
    pieces: int


def read(reader: Reader, folder: Path) -> TrainingSpec:
    """Read a training job."""
    common = read_common(reader, KIND)
    chosen = algorithm(
        reader.text("collective", "all-reduce"), reader.text("algorithm", None), reader.path
    )
    hosts, placement = _read_hosts(reader)
    pieces = reader.integer("pieces", DEFAULT_PIECES, minimum=1) if chosen.piecewise else 1
    return TrainingSpec(
        **common,
        hosts=hosts,
        placement=placement,
        collective=chosen.collective,
        algorithm=chosen.name,
        size_bytes=reader.size("bytes"),
        compute_ns=reader.duration("compute", 0),
        iterations=reader.integer("iterations", 1, minimum=1),
        channels=reader.integer("channels", 1, minimum=1),
        pieces=pieces,
    )


def _read_hosts(reader: Reader) -> tuple[HostSet, Placement]:
    """``ranks`` with a placement, or a list of hosts as ``hosts`` or ``placement``."""
    order = reader.get("placement", as_placement_or_hosts, "contiguous")
    named = reader.get("hosts", lambda value, path: as_host_set(value, path, 2), None)
    if isinstance(order, HostSet) or named is not None:
        reader.exclusive("hosts", "placement")
        reader.exclusive("hosts" if named else "placement", "offset")
    if isinstance(order, HostSet):
        named, order = order, "contiguous"
    if named is None:
        ranks = reader.integer("ranks", minimum=2)
        placement = Placement(order, reader.integer("offset", 0, minimum=0))
        return HostSet(reader.at("ranks"), ranks), placement
    stated = reader.integer("ranks", named.count, minimum=2)
    if stated != named.count:
        rule = f"differs from the {named.count} hosts of {named.path}"
        raise SpecError(reader.at("ranks"), stated, rule, "leave one of the two out")
    return named, Placement()


def build(spec: TrainingSpec, context: Context) -> Workload:
    """The tasks of a training job, N computations and then the messages for each iteration."""
    rng = context.rng(spec, "placement")
    (ranks,) = place(context.fabric, spec.plane, spec.placement, [spec.hosts], rng)
    chosen = algorithm(spec.collective, spec.algorithm, spec.path)
    size_bytes = context.shrunk_bytes(spec.size_bytes)
    plan = _plan(spec, chosen, len(ranks), size_bytes)
    through = [exits(plan, rank) for rank in range(len(ranks))]
    maker = _Maker(spec, ranks, plan, through, context)
    tasks: list[Task] = []
    for iteration in range(spec.iterations):
        tasks += maker.iteration(iteration)
    meta = _meta(spec, context, ranks, plan, through)
    return Workload(spec.name, spec.kind, tuple(tasks), {**meta, "size_bytes": size_bytes})


def _plan(spec: TrainingSpec, chosen: Algorithm, ranks: int, size_bytes: int) -> Plan:
    try:
        plan = build_plan(chosen, ranks, size_bytes, spec.pieces)
    except SpecError as error:
        raise error.under(spec.path) if spec.path else error from None
    least = min(send.size_bytes for send in plan)
    if least < spec.channels:
        rule = f"splits messages of {least} bytes into less than a byte each"
        raise SpecError(spec.at("channels"), spec.channels, rule, "lower channels or shrink")
    return plan


class _Maker:
    """Turns a plan into the tasks of one iteration after the other.

    Ids of iteration i: N computations, then ``channels`` flows for each send, in plan order.
    """

    def __init__(
        self,
        spec: TrainingSpec,
        ranks: Sequence[str],
        plan: Plan,
        through: Sequence[tuple[int, ...]],
        context: Context,
    ) -> None:
        self._spec, self._ranks, self._plan, self._through = spec, ranks, plan, through
        self._first_id = context.first_id
        self._per_iteration = len(ranks) + len(plan) * spec.channels
        self._compute_ns = context.shrunk_ns(spec.compute_ns)
        self._start_ns = context.shrunk_ns(spec.start_ns)

    def iteration(self, number: int) -> list[Task]:
        """All tasks of one iteration."""
        return [
            *(self._compute(number, rank) for rank in range(len(self._ranks))),
            *(flow for index in range(len(self._plan)) for flow in self._flows(number, index)),
        ]

    def _compute_id(self, iteration: int, rank: int) -> int:
        return self._first_id + iteration * self._per_iteration + rank

    def _flow_ids(self, iteration: int, sends: Sequence[int]) -> tuple[int, ...]:
        first = self._compute_id(iteration, len(self._ranks))
        channels = self._spec.channels
        return tuple(first + send * channels + qp for send in sends for qp in range(channels))

    def _compute(self, iteration: int, rank: int) -> Compute:
        after = self._flow_ids(iteration - 1, self._through[rank]) if iteration else ()
        return Compute(
            id=self._compute_id(iteration, rank),
            job=self._spec.name,
            resource=f"gpu:{self._spec.name}:{rank}",
            duration_ns=self._compute_ns,
            tag=f"i{iteration}.r{rank}",
            after=after,
            start_ns=self._start_ns,
        )

    def _flows(self, iteration: int, index: int) -> list[Flow]:
        send, spec = self._plan[index], self._spec
        own = self._compute_id(iteration, send.src)
        after = (own, *self._flow_ids(iteration, send.after))
        tag = f"i{iteration}.s{send.step}.r{send.src}"
        sizes = split_bytes(send.size_bytes, spec.channels)
        ids = self._flow_ids(iteration, [index])
        return [
            Flow(
                id=flow_id,
                job=spec.name,
                src=self._ranks[send.src],
                dst=self._ranks[send.dst],
                size_bytes=size_bytes,
                dscp=spec.dscp,
                tag=tag if spec.channels == 1 else f"{tag}.c{qp}",
                plane=spec.plane,
                after=after,
                start_ns=self._start_ns,
                qp=qp,
            )
            for qp, (flow_id, size_bytes) in enumerate(zip(ids, sizes, strict=True))
        ]


def _meta(
    spec: TrainingSpec,
    context: Context,
    ranks: Sequence[str],
    plan: Plan,
    through: Sequence[tuple[int, ...]],
) -> dict[str, object]:
    """What `traffic.metrics` needs; positions in ``through`` count sends of one iteration."""
    rates = host_rates(context.fabric, spec.plane)
    return {
        "name": spec.name,
        "kind": spec.kind,
        "collective": spec.collective,
        "algorithm": spec.algorithm,
        "ranks": list(ranks),
        "iterations": spec.iterations,
        "channels": spec.channels,
        "compute_ns": context.shrunk_ns(spec.compute_ns),
        "shrink": context.shrink,
        "bus_factor": bus_factor(spec.collective, len(ranks)),
        "line_rate_bps": min(rates[host] for host in ranks),
        "payload_bytes": context.payload_bytes,
        "first_id": context.first_id,
        "sends": len(plan),
        "through": [list(positions) for positions in through],
    }


register(Kind(KIND, read, build))
