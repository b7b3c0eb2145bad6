"""Every collective for every small number of ranks does what its operation promises.

Plans are carried out on symbols: each rank holds, per block, the set of ranks whose data it has.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from traffic.workloads.collectives import (
    Plan,
    algorithm,
    algorithms,
    build_plan,
    collectives,
    exits,
)
from traffic.workloads.collectives.bounds import bus_factor, steps

Held = list[dict[int, frozenset[int]]]
PIECES = 5
CASES = [
    pytest.param(collective, name, ranks, id=f"{collective}-{name}-{ranks}")
    for collective in collectives()
    for name in algorithms(collective)
    for ranks in range(2, 18)
]


def plan_of(collective: str, name: str, ranks: int, size_bytes: int) -> Plan:
    """The plan of one case."""
    return build_plan(algorithm(collective, name), ranks, size_bytes, PIECES)


def some_order(plan: Plan, rng: random.Random) -> Iterator[int]:
    """Arrivals in an order that dependencies and each pair's order of messages allow."""
    left = {index: set(send.after) for index, send in enumerate(plan)}
    last: dict[tuple[int, int], int] = {}
    for index, send in enumerate(plan):
        if (send.src, send.dst) in last:
            left[index].add(last[send.src, send.dst])
        last[send.src, send.dst] = index
    while left:
        index = rng.choice([index for index, waits in left.items() if not waits])
        del left[index]
        for waits in left.values():
            waits.discard(index)
        yield index


def carry_out(plan: Plan, held: Held, rng: random.Random) -> Held:
    """Deliver all messages; a message carries what its sender held when it could first start."""
    started: dict[int, dict[int, frozenset[int]]] = {}
    done: set[int] = set()

    def start_all() -> None:
        for index, send in enumerate(plan):
            if index not in started and done.issuperset(send.after):
                started[index] = {block: held[send.src][block] for block in send.blocks}

    start_all()
    for index in some_order(plan, rng):
        send, carried = plan[index], started[index]
        for block, data in carried.items():
            own = held[send.dst].get(block, frozenset())
            assert not (send.reduces and own & data), "a contribution is added twice"
            held[send.dst][block] = own | data if send.reduces else data
        done.add(index)
        start_all()
    return held


def blocks_of(plan: Plan) -> range:
    """Numbers of all blocks of a plan."""
    return range(1 + max(block for send in plan for block in send.blocks))


def before(collective: str, plan: Plan, ranks: int) -> Held:
    """What each rank holds at first: its own data of the blocks that the operation gives it."""
    own = [frozenset([rank]) for rank in range(ranks)]
    if collective in ("all-reduce", "reduce-scatter"):
        return [dict.fromkeys(blocks_of(plan), own[rank]) for rank in range(ranks)]
    if collective in ("all-gather", "send-recv"):
        return [{rank: own[rank]} for rank in range(ranks)]
    if collective == "all-to-all":
        return [{rank * ranks + dst: own[rank] for dst in range(ranks)} for rank in range(ranks)]
    root = dict.fromkeys(blocks_of(plan), own[0])
    return [dict(root) if rank == 0 else {} for rank in range(ranks)]


def promised(collective: str, plan: Plan, ranks: int, rank: int) -> dict[int, frozenset[int]]:
    """What a rank must hold at the end."""
    everyone = frozenset(range(ranks))
    return {
        "all-reduce": dict.fromkeys(blocks_of(plan), everyone),
        "reduce-scatter": {rank: everyone},
        "all-gather": {src: frozenset([src]) for src in range(ranks)},
        "all-to-all": {src * ranks + rank: frozenset([src]) for src in range(ranks)},
        "broadcast": {block: frozenset([0]) for block in blocks_of(plan)},
        "send-recv": {(rank - 1) % ranks: frozenset([(rank - 1) % ranks])},
    }[collective]


@pytest.mark.parametrize(("collective", "name", "ranks"), CASES)
def test_every_rank_ends_with_what_the_operation_promises(
    collective: str, name: str, ranks: int
) -> None:
    """Whatever the order of arrivals, all data are there at the end, and none is added twice."""
    plan = plan_of(collective, name, ranks, 1000 + ranks)
    for seed in range(3):
        held = carry_out(plan, before(collective, plan, ranks), random.Random(seed))
        for rank in range(ranks):
            wanted = promised(collective, plan, ranks, rank)
            assert {block: held[rank].get(block) for block in wanted} == wanted


@pytest.mark.parametrize(("collective", "name", "ranks"), CASES)
def test_dependencies_point_back(collective: str, name: str, ranks: int) -> None:
    """A send waits for earlier entries of the plan only (so there is no cycle), of its own rank."""
    plan = plan_of(collective, name, ranks, 1000)
    for index, send in enumerate(plan):
        assert all(position < index for position in send.after)
        assert all(send.src in (plan[p].dst, plan[p].src) for p in send.after)
        assert send.src != send.dst


@pytest.mark.parametrize(("collective", "name", "ranks"), CASES)
def test_bytes_per_rank(collective: str, name: str, ranks: int) -> None:
    """Each rank sends bus factor times S; a chain's last rank and folded ranks differ."""
    size_bytes = 720_720 * 17  # a multiple of every number of blocks up to 17
    plan = plan_of(collective, name, ranks, size_bytes)
    sent = [sum(s.size_bytes for s in plan if s.src == rank) for rank in range(ranks)]
    if name == "halving-doubling":
        core = 1 << (ranks.bit_length() - 1)
        exchanged = round(bus_factor("all-reduce", core) * size_bytes)
        folded = ranks - core
        expected = [exchanged + (size_bytes if rank < folded else 0) for rank in range(core)]
        assert sent == expected + [size_bytes] * folded
    elif name == "chain":
        assert sent == [size_bytes] * (ranks - 1) + [0]
    else:
        assert sent == [round(bus_factor(collective, ranks) * size_bytes)] * ranks


@pytest.mark.parametrize(("collective", "name", "ranks"), CASES)
def test_the_longest_chain_has_as_many_messages_as_the_closed_form_says(
    collective: str, name: str, ranks: int
) -> None:
    """`bounds.steps` equals the number of steps of the plan, whose dependencies go step by step."""
    plan = plan_of(collective, name, ranks, 1000)
    assert 1 + max(send.step for send in plan) == steps(collective, name, ranks, PIECES)
    assert all(plan[position].step < send.step for send in plan for position in send.after)


@pytest.mark.parametrize(("collective", "name", "ranks"), CASES)
def test_a_rank_is_through_after_all_that_it_receives(
    collective: str, name: str, ranks: int
) -> None:
    """Every message to a rank is one of its exits, or an earlier one of the same pair."""
    plan = plan_of(collective, name, ranks, 1000)
    for rank in range(ranks):
        through = exits(plan, rank)
        last = {plan[index].src: index for index in through if plan[index].dst == rank}
        assert through
        for index, send in enumerate(plan):
            if send.dst == rank:
                assert index <= last[send.src]


@pytest.mark.parametrize("ranks", range(2, 18))
def test_odd_sizes_lose_no_byte(ranks: int) -> None:
    """A ring all-reduce of any size sends exactly 2(N-1) S bytes in all."""
    size_bytes = 1_000_003
    plan = plan_of("all-reduce", "ring", ranks, size_bytes)
    assert sum(send.size_bytes for send in plan) == 2 * (ranks - 1) * size_bytes
