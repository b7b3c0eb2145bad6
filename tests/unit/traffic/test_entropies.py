"""Pools of entropies: their order, what is passed over, and which bits of the port they set."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traffic.entropies import EntropyPool, offsets
from traffic.uet_params import RANDOM, ROUND_ROBIN, SPRAYS


def test_in_turn_every_value_is_used_once_before_any_is_used_again() -> None:
    """In an order of its own each time."""
    pool = EntropyPool(64, ROUND_ROBIN, "a")
    rounds = [pool.take(10) + pool.take(54) for _ in range(3)]
    assert all(sorted(one) == list(range(64)) for one in rounds)
    assert len(set(rounds)) == 3


def test_at_random_each_packet_is_drawn_for_itself() -> None:
    """All values, about equally often."""
    counts = Counter(EntropyPool(16, RANDOM, "a").take(16_000))
    assert set(counts) == set(range(16))
    assert max(counts.values()) - min(counts.values()) < 250
    assert sorted(counts.values()) != [1_000] * 16


@pytest.mark.parametrize("spray", SPRAYS)
def test_the_same_seed_gives_the_same_values(spray: str) -> None:
    """And another seed gives others."""
    first, second, other = (EntropyPool(64, spray, seed).take(100) for seed in "aab")
    assert first == second != other


@pytest.mark.parametrize("spray", SPRAYS)
def test_a_value_is_passed_over_as_often_as_was_asked_for(spray: str) -> None:
    """Then it is used again; the next one takes its place meanwhile."""
    pool = EntropyPool(4, spray, "a")
    pool.skip(2, 3)
    pool.skip(1, 1)
    counts = Counter(pool.take(400))
    assert pool._skipping == 0
    if spray == ROUND_ROBIN:
        assert counts == {0: 101, 1: 100, 2: 98, 3: 101}


def test_all_values_may_be_passed_over() -> None:
    """Then some packet gets one all the same."""
    pool = EntropyPool(2, ROUND_ROBIN, "a")
    for number in (0, 1):
        pool.skip(number, 100)
    assert len(pool.take(50)) == 50


@given(
    st.sampled_from([1, 2, 64, 256]),
    st.sampled_from(SPRAYS),
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 255), st.integers(1, 9))),
)
def test_every_packet_gets_a_value_of_the_pool(
    count: int, spray: str, steps: list[tuple[int, int, int]]
) -> None:
    """Whatever is passed over."""
    pool = EntropyPool(count, spray, "a")
    for wanted, number, times in steps:
        pool.skip(number % count, times)
        taken = pool.take(wanted)
        assert len(taken) == wanted
        assert all(value < count for value in taken)


@pytest.mark.parametrize("count", [1, 8, 64, 256])
def test_a_pool_covers_the_low_bits_evenly(count: int) -> None:
    """Leaves choose by six of them; the others are drawn."""
    found = offsets(count, "a")
    low = Counter(value & 63 for value in found)
    assert len(low) == min(count, 64)
    assert len(set(low.values())) == 1
    assert all(0 <= value < 1 << 14 for value in found)
    assert found == offsets(count, "a")
    assert count == 1 or found != offsets(count, "b")


@pytest.mark.parametrize("count", [0, 3, 512])
def test_a_pool_is_a_power_of_two(count: int) -> None:
    """So that random bits choose evenly."""
    with pytest.raises(ValueError, match="power of two"):
        EntropyPool(count, RANDOM, "a")
    with pytest.raises(ValueError, match="power of two"):
        offsets(count, "a")


def test_an_unknown_order_is_an_error() -> None:
    """It names the known ones."""
    with pytest.raises(ValueError, match="round-robin"):
        EntropyPool(4, "sorted", "a")
