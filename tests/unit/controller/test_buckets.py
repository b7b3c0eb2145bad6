"""Buckets are shared out exactly, repeatably, and with as little movement as possible."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from controller.core.buckets import BUCKETS, assign, awards, permutation, shares, stable_hash

WEIGHTS = st.dictionaries(st.integers(1, 40), st.integers(1, 400), min_size=1, max_size=20)
QUIET = settings(derandomize=True, deadline=None, max_examples=150)


def test_stable_hash_is_that_of_blake2() -> None:
    """Anyone can compute it again: the parts as text, a separator, 8 bytes, big end first."""
    text = b"7\x1fleaf1\x1f3"
    digest = hashlib.blake2b(text, digest_size=8).digest()
    assert stable_hash(7, "leaf1", 3) == int.from_bytes(digest, "big")


def test_assignment_is_the_same_in_every_process() -> None:
    """Python's salted hash plays no part, neither in the shares nor in their order."""
    weights = {1: 3, 2: 1, 3: 1}
    code = (
        f"from controller.core.buckets import assign; print(assign({weights}, {weights}, 7, 'a'))"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code], check=True, capture_output=True, text=True,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(filter(None, sys.path))},
        ).stdout
        for seed in ("0", "1")
    }  # fmt: skip
    assert outputs == {f"{assign(weights, weights, 7, 'a')}\n"}


def test_parts_of_a_key_are_not_run_together() -> None:
    """("a", "b") and ("ab",) are different keys."""
    assert len({stable_hash("a", "b"), stable_hash("ab"), stable_hash("", "ab")}) == 3


def test_permutation_is_one_and_depends_on_the_key() -> None:
    """Every number once, in another order for another switch, destination or seed."""
    keys = [(7, "leaf1", "leaf2"), (7, "leaf2", "leaf1"), (8, "leaf1", "leaf2")]
    orders = [permutation(*key) for key in keys]
    assert all(sorted(order) == list(range(BUCKETS)) for order in orders)
    assert len(set(orders)) == 3


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        ({1: 1, 2: 1, 3: 1, 4: 1}, {1: 16, 2: 16, 3: 16, 4: 16}),
        ({1: 3, 2: 1}, {1: 48, 2: 16}),
        ({1: 400, 2: 100, 3: 0}, {1: 51, 2: 13}),
        ({1: 100_000, 2: 1}, {1: 63, 2: 1}),
        ({1: 0, 2: 0}, {}),
        ({}, {}),
        ({5: 9}, {5: 64}),
    ],
)
def test_shares(weights: dict[int, int], expected: dict[int, int]) -> None:
    """Shares follow weights; a way of positive weight gets at least one, of weight 0 none."""
    assert shares(weights, 7, "leaf1") == expected


@QUIET
@given(st.integers(1, BUCKETS), st.integers())
def test_equal_weights_differ_by_one_bucket_at_most(ways: int, seed: int) -> None:
    """Any number of equal ways up to 64, any seed."""
    seats = shares(dict.fromkeys(range(ways), 5), seed)
    assert sum(seats.values()) == BUCKETS
    assert max(seats.values()) - min(seats.values()) <= 1


@QUIET
@given(WEIGHTS)
def test_shares_are_fair(weights: dict[int, int]) -> None:
    """No bucket could go to another way and bring both nearer to their weights (Webster)."""
    seats = shares(weights, 7)
    assert sum(seats.values()) == BUCKETS
    last = max(Fraction(2 * seats[w] - 1, n) for w, n in weights.items() if seats[w] > 1)
    following = min(Fraction(2 * seats[way] + 1, weight) for way, weight in weights.items())
    assert last <= following


def test_spare_buckets_go_to_different_ways() -> None:
    """64 over 3 leaves one to spare; over many destinations each way gets some of them."""
    lucky = Counter(
        max(seats, key=lambda way: seats[way])
        for seats in (shares({1: 1, 2: 1, 3: 1}, 7, "leaf1", f"leaf{n}") for n in range(60))
    )
    assert all(lucky[way] >= 10 for way in (1, 2, 3))


def test_awards_are_spread_out() -> None:
    """Equal ways take turns."""
    turns = awards({1: 1, 2: 1, 3: 1}, 7)
    rounds = [{next(turns) for _ in range(3)} for _ in range(5)]
    assert rounds == [{1, 2, 3}] * 5


def test_assignment_has_the_shares() -> None:
    """Each way occurs in as many buckets as its share says."""
    weights = {1: 3, 2: 1, 3: 2}
    assigned = assign(weights, weights, 7, "leaf1", "leaf2")
    assert Counter(assigned) == shares(weights, 7, "leaf1", "leaf2")


def test_no_way_no_buckets() -> None:
    """When every way has failed there is nothing to assign."""
    assert assign({1: 1, 2: 1}, {1: 0}, 7) == ()


@QUIET
@given(WEIGHTS, st.data())
def test_only_buckets_of_failed_ways_move(weights: dict[int, int], data: st.DataObject) -> None:
    """A bucket whose way still works stays, whatever else failed; shares stay exact."""
    failed = data.draw(st.sets(st.sampled_from(sorted(weights))))
    assume(len(failed) < len(weights))
    left = {way: weight for way, weight in weights.items() if way not in failed}
    before, after = assign(weights, weights, 7), assign(weights, left, 7)
    moved = {old for old, new in zip(before, after, strict=True) if old != new}
    assert moved == failed & set(before)
    assert Counter(after) == Counter(shares(left, 7))


@QUIET
@given(WEIGHTS, st.data())
def test_changed_weights_move_as_little_as_they_can(
    weights: dict[int, int], data: st.DataObject
) -> None:
    """The number of buckets that move is the sum of what the ways lose."""
    now = {way: data.draw(st.integers(0, 400)) for way in weights}
    assume(any(now.values()))
    before, after = assign(weights, weights, 7), assign(weights, now, 7)
    was, wanted = Counter(before), Counter(shares(now, 7))
    assert Counter(after) == wanted
    moved = sum(old != new for old, new in zip(before, after, strict=True))
    assert moved == (was - wanted).total()


def test_restored_ways_get_their_buckets_back() -> None:
    """The assignment depends on what works now, not on what happened before."""
    weights = dict.fromkeys(range(1, 5), 1)
    normal = assign(weights, weights, 7, "leaf1", "leaf2")
    assert assign(weights, weights | {3: 0}, 7, "leaf1", "leaf2") != normal
    assert assign(weights, weights, 7, "leaf1", "leaf2") == normal
