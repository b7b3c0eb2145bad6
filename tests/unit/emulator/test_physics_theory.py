"""Closed forms of the validation suite, against values worked out by hand or by brute force."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from emulator.physics import sharing, theory
from emulator.physics.case import Run
from emulator.physics.cases.permutation import SPREAD, cross_leaf_pairs, models
from emulator.physics.loading import experiment_of
from emulator.physics.paths import ways


def test_store_and_forward_adds_a_whole_packet_for_each_switch() -> None:
    """1250 B at 10 Gbit/s are 1 us on each of four lines, beside 3 x 0.5 us and 2 us of cable."""
    assert theory.store_and_forward_ns(1250, 10e9, 3, 500, 2000) == pytest.approx(7500)


def test_cut_through_adds_a_header_for_each_switch() -> None:
    """64 B at 10 Gbit/s are 51.2 ns."""
    assert theory.cut_through_ns(1250, 10e9, 3, 500, 2000) == pytest.approx(4500 + 3 * 51.2)


@pytest.mark.parametrize(("load", "wait"), [(0.5, 0.5), (0.7, 1.1667), (0.8, 2.0), (0.9, 4.5)])
def test_md1_waits_are_those_of_table_v14(load: float, wait: float) -> None:
    """rho / (2 (1 - rho))."""
    assert theory.md1_wait(load) == pytest.approx(wait, abs=1e-4)


def test_lindley_s_recursion_in_one_piece_is_that_of_step_by_step(
    rng: np.random.Generator,
) -> None:
    """W(n+1) = max(0, W(n) + S - A(n))."""
    arrivals = np.cumsum(rng.exponential(120.0, 5000))
    waits = [0.0]
    for gap in np.diff(arrivals):
        waits.append(max(0.0, waits[-1] + 100.0 - gap))
    assert theory.lindley_waits_ns(arrivals, 100.0) == pytest.approx(np.array(waits), abs=1e-6)
    assert len(theory.lindley_waits_ns(np.array([]), 100.0)) == 0


def test_lindley_s_mean_comes_to_the_formula(rng: np.random.Generator) -> None:
    """A long sample of Poisson arrivals at load 0.7."""
    waits = theory.lindley_waits_ns(np.cumsum(rng.exponential(1 / 0.7, 400_000)), 1.0)
    assert waits.mean() == pytest.approx(theory.md1_wait(0.7), rel=0.03)


def test_the_marking_curve_has_its_corners() -> None:
    """0 up to Kmin, Pmax at Kmax, 1 above."""
    depths = np.array([0.0, 100.0, 150.0, 200.0, 200.1])
    curve = theory.marking_probability(depths, 100, 200, 0.2)
    assert curve == pytest.approx([0, 0, 0.1, 0.2, 1])


def test_a_standing_queue_is_what_the_line_does_not_hold() -> None:
    """Three windows of 10 packets, 12 packets per round trip."""
    assert theory.standing_queue_packets(3, 10, 1200, 100) == 18


def test_a_ring_goes_at_the_pace_of_its_fullest_link() -> None:
    """Three flows on a link of twice the host's rate get two thirds; no ring exceeds the host."""
    assert theory.ring_share([(1, 1.0), (3, 2.0), (2, 2.0)]) == pytest.approx(2 / 3)
    assert theory.ring_share([(1, 4.0)]) == 1.0


@pytest.mark.parametrize(
    ("window", "loss", "goodput"),
    [(20, 1e-4, 0.998), (67, 1e-3, 0.937), (133, 1e-2, 0.427), (256, 1e-2, 0.279)],
)
def test_go_back_n_is_that_of_table_v13(window: int, loss: float, goodput: float) -> None:
    """(1 - p) / (1 - p + p W); selective repeat loses only what is lost."""
    assert theory.go_back_n_goodput(loss, window) == pytest.approx(goodput, abs=1e-3)
    assert theory.selective_repeat_goodput(loss) == 1 - loss


def test_jain_s_index_is_one_for_equals_and_one_over_n_for_one_alone() -> None:
    """Jain, Chiu, Hawe 1984."""
    assert theory.jain_index([3.0, 3.0, 3.0]) == pytest.approx(1)
    assert theory.jain_index([5.0, 0.0, 0.0, 0.0]) == pytest.approx(0.25)


