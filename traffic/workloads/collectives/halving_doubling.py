"""Recursive halving and doubling (Thakur, Rabenseifner and Gropp 2005).

With N = 2^k ranks, 2k steps: partners at distance N/2, N/4 .. 1 exchange halves and add, then the
same way back. Otherwise the ranks beyond the largest power of two first hand their whole buffer
to a partner and get the result from it at the end, as MPICH does.
"""

from __future__ import annotations

from traffic.workloads.collectives.plan import Plan, PlanBuilder, split_bytes
from traffic.workloads.collectives.registry import register


def core_ranks(ranks: int) -> int:
    """The largest power of two that is not above the number of ranks."""
    return 1 << (ranks.bit_length() - 1)


def _range_of(rank: int, distance: int) -> range:
    """The blocks that a rank is left with after the exchange at this distance."""
    first = rank // distance * distance
    return range(first, first + distance)


@register("all-reduce", "halving-doubling", parts=lambda ranks, pieces: core_ranks(ranks))
def all_reduce(ranks: int, size_bytes: int, pieces: int) -> Plan:
    """Halving reduce-scatter, then doubling all-gather."""
    core = core_ranks(ranks)
    builder = PlanBuilder(split_bytes(size_bytes, core))
    extra = range(core, ranks)
    step = 0
    if extra:
        builder.step(step, [(rank, rank - core, range(core), True) for rank in extra])
        step += 1
    distances = [core >> level for level in range(1, core.bit_length())]
    for distance in distances:
        builder.step(step, [_exchange(rank, distance, True) for rank in range(core)])
        step += 1
    for distance in reversed(distances):
        builder.step(step, [_exchange(rank, distance, False) for rank in range(core)])
        step += 1
    if extra:
        builder.step(step, [(rank - core, rank, range(core), False) for rank in extra])
    return builder.plan()


def _exchange(rank: int, distance: int, reduces: bool) -> tuple[int, int, range, bool]:
    """What a rank sends to its partner: the partner's half, or what it holds itself."""
    partner = rank ^ distance
    blocks = _range_of(partner if reduces else rank, distance)
    return rank, partner, blocks, reduces
