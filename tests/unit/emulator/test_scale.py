"""Dilation and shrink: the arithmetic, the choice, and the reason that it gives."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator import scale as scaling
from emulator.demand import peak_packets_per_s
from emulator.probing import probe_pairs
from emulator.scale import Scale, choose_dilation, choose_shrink, nice_at_least, nice_at_most
from emulator.spec.model import Experiment
from tests.unit.emulator.spec_samples import FABRIC, FLOW, experiment
from topologies.errors import SpecError
from traffic.workloads.estimate import estimate

PACKET_BITS = (4096 + 58 + 24) * 8
HOST_PPS = 100e9 / PACKET_BITS


def _peak(x: Experiment) -> float:
    return peak_packets_per_s(x, scaling.tasks_of(x, 1))


def _background(**keys: Any) -> dict[str, Any]:
    return {"kind": "background", "name": "b", "bytes": "1 MB", **keys}


def test_rates_are_divided_and_times_multiplied() -> None:
    """100 Gbit/s at dilation 1000 is 100 Mbit/s; 8 us becomes 8 ms."""
    scale = Scale(dilation=1000, shrink=4)
    assert scale.emulated_bps(100_000_000_000) == 100_000_000
    assert scale.wall_ns(8_000) == 8_000_000
    assert scale.model_ns(8_000_000) == 8_000


@given(st.floats(1, 1e6), st.integers(0, 10**12))
def test_model_and_wall_time_are_inverse(dilation: float, model_ns: int) -> None:
    """Going there and back loses less than a nanosecond."""
    scale = Scale(dilation)
    assert abs(scale.model_ns(scale.wall_ns(model_ns)) - model_ns) <= 1


@pytest.mark.parametrize(
    ("value", "above", "below"),
    [(0.1, 1, None), (1, 1, 1), (1.01, 2, 1), (2, 2, 2), (3, 5, 2), (5.0001, 10, 5), (10, 10, 10),
     (11, 20, 10), (99, 100, 50), (100, 100, 100), (2127, 5000, 2000), (4999, 5000, 2000)],
)  # fmt: skip
def test_nice_numbers_are_1_2_5_times_powers_of_ten(
    value: float, above: int, below: int | None
) -> None:
    """The next one up, and the next one down."""
    assert nice_at_least(value) == above
    if below is not None:
        assert nice_at_most(value) == below


@given(st.floats(1, 1e9))
def test_nice_numbers_enclose_a_value(value: float) -> None:
    """No nice number lies between the value and either choice, and they are at most 2.5 apart."""
    above, below = nice_at_least(value), nice_at_most(value)
    assert below <= value <= above <= 2.5 * below
    assert str(above).rstrip("0") in {"1", "2", "5"}
    assert str(below).rstrip("0") in {"1", "2", "5"}


def test_one_sender_asks_for_its_line_rate() -> None:
    """A flow across the fabric needs its packets over three switches, the reference."""
    assert _peak(experiment()) == pytest.approx(HOST_PPS)


def test_a_path_below_one_leaf_costs_a_third() -> None:
    """One switch instead of three."""
    assert _peak(experiment(workloads=[{**FLOW, "pairs": [["h1", "h2"]]}])) == pytest.approx(
        HOST_PPS / 3
    )


def test_an_incast_is_bounded_by_its_receiver() -> None:
    """Senders with a window cannot keep up more than the bottleneck takes."""
    x = experiment(
        workloads=[_background(pattern="incast", hosts=["h1", "h3", "h4"])],
        transport={"window": "auto"},
    )
    assert _peak(x) == pytest.approx(HOST_PPS)


def test_without_windows_an_incast_is_not_bounded() -> None:
    """Senders that nothing stops load the fabric up to the place where packets are dropped."""
    x = experiment(
        workloads=[_background(pattern="incast", hosts=["h1", "h3", "h4"])],
        transport={"window": "unlimited"},
    )
    assert _peak(x) == pytest.approx(2 * HOST_PPS)


def test_uplinks_bound_what_crosses_the_fabric() -> None:
    """At 4:1 a quarter passes three switches; the rest ends at the first leaf."""
    fabric = {**FABRIC, "hosts_per_leaf": 4, "spines": 1, "oversubscription": 4}
    x = experiment(
        fabric=fabric,
        transport={"window": "unlimited"},
        workloads=[
            _background(pattern="pairs", pairs=[[f"h{n}", f"h{n + 4}"] for n in range(1, 5)])
        ],
    )
    assert _peak(x) == pytest.approx(HOST_PPS + 3 * HOST_PPS / 3)


def test_hosts_of_several_workloads_count_once() -> None:
    """A host has one link per plane, however many jobs share it."""
    x = experiment(workloads=[FLOW, {**FLOW, "name": "again"}])
    assert _peak(x) == pytest.approx(HOST_PPS)


def test_planes_add_up() -> None:
    """A host sends in both fabrics at once."""
    half = {"leaves": 2, "spines": 1, "hosts_per_leaf": 2}
    fabric = {"kind": "front-back", "front": half, "back": half}
    x = experiment(fabric=fabric, workloads=[FLOW, {**FLOW, "name": "again", "plane": 2}])
    assert _peak(x) == pytest.approx(2 * HOST_PPS)


def test_probes_are_added() -> None:
    """Two leaves probe each other both ways, in two classes."""
    quiet, probed = experiment(), experiment(probes={"classes": [0, 3], "rate": "1000 /s"})
    assert _peak(probed) - _peak(quiet) == pytest.approx(2 * 2 * 1000)


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        ("all-leaves", [("h1", "h3"), ("h3", "h1")]),
        ([["h2", "h4"]], [("h2", "h4")]),
        ("all-hosts", [(f"h{a}", f"h{b}") for a in range(1, 5) for b in range(1, 5) if a != b]),
    ],
)
def test_probe_pairs(pairs: object, expected: list[tuple[str, str]]) -> None:
    """Both directions between the first hosts of the leaves, all hosts, or as listed."""
    x = experiment(probes={"pairs": pairs})
    assert [pair[:2] for pair in probe_pairs(x)] == expected
    assert {pair[2] for pair in probe_pairs(x)} == {1}


def test_a_single_leaf_probes_between_its_hosts() -> None:
    """There is no second leaf, so all-leaves means the hosts."""
    x = experiment(
        fabric={"kind": "leaf-spine", "leaves": 1, "spines": 0, "hosts_per_leaf": 2},
        workloads=[{**FLOW, "pairs": [["h1", "h2"]]}],
        probes={},
    )
    assert [pair[:2] for pair in probe_pairs(x)] == [("h1", "h2"), ("h2", "h1")]


@pytest.mark.parametrize("capacity", [1e4, 45e3, 1e6, 1e9])
def test_dilation_is_the_smallest_that_fits(capacity: float) -> None:
    """The chosen one keeps both limits, the nice number below breaks one."""
    x = experiment(workloads=[_background(pattern="all-to-all")])

    def fits(dilation: float) -> bool:
        packets = _peak(x) / dilation <= scaling.CAPACITY_SHARE * capacity
        return packets and 100e9 / dilation <= scaling.MAX_HOST_RATE_BPS

    choice = choose_dilation(x, capacity)
    assert choice.fits
    assert fits(choice.value)
    assert not fits(nice_at_most(choice.value * 0.99))


def test_a_fast_machine_is_limited_by_the_link_rate() -> None:
    """Timers, not packets, are the limit then; the reason says so."""
    choice = choose_dilation(experiment(), 1e9)
    assert choice.value == 500
    assert "400 Mbit/s" in choice.reason


def test_a_given_dilation_is_kept_and_judged() -> None:
    """The user's number stands; whether the machine carries it is known before the run."""
    x = experiment(dilation=1000)
    assert choose_dilation(x, 45_000).value == 1000
    assert choose_dilation(x, 45_000).fits
    assert not choose_dilation(x, 1_000).fits


