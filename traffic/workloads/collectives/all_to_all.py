"""All-to-all: block (s, d), numbered s*N + d, moves from rank s to rank d; S/N bytes each."""

from __future__ import annotations

from traffic.workloads.collectives.plan import Plan, PlanBuilder, split_bytes
from traffic.workloads.collectives.registry import register


def _builder(ranks: int, size_bytes: int) -> PlanBuilder:
    return PlanBuilder(split_bytes(size_bytes, ranks) * ranks)


@register("all-to-all", "pairwise", default=True)
def pairwise(ranks: int, size_bytes: int, pieces: int) -> Plan:
    """In step i each rank sends to rank + i, once its own exchange of step i - 1 is complete."""
    builder = _builder(ranks, size_bytes)
    last: dict[tuple[str, int], int] = {}
    for shift in range(1, ranks):
        current: dict[tuple[str, int], int] = {}
        for src in range(ranks):
            dst = (src + shift) % ranks
            after = tuple(last[key] for key in (("out", src), ("in", src)) if key in last)
            position = builder.add(shift - 1, src, dst, [src * ranks + dst], False, after)
            current["out", src] = current["in", dst] = position
        last = current
    return builder.plan()


@register("all-to-all", "mesh")
def mesh(ranks: int, size_bytes: int, pieces: int) -> Plan:
    """All N-1 messages of each rank at once."""
    builder = _builder(ranks, size_bytes)
    messages = [
        (src, (src + shift) % ranks, [src * ranks + (src + shift) % ranks], False)
        for shift in range(1, ranks)
        for src in range(ranks)
    ]
    builder.step(0, messages)
    return builder.plan()
