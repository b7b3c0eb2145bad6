"""Collectives: exact message lists of small cases, closed forms, refusals."""

from __future__ import annotations

import pytest

from topologies.errors import SpecError, UnknownNameError
from traffic.workloads.collectives import (
    Send,
    algorithm,
    algorithms,
    build_plan,
    collectives,
    exits,
    register,
    split_bytes,
)
from traffic.workloads.collectives.bounds import alpha_beta_ns, bus_factor, ideal_time_ns, steps


def test_ring_all_reduce_of_8_ranks_and_16_mib() -> None:
    """2(N-1) steps of N messages of S/N bytes: 112 sends of 2 MiB (case F10)."""
    plan = build_plan(algorithm("all-reduce", "ring"), 8, 16 * 2**20)
    assert len(plan) == 112
    assert {send.size_bytes for send in plan} == {2 * 2**20}
    assert {send.step for send in plan} == set(range(14))
    assert all(send.dst == (send.src + 1) % 8 for send in plan)


def test_exact_plan_of_a_ring_all_reduce_of_3_ranks() -> None:
    """Blocks, sizes, reductions and dependencies of all 12 sends; the first block is a byte larger.

    Step s of rank r waits for the message that rank r - 1 sent in step s - 1.
    """
    assert build_plan(algorithm("all-reduce", "ring"), 3, 31) == (
        Send(0, 0, 1, 10, (2,), True, ()),
        Send(0, 1, 2, 11, (0,), True, ()),
        Send(0, 2, 0, 10, (1,), True, ()),
        Send(1, 0, 1, 10, (1,), True, (2,)),
        Send(1, 1, 2, 10, (2,), True, (0,)),
        Send(1, 2, 0, 11, (0,), True, (1,)),
        Send(2, 0, 1, 11, (0,), False, (5,)),
        Send(2, 1, 2, 10, (1,), False, (3,)),
        Send(2, 2, 0, 10, (2,), False, (4,)),
        Send(3, 0, 1, 10, (2,), False, (8,)),
        Send(3, 1, 2, 11, (0,), False, (6,)),
        Send(3, 2, 0, 10, (1,), False, (7,)),
    )


def test_exact_plan_of_halving_doubling_of_4_ranks() -> None:
    """Halves go to the partner at distance 2, quarters to the one at distance 1, and back."""
    plan = build_plan(algorithm("all-reduce", "halving-doubling"), 4, 400)
    of_rank_0 = [(s.step, s.dst, s.size_bytes, s.blocks, s.reduces) for s in plan if s.src == 0]
    assert of_rank_0 == [
        (0, 2, 200, (2, 3), True),
        (1, 1, 100, (1,), True),
        (2, 1, 100, (0,), False),
        (3, 2, 200, (0, 1), False),
    ]
    assert [send.after for send in plan if send.src == 0] == [(), (2,), (2, 5), (2, 9)]


def test_exact_plan_of_a_broadcast_chain() -> None:
    """Each piece follows the chain; rank r waits for the piece, and the root for nothing."""
    assert build_plan(algorithm("broadcast"), 3, 5, pieces=2) == (
        Send(0, 0, 1, 3, (0,), False, ()),
        Send(1, 1, 2, 3, (0,), False, (0,)),
        Send(1, 0, 1, 2, (1,), False, ()),
        Send(2, 1, 2, 2, (1,), False, (2,)),
    )


def test_exact_plan_of_pairwise_all_to_all_of_3_ranks() -> None:
    """In step i rank r sends to r + i + 1, after its own sending and receiving of step i - 1."""
    assert build_plan(algorithm("all-to-all", "pairwise"), 3, 7) == (
        Send(0, 0, 1, 2, (1,), False, ()),
        Send(0, 1, 2, 2, (5,), False, ()),
        Send(0, 2, 0, 3, (6,), False, ()),
        Send(1, 0, 2, 2, (2,), False, (0, 2)),
        Send(1, 1, 0, 3, (3,), False, (1, 0)),
        Send(1, 2, 1, 2, (7,), False, (2, 1)),
    )


def test_mesh_all_to_all_waits_for_nothing() -> None:
    """All N(N-1) messages start at once."""
    plan = build_plan(algorithm("all-to-all", "mesh"), 5, 50)
    assert len(plan) == 20
    assert {send.after for send in plan} == {()}


def test_a_rank_is_through_with_its_last_data() -> None:
    """The last message from each other rank; for a broadcast's root the last one that it sent."""
    ring = build_plan(algorithm("all-reduce", "ring"), 3, 30)
    assert [exits(ring, rank) for rank in range(3)] == [(11,), (9,), (10,)]
    chain = build_plan(algorithm("broadcast"), 3, 4, pieces=2)
    assert [exits(chain, rank) for rank in range(3)] == [(2,), (2,), (3,)]
    mesh = build_plan(algorithm("all-to-all", "mesh"), 3, 30)
    assert exits(mesh, 0) == tuple(i for i, send in enumerate(mesh) if send.dst == 0)


