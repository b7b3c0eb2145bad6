"""Dilation, shrink and expected wall time under the virtual clock."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator import scale as scaling
from emulator.plan import make_plan
from emulator.scale import choose_dilation, choose_shrink, nice_at_least, nice_at_most
from emulator.spec.model import Experiment
from tests.unit.emulator.spec_samples import FABRIC, FLOW, experiment
from topologies.errors import SpecError
from traffic import wire
from traffic.workloads.estimate import estimate


def at(rate: str, **keys: Any) -> Experiment:
    """An experiment under the virtual clock, all links of one rate."""
    link = {"rate": rate, "delay": "500 ns"}
    return experiment(clock="virtual", fabric={**FABRIC, "host_link": link, "fabric_link": link},
                      **keys)  # fmt: skip


def test_a_shaper_is_wrong_by_the_nanoseconds_that_it_cuts_off() -> None:
    """4096 B of payload are 4178 B of line: 334.24 ns at 100 Gbit/s, of which 334 count."""
    fabric = at("100 Gbit/s").fabric
    assert scaling.shaper_error(fabric, 4154, 1) == pytest.approx(0.24 / 334.24)
    assert scaling.shaper_error(fabric, 4154, 25) == pytest.approx(0, abs=1e-12)
    assert scaling.shaper_error(at("400 Gbit/s").fabric, 4154, 1) == pytest.approx(0.56 / 83.56)


def test_the_worst_of_all_links_counts() -> None:
    """The uplinks may be faster than the hosts' links."""
    fast = {"rate": "400 Gbit/s", "delay": "500 ns"}
    mixed = experiment(clock="virtual", fabric={**FABRIC, "fabric_link": fast}).fabric
    assert scaling.shaper_error(mixed, 4154, 1) == pytest.approx(0.56 / 83.56)


@given(st.integers(100, 9000), st.floats(1, 1e6), st.sampled_from([1, 10, 25, 100, 400, 800]))
def test_a_shaper_is_never_too_slow(frame_bytes: int, dilation: float, rate_gbps: int) -> None:
    """Cutting makes it faster, by less than a nanosecond per frame."""
    fabric = at(f"{rate_gbps} Gbit/s").fabric
    time_ns = wire.wire_bytes(frame_bytes) * 8 * dilation / rate_gbps
    assert 0 <= scaling.shaper_error(fabric, frame_bytes, dilation) < min(1, 1 / time_ns) + 1e-9


@pytest.mark.parametrize(
    ("rate", "dilation"),
    [("10 Gbit/s", 1), ("25 Gbit/s", 1), ("100 Gbit/s", 1), ("400 Gbit/s", 2)],
)
def test_the_virtual_clock_slows_down_as_little_as_shapers_need(rate: str, dilation: float) -> None:
    """Mostly not at all; whatever the machine carries."""
    x = at(rate)
    choices = [choose_dilation(x, capacity) for capacity in (1.0, 45_000, 1e9)]
    assert choices[0] == choices[1] == choices[2]
    assert (choices[0].value, choices[0].fits) == (dilation, True)
    error = scaling.shaper_error(x.fabric, 4154, dilation)
    assert error <= scaling.SHAPER_ERROR
    assert f"{error:.2%} off the rate" in choices[0].reason


@pytest.mark.parametrize("rate_gbps", [1, 10, 25, 40, 50, 100, 200, 400, 800, 1600])
@pytest.mark.parametrize("payload", [256, 1024, 4096])
def test_the_chosen_dilation_is_the_least_that_will_do(rate_gbps: int, payload: int) -> None:
    """No smaller nice number keeps the rate."""
    x = at(f"{rate_gbps} Gbit/s", transport={"payload": f"{payload} B"})
    frame_bytes = wire.data_frame_bytes(payload)
    value = choose_dilation(x, 0).value
    assert scaling.shaper_error(x.fabric, frame_bytes, value) <= scaling.SHAPER_ERROR
    below = nice_at_least(1)
    while below < value:
        assert scaling.shaper_error(x.fabric, frame_bytes, below) > scaling.SHAPER_ERROR
        below = nice_at_least(below * 1.01)


def test_a_given_dilation_is_kept_under_the_virtual_clock_too() -> None:
    """Judged by what shapers make of it."""
    good, bad = at("400 Gbit/s", dilation=25), at("400 Gbit/s", dilation=1)
    assert (choose_dilation(good, 0).value, choose_dilation(good, 0).fits) == (25, True)
    assert (choose_dilation(bad, 0).value, choose_dilation(bad, 0).fits) == (1, False)
    assert choose_dilation(bad, 0).reason == (
        "given; shapers count whole nanoseconds, full frames are 0.67% off the rate"
    )


def test_a_virtual_dilation_that_no_shaper_can_follow_is_refused() -> None:
    """The same limit as under the live clock."""
    with pytest.raises(SpecError, match=r"slows the link .* down from 100 Gbit/s to 1000 bit/s"):
        choose_dilation(at("100 Gbit/s", dilation=1e8), 0)


def test_virtual_wall_time_follows_from_the_packets_alone() -> None:
    """Neither from model time nor from the dilation: time in which nothing happens is jumped."""
    x = at("100 Gbit/s", workloads=[{**FLOW, "bytes": "40960 KB"}])
    bound = estimate(scaling.tasks_of(x, 1), x.fabric)
    expected_ns = bound.data_packets / scaling.VIRTUAL_PPS * 1e9
    assert expected_ns > 1e8
    assert scaling.expected_wall_ns(x, bound, 1) == pytest.approx(expected_ns)
    assert scaling.expected_wall_ns(x, bound, 1000) == pytest.approx(expected_ns)


def test_virtual_shrink_is_the_smallest_that_fits_the_budget() -> None:
    """By what a reference machine carries, so it is the same everywhere."""
    x = at("100 Gbit/s", workloads=[{**FLOW, "bytes": "40960 MB"}], budget="10 s")
    choice = choose_shrink(x, dilation=1)

    def wall_s(shrink: float) -> float:
        return estimate(scaling.tasks_of(x, shrink), x.fabric).data_packets / scaling.VIRTUAL_PPS

    assert choice.fits
    assert wall_s(choice.value) <= 10 < wall_s(nice_at_most(choice.value * 0.99))
    assert choose_shrink(x, dilation=1, budget_ns=10**12).value == 1


def test_a_virtual_run_resolves_the_same_on_every_machine() -> None:
    """Whatever was measured there: else its results would not be the same."""
    x = at("100 Gbit/s", workloads=[{**FLOW, "bytes": "100 GB"}])
    slow, fast = scaling.resolve(x, 1_000), scaling.resolve(x, 1e7)
    assert slow.scale == fast.scale
    assert slow.scale.shrink > 1
    assert (slow.dilation, slow.shrink) == (fast.dilation, fast.shrink)


def test_a_plan_says_what_a_virtual_run_will_take() -> None:
    """The same whether or not the machine was ever measured."""
    x = at("100 Gbit/s", workloads=[{**FLOW, "bytes": "100 GB"}], budget="20 s")
    unknown, measured = make_plan(x), make_plan(x, 1_000)
    assert unknown.expected_wall_ns == measured.expected_wall_ns
    assert 1e9 < unknown.expected_wall_ns <= 20e9
    assert unknown.scaling.scale == measured.scaling.scale
