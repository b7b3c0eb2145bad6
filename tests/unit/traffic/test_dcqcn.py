"""DCQCN against sequences computed by hand, for the paper's rule and the adapters' rule."""

from __future__ import annotations

import pytest

from traffic.dcqcn import (
    CONNECTX,
    HPCC,
    NS3_RDMA,
    PAPER,
    PARAMETER_SETS,
    CnpGate,
    Dcqcn,
    DcqcnParams,
)

LINE = 40_000_000_000
US = 1_000


def rates(flow: Dcqcn, *times_us: float) -> list[float]:
    """Rates in Gbit/s at these times."""
    return [flow.rate_bps(round(time * US)) / 1e9 for time in times_us]


def test_a_flow_starts_at_line_rate_and_stays_there_without_cnps() -> None:
    """Nothing changes the rate before the first CNP, whatever is sent."""
    flow = Dcqcn(PAPER, LINE)
    flow.on_sent(10 * US, 50_000_000)
    assert flow.rate_bps(10_000 * US) == LINE
    assert flow.alpha == 1


def test_fast_recovery_halves_the_way_back_five_times() -> None:
    """One CNP halves 40 to 20; every 55 us the distance to 40 halves, then it is additive."""
    flow = Dcqcn(PAPER, LINE)
    flow.on_cnp(0)
    assert rates(flow, 0, 54.9) == [20, 20]
    recovery = rates(flow, 55, 110, 165, 220, 275, 330)
    assert recovery == pytest.approx([30, 35, 37.5, 38.75, 39.375, 39.6875])


def test_the_second_cut_is_smaller_and_lowers_the_target() -> None:
    """After one alpha update without CNP, alpha is 255/256 and the cut from 30 is by half of it."""
    flow = Dcqcn(PAPER, LINE)
    flow.on_cnp(0)
    flow.on_cnp(100 * US)
    alpha = 255 / 256
    assert rates(flow, 100)[0] == pytest.approx(30 * (1 - alpha / 2))
    assert flow.target_bps == pytest.approx(30e9)
    assert flow.alpha == pytest.approx(alpha + (1 - alpha) / 256)


def test_a_cnp_restarts_the_timers() -> None:
    """The next increase comes 55 us after the last CNP, not after the first."""
    flow = Dcqcn(PAPER, LINE)
    flow.on_cnp(0)
    flow.on_cnp(50 * US)
    assert rates(flow, 50, 104.9) == pytest.approx([10, 10])
    assert rates(flow, 105) == pytest.approx([15])


def test_additive_increase_after_fast_recovery() -> None:
    """From the sixth increase on the target grows by 40 Mbit/s before each averaging."""
    flow = Dcqcn(PAPER, LINE)
    flow.on_cnp(0)
    flow.on_cnp(50 * US)
    fifth = 20 - 10 / 32
    assert rates(flow, 50 + 5 * 55) == pytest.approx([fifth])
    sixth = (20.04 + fifth) / 2
    assert rates(flow, 50 + 6 * 55) == pytest.approx([sixth])
    assert rates(flow, 50 + 7 * 55) == pytest.approx([(20.08 + sixth) / 2])


def test_the_byte_counter_increases_too() -> None:
    """Every 10 MB sent is an increase; bytes sent before the first CNP do not count."""
    flow = Dcqcn(PAPER, LINE)
    flow.on_sent(0, 9_000_000)
    flow.on_cnp(0)
    flow.on_sent(1 * US, 9_999_999)
    assert rates(flow, 1) == [20]
    flow.on_sent(2 * US, 1)
    assert rates(flow, 2) == [30]
    flow.on_sent(3 * US, 20_000_000)
    assert rates(flow, 3) == [37.5]


def test_hyper_increase_needs_both_counters_beyond_the_threshold() -> None:
    """With i the lesser counter minus 5, the target grows by i times 200 Mbit/s (ns3-rdma)."""
    flow = Dcqcn(NS3_RDMA, LINE)
    flow.on_cnp(0)
    flow.on_cnp(50 * US)
    for event in range(6):
        flow.on_sent((51 + event) * US, 300_000_000)
    assert flow.target_bps == pytest.approx(20.04e9)
    flow.rate_bps((50 + 5 * 60) * US)
    assert flow.target_bps == pytest.approx(20.04e9 + 5 * 0.04e9)
    flow.rate_bps((50 + 6 * 60) * US)
    assert flow.target_bps == pytest.approx(20.24e9 + 0.2e9)
    flow.on_sent((51 + 6 * 60) * US, 300_000_000)
    assert flow.target_bps == pytest.approx(20.44e9 + 0.2e9)
    flow.rate_bps((50 + 7 * 60) * US)
    assert flow.target_bps == pytest.approx(20.64e9 + 2 * 0.2e9)


def test_steps_grow_with_the_line_rate_where_the_source_has_one() -> None:
    """40 Mbit/s at 40 Gbit/s is 100 Mbit/s at 100 Gbit/s; firmware defaults are absolute."""
    assert PAPER.step_bps(PAPER.additive_bps, 100_000_000_000) == 100_000_000
    assert CONNECTX.step_bps(CONNECTX.additive_bps, 100_000_000_000) == 5_000_000


