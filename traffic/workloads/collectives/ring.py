"""Ring algorithms: each rank sends to the next only (Patarasuk and Yuan 2009; as in NCCL).

Block b belongs to rank b: reduce-scatter leaves it there, all-gather starts from there, and
all-reduce is one after the other, 2(N-1) steps of S/N bytes.
"""

from __future__ import annotations

from traffic.workloads.collectives.plan import Plan, PlanBuilder, split_bytes
from traffic.workloads.collectives.registry import register


def _scatter(builder: PlanBuilder, ranks: int) -> None:
    for step in range(ranks - 1):
        builder.step(
            step,
            [
                (rank, (rank + 1) % ranks, [(rank - step - 1) % ranks], True)
                for rank in range(ranks)
            ],
        )


def _gather(builder: PlanBuilder, ranks: int, first_step: int) -> None:
    for step in range(ranks - 1):
        builder.step(
            first_step + step,
            [(rank, (rank + 1) % ranks, [(rank - step) % ranks], False) for rank in range(ranks)],
        )


@register("all-reduce", "ring", default=True)
def all_reduce(ranks: int, size_bytes: int, pieces: int) -> Plan:
    """Reduce-scatter, then all-gather."""
    builder = PlanBuilder(split_bytes(size_bytes, ranks))
    _scatter(builder, ranks)
    _gather(builder, ranks, ranks - 1)
    return builder.plan()


@register("reduce-scatter", "ring", default=True)
def reduce_scatter(ranks: int, size_bytes: int, pieces: int) -> Plan:
    """Rank r ends with the sum of everybody's block r."""
    builder = PlanBuilder(split_bytes(size_bytes, ranks))
    _scatter(builder, ranks)
    return builder.plan()


@register("all-gather", "ring", default=True)
def all_gather(ranks: int, size_bytes: int, pieces: int) -> Plan:
    """Rank r starts with block r; all end with all blocks."""
    builder = PlanBuilder(split_bytes(size_bytes, ranks))
    _gather(builder, ranks, 0)
    return builder.plan()


@register("send-recv", "ring", parts=lambda ranks, pieces: 1, default=True)
def send_recv(ranks: int, size_bytes: int, pieces: int) -> Plan:
    """Each rank sends its whole buffer, block r, to the next one (nccl-tests sendrecv)."""
    builder = PlanBuilder([size_bytes] * ranks)
    builder.step(0, [(rank, (rank + 1) % ranks, [rank], False) for rank in range(ranks)])
    return builder.plan()