def test_max_min_gives_what_a_flow_cannot_use_to_the_others() -> None:
    """One flow over two links of 1 and 2 with a neighbour on each: 0.5, 0.5, 1.5."""
    net = sharing.network([("a", "b"), ("a",), ("b",)], {"a": 1.0, "b": 2.0})
    assert sharing.max_min(net) == pytest.approx([0.5, 0.5, 1.5])


def test_fixed_windows_share_one_bottleneck_like_max_min() -> None:
    """Equal windows and round trips: halves, and a line that is not full is not shared."""
    net = sharing.network([("a", "c"), ("b", "c")], {"a": 1.0, "b": 1.0, "c": 1.0})
    rates = sharing.fixed_windows(net, np.array([20.0, 20.0]), np.array([5.0, 5.0]))
    assert rates == pytest.approx([0.5, 0.5], abs=1e-4)
    small = sharing.fixed_windows(net, np.array([1.0, 2.0]), np.array([5.0, 5.0]))
    assert small == pytest.approx([0.2, 0.4])


def test_fixed_windows_on_a_line_of_links_are_proportionally_fair() -> None:
    """A long flow over L links with one short flow on each: 1/(L+1) and L/(L+1) of a link."""
    links = ["a", "b", "c"]
    net = sharing.network([links, *([link] for link in links)], dict.fromkeys(links, 1.0))
    rates = sharing.fixed_windows(net, np.full(4, 1e4), np.full(4, 1.0))
    assert rates == pytest.approx([0.25, 0.75, 0.75, 0.75], abs=1e-3)


def test_fixed_windows_satisfy_their_own_law(rng: np.random.Generator) -> None:
    """Rates fill no link beyond its capacity, and a flow is held back only by full links."""
    links = [f"l{n}" for n in range(8)]
    source = random.Random(5)
    paths = [source.sample(links, 3) for _ in range(12)]
    net = sharing.network(paths, dict.fromkeys(links, 2.0))
    window, unloaded = rng.uniform(5, 30, 12), rng.uniform(4, 9, 12)
    rates = sharing.fixed_windows(net, window, unloaded)
    used = net.uses.T @ rates
    assert (used <= net.capacity * (1 + 1e-4)).all()
    waits = window / rates - unloaded
    full = used >= net.capacity * (1 - 1e-3)
    assert (waits >= -1e-6).all()
    for flow, wait in enumerate(waits):
        if not (net.uses[flow].astype(bool) & full).any():
            assert wait == pytest.approx(0, abs=1e-6)


def test_max_min_over_hashed_paths_reproduces_table_v6() -> None:
    """4 leaves, 2 spines, 4 hosts each, 1:1: mean 0.741 and slowest 0.572 of the line."""
    source, shares = random.Random(3), []
    for number in range(600):
        paths = []
        for src, dst in cross_leaf_pairs(number):
            spine, up, down = source.randrange(2), leaf_of(src), leaf_of(dst)
            paths.append([src, (up, spine), (spine, "to", down), f"to {dst}"])
        rates = {way: 2.0 if isinstance(way, tuple) else 1.0 for path in paths for way in path}
        shares.append(sharing.max_min(sharing.network(paths, rates)))
    assert np.mean([share.mean() for share in shares]) == pytest.approx(0.741, abs=0.01)
    assert np.mean([share.min() for share in shares]) == pytest.approx(0.572, abs=0.01)
    assert np.std([share.mean() for share in shares]) == pytest.approx(SPREAD, abs=0.015)


def leaf_of(host: str) -> int:
    """Four hosts on each leaf."""
    return (int(host[1:]) - 1) // 4


def test_equal_flows_that_never_meet_have_the_line_in_both_models() -> None:
    """Without a collision the models agree on 1."""
    document = {
        "fabric": {"kind": "leaf-spine", "leaves": 2, "spines": 1, "hosts_per_leaf": 1,
                   "fabric_link": {"rate": "200 Gbit/s"}},
        "workloads": [{"kind": "background", "name": "p", "pattern": "permutation",
                       "bytes": "4 KB"}],
    }  # fmt: skip
    (way,) = ways(experiment_of("pair", Run("run", document))).values()
    for shares in models(way):
        assert shares == pytest.approx([1, 1], abs=1e-3)
    assert math.isclose(sum(load for _, load in way.loads()), 8)