def test_split_bytes_hands_out_the_remainder() -> None:
    """Parts differ by a byte at most and add up."""
    assert split_bytes(10, 4) == [3, 3, 2, 2]
    assert split_bytes(8, 4) == [2, 2, 2, 2]


def test_bus_factors_are_those_of_nccl_tests() -> None:
    """busbw / algbw for 8 ranks, from nccl-tests' PERFORMANCE.md."""
    assert bus_factor("all-reduce", 8) == 1.75
    for collective in ("reduce-scatter", "all-gather", "all-to-all"):
        assert bus_factor(collective, 8) == 0.875
    assert bus_factor("broadcast", 8) == bus_factor("send-recv", 8) == 1


def test_ideal_time_of_a_gradient() -> None:
    """The unsharded bf16 gradient of a 70B model over 8 ranks at 400 Gbit/s takes 4.94 s."""
    assert ideal_time_ns("all-reduce", 8, 141_108_000_000, 400e9) == pytest.approx(4.94e9, rel=1e-3)


@pytest.mark.parametrize(
    ("collective", "name", "ranks", "count"),
    [
        ("all-reduce", "ring", 8, 14),
        ("all-reduce", "halving-doubling", 8, 6),
        ("all-reduce", "halving-doubling", 9, 8),
        ("reduce-scatter", "ring", 8, 7),
        ("all-gather", "ring", 8, 7),
        ("all-to-all", "pairwise", 8, 7),
        ("all-to-all", "mesh", 8, 1),
        ("send-recv", "ring", 8, 1),
    ],
)
def test_alpha_beta_model(collective: str, name: str, ranks: int, count: int) -> None:
    """Alpha counts once per step; without it the time is the ideal one (power-of-two ranks)."""
    whole = alpha_beta_ns(collective, name, ranks, 1_000_000, 8e9, 1000)
    beta = alpha_beta_ns(collective, name, ranks, 1_000_000, 8e9, 0)
    assert steps(collective, name, ranks) == count
    assert whole - beta == pytest.approx(count * 1000)
    if ranks == 8:
        assert beta == pytest.approx(ideal_time_ns(collective, ranks, 1_000_000, 8e9))


def test_alpha_beta_of_a_chain() -> None:
    """N - 2 + p steps of S/p bytes: more pieces approach S/B."""
    assert alpha_beta_ns("broadcast", "chain", 6, 1000, 8e9, 10, pieces=1) == 5 * (10 + 1000)
    assert alpha_beta_ns("broadcast", "chain", 6, 1000, 8e9, 0, pieces=100) == 1040


def test_unknown_names_list_the_known_ones() -> None:
    """An unknown collective or algorithm is an error that lists what there is."""
    with pytest.raises(UnknownNameError, match="all-gather, all-reduce, all-to-all, broadcast"):
        algorithm("allreduce", path="workloads[0]")
    with pytest.raises(UnknownNameError, match="halving-doubling, ring") as caught:
        algorithm("all-reduce", "rings", path="workloads[0]")
    assert caught.value.path == "workloads[0].algorithm"
    assert "did you mean 'ring'" in str(caught.value)


def test_the_default_algorithm_comes_first() -> None:
    """Without a name a collective's default is used; it leads the list of names."""
    assert algorithm("all-reduce").name == "ring"
    assert algorithm("all-to-all").name == "pairwise"
    assert algorithms("all-reduce") == ["ring", "halving-doubling"]


@pytest.mark.parametrize("collective", collectives())
def test_every_collective_has_a_default(collective: str) -> None:
    """No collective needs its algorithm named."""
    assert algorithm(collective).default


def test_a_name_is_registered_once() -> None:
    """A second algorithm of the same name is a programming error."""
    with pytest.raises(ValueError, match="two algorithms named ring"):
        register("all-reduce", "ring")(lambda ranks, size_bytes, pieces: ())
    with pytest.raises(ValueError, match="two default algorithms"):
        register("all-reduce", "best", default=True)(lambda ranks, size_bytes, pieces: ())


@pytest.mark.parametrize("collective", collectives())
def test_less_than_two_ranks_are_refused(collective: str) -> None:
    """One rank has nobody to talk to."""
    with pytest.raises(SpecError, match="must be at least 2"):
        build_plan(algorithm(collective), 1, 1000)


def test_less_than_a_byte_per_block_is_refused() -> None:
    """7 bytes cannot be cut into 8 blocks; the error names both."""
    with pytest.raises(SpecError, match="7 is less than a byte for each of the 8 blocks"):
        build_plan(algorithm("all-reduce"), 8, 7)