def test_decoupled_cuts_happen_on_a_grid() -> None:
    """HPCC: the first CNP cuts at once, a later one at the next multiple of 4 us, once."""
    flow = Dcqcn(HPCC, 25_000_000_000)
    flow.on_cnp(0)
    assert rates(flow, 0) == [12.5]
    flow.on_cnp(5 * US)
    flow.on_cnp(6 * US)
    assert rates(flow, 7.9) == [12.5]
    keep = 255 / 256
    # Alpha decays at 1..5 us, sees the CNPs of 5 us at 6 us and of 6 us at 7 us, decays at 8 us.
    alpha = ((keep**6 + 1 / 256) * keep + 1 / 256) * keep
    assert rates(flow, 8)[0] == pytest.approx(12.5 * (1 - alpha / 2))
    assert flow.alpha == pytest.approx(alpha)
    assert rates(flow, 12) == rates(flow, 8)


def test_decoupled_target_stays_until_the_timer_increased() -> None:
    """A cut clamps the target to the current rate only after an increase by the timer."""
    flow = Dcqcn(HPCC, 25_000_000_000)
    flow.on_cnp(0)
    flow.on_cnp(4 * US)
    flow.rate_bps(8 * US)
    assert flow.target_bps == 25e9
    cut = flow.rate_bps(8 * US) / 1e9
    recovered = (25 + cut) / 2
    assert rates(flow, 304) == pytest.approx([recovered])
    flow.on_cnp(305 * US)
    flow.rate_bps(308 * US)
    assert flow.target_bps == pytest.approx(recovered * 1e9, rel=1e-6)


def test_decoupled_stages_are_recovery_additive_hyper() -> None:
    """Timer events 1, 2 and 3 after a cut: fast recovery, 5 Mbit/s, then 50 Mbit/s (HPCC, 25G)."""
    flow = Dcqcn(HPCC, 25_000_000_000)
    for time_us in (0, 400, 404, 408):
        flow.on_cnp(time_us * US)
    flow.rate_bps(408 * US)
    target = flow.target_bps
    assert target < 25e9
    flow.rate_bps(708 * US)
    assert flow.target_bps == target
    flow.rate_bps(1008 * US)
    assert flow.target_bps == pytest.approx(target + 5e6)
    flow.rate_bps(1308 * US)
    assert flow.target_bps == pytest.approx(target + 55e6)


def test_the_rate_has_a_floor() -> None:
    """Cuts without end stop at the floor: one additive step where the source gives none."""
    flow = Dcqcn(PAPER, LINE)
    for event in range(200):
        flow.on_cnp(event * US)
    assert flow.rate_bps(200 * US) == 40_000_000
    slow = Dcqcn(HPCC, 500_000_000)
    slow.on_cnp(0)
    assert slow.rate_bps(0) == 500_000_000  # its floor of 1 Gbit/s is above the line rate


def test_a_flow_comes_back_to_line_rate() -> None:
    """Long after the last CNP the rate is exactly the line rate again and alpha is near 0."""
    for params in PARAMETER_SETS.values():
        flow = Dcqcn(params, LINE)
        flow.on_cnp(0)
        assert flow.rate_bps(10**10) == LINE
        assert flow.alpha < 1e-9


def test_a_long_pause_costs_no_time() -> None:
    """An hour of idle time at line rate is caught up with in closed form."""
    flow = Dcqcn(PAPER, LINE)
    flow.on_cnp(0)
    assert flow.rate_bps(3600 * 10**9) == LINE
    flow.on_cnp(3600 * 10**9)
    assert flow.rate_bps(3600 * 10**9) == LINE  # alpha has decayed to nothing


@pytest.mark.parametrize("params", PARAMETER_SETS.values(), ids=lambda params: params.name)
def test_parameter_sets_are_sane(params: DcqcnParams) -> None:
    """Every set has a source, a g below 1, and intervals above 0."""
    assert params.source
    assert 0 < params.g < 1
    assert min(params.alpha_interval_ns, params.increase_interval_ns, params.cut_interval_ns) > 0
    assert PARAMETER_SETS[params.name] is params


def test_impossible_line_rate() -> None:
    """A line rate of 0 is a programming error."""
    with pytest.raises(ValueError, match="line_rate_bps 0"):
        Dcqcn(PAPER, 0)


def test_cnp_gate_sends_one_per_interval_and_flow() -> None:
    """Of marked packets every 20 us, the first and those 50 us after the last CNP give a CNP."""
    gate = CnpGate(50 * US)
    sent = [time for time in range(0, 200, 20) if gate.marked("a", time * US)]
    assert sent == [0, 60, 120, 180]
    assert gate.marked("b", 181 * US)


def test_cnp_gate_without_interval_lets_all_through() -> None:
    """Interval 0 is one CNP per marked packet."""
    gate = CnpGate(0)
    assert all(gate.marked("a", 5) for _ in range(3))


def test_cnp_gate_forgets() -> None:
    """A forgotten flow starts anew; a negative interval is an error."""
    gate = CnpGate(50 * US)
    gate.marked("a", 0)
    gate.forget("a")
    gate.forget("never seen")
    assert gate.marked("a", 1)
    with pytest.raises(ValueError, match="interval_ns -1"):
        CnpGate(-1)