def test_a_dilation_that_no_shaper_can_follow_is_refused() -> None:
    """Kernel shapers do not go below 8 kbit/s."""
    with pytest.raises(SpecError, match=r"slows the link .* down from 100 Gbit/s to 1000 bit/s"):
        choose_dilation(experiment(dilation=1e8), 45_000)


def test_shrink_is_one_when_the_budget_suffices() -> None:
    """What fits is not made smaller."""
    choice = choose_shrink(experiment(), dilation=500)
    assert (choice.value, choice.fits) == (1, True)


@pytest.mark.parametrize("size", ["100 MB", "1 GB", "20 GB"])
def test_shrink_is_the_smallest_that_fits(size: str) -> None:
    """The expected wall time is within the budget, and would not be one step before."""
    x = experiment(workloads=[{**FLOW, "bytes": size}], budget="3 s")

    def wall_ns(shrink: float) -> float:
        bound = estimate(scaling.tasks_of(x, shrink), x.fabric)
        return scaling.expected_wall_ns(x, bound, 500)

    choice = choose_shrink(x, dilation=500)
    assert choice.fits
    assert wall_ns(choice.value) <= x.budget_ns < wall_ns(nice_at_most(choice.value * 0.99))
    assert "within 3 s" in choice.reason


def test_shrink_stops_where_messages_would_fall_below_a_packet() -> None:
    """A run that cannot be made to fit says so instead of becoming meaningless."""
    x = experiment(workloads=[{**FLOW, "bytes": "1 MB", "count": 1000}], budget="1 ms")
    choice = choose_shrink(x, dilation=500)
    assert (choice.value, choice.fits) == (200, False)
    assert "over the budget of 1 ms: messages cannot become smaller" in choice.reason


