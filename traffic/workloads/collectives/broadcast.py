"""Broadcast from rank 0 along a chain, in pieces that follow each other (pipelined)."""

from __future__ import annotations

from traffic.workloads.collectives.plan import Plan, PlanBuilder, split_bytes
from traffic.workloads.collectives.registry import register


@register("broadcast", "chain", parts=lambda ranks, pieces: pieces, piecewise=True, default=True)
def chain(ranks: int, size_bytes: int, pieces: int) -> Plan:
    """Rank r passes a piece on when it has it: N - 2 + pieces steps.

    The root hands out all pieces at once; their connection keeps them in order.
    """
    builder = PlanBuilder(split_bytes(size_bytes, pieces))
    for piece in range(pieces):
        after: tuple[int, ...] = ()
        for rank in range(ranks - 1):
            after = (builder.add(piece + rank, rank, rank + 1, [piece], False, after),)
    return builder.plan()