def test_the_most_fragile_workload_limits_the_shrink() -> None:
    """Large messages beside do not hide that small ones would vanish."""
    small = {**FLOW, "name": "small", "bytes": "50 KB"}
    large = {**FLOW, "name": "large", "bytes": "10 GB"}
    choice = choose_shrink(experiment(workloads=[small, large], budget="1 ms"), dilation=500)
    assert choice.value == 10


def test_messages_that_never_filled_a_packet_do_not_limit_the_shrink() -> None:
    """Single-packet messages stay what they are, however much the rest shrinks."""
    tiny = {**FLOW, "name": "tiny", "bytes": "100 B"}
    large = {**FLOW, "name": "large", "bytes": "1 GB"}
    choice = choose_shrink(experiment(workloads=[tiny, large], budget="1 s"), dilation=500)
    assert choice.value == 100


def test_a_given_shrink_is_kept_and_judged() -> None:
    """The user's number stands even when the run takes longer than the budget."""
    x = experiment(workloads=[{**FLOW, "bytes": "1 GB"}], shrink=2, budget="1 s")
    choice = choose_shrink(x, dilation=500)
    assert (choice.value, choice.fits) == (2, False)


def test_the_duration_bounds_the_expected_time() -> None:
    """A run that is cut off does not need to be shrunk for what would come later."""
    x = experiment(workloads=[{**FLOW, "bytes": "1 GB"}], duration="1 ms", budget="1 s")
    assert choose_shrink(x, dilation=500).value == 1


def test_typical_messages_are_weighted_by_bytes() -> None:
    """A service of few large caches and many tiny tokens is typically about its caches."""
    many = {**FLOW, "name": "a", "bytes": "1 MB", "count": 3}
    assert scaling.typical_bytes(scaling.tasks_of(experiment(workloads=[many]), 1)) == {
        "a": 1_000_000
    }


def test_resolving_gives_numbers_and_reasons() -> None:
    """Both choices, with the demand and the totals that they rest on."""
    resolved = scaling.resolve(experiment(), 45_000)
    assert resolved.scale == Scale(resolved.dilation.value, resolved.shrink.value)
    assert resolved.estimate.flows == 1
    assert resolved.peak_pps == pytest.approx(HOST_PPS)
    assert resolved.dilation.reason
    assert resolved.shrink.reason
