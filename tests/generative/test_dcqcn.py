"""Properties of DCQCN over random sequences of CNPs, sent bytes and looks at the rate."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traffic.dcqcn import PARAMETER_SETS, Dcqcn, DcqcnParams

PARAMS = st.sampled_from(list(PARAMETER_SETS.values()))
LINES = st.sampled_from([10_000_000, 1_000_000_000, 40_000_000_000, 400_000_000_000])
EVENTS = st.lists(
    st.tuples(
        st.integers(0, 400_000),
        st.sampled_from(["cnp", "sent", "look"]),
        st.integers(1, 30_000_000),
    ),
    max_size=60,
)


def play(flow: Dcqcn, events: list[tuple[int, str, int]], looks: int) -> list[int]:
    """Rates after each event; between two events the rate is looked at this many times."""
    now_ns, seen = 0, []
    for gap_ns, what, nbytes in events:
        for look in range(looks):
            flow.rate_bps(now_ns + gap_ns * look // max(1, looks))
        now_ns += gap_ns
        if what == "cnp":
            flow.on_cnp(now_ns)
        elif what == "sent":
            flow.on_sent(now_ns, nbytes)
        seen.append(flow.rate_bps(now_ns))
    return seen


@given(params=PARAMS, line=LINES, events=EVENTS)
def test_the_rate_stays_between_floor_and_line_rate(
    params: DcqcnParams, line: int, events: list[tuple[int, str, int]]
) -> None:
    """Whatever happens, floor <= rate <= line rate, alpha is in 0..1, the target is in reach."""
    flow = Dcqcn(params, line)
    floor = params.min_rate_bps
    least = min(line, params.step_bps(params.additive_bps, line) if floor is None else floor)
    for rate in play(flow, events, 0):
        assert int(least) <= rate <= line
    assert 0 <= flow.alpha <= 1
    assert flow.target_bps <= line


@given(params=PARAMS, line=LINES, events=EVENTS, looks=st.integers(1, 5))
def test_looking_changes_nothing(
    params: DcqcnParams, line: int, events: list[tuple[int, str, int]], looks: int
) -> None:
    """Timers are caught up with lazily: how often the rate is read does not matter."""
    lazy = play(Dcqcn(params, line), events, 0)
    eager = play(Dcqcn(params, line), events, looks)
    assert eager == pytest.approx(lazy, rel=1e-9, abs=2)


@given(params=PARAMS, line=LINES, events=EVENTS)
def test_without_cnps_the_rate_never_falls(
    params: DcqcnParams, line: int, events: list[tuple[int, str, int]]
) -> None:
    """After the last CNP the rate only grows."""
    flow = Dcqcn(params, line)
    flow.on_cnp(0)
    calm = [(gap, "sent" if what == "cnp" else what, size) for gap, what, size in events]
    rates = play(flow, [(10, "look", 1), *calm], 0)
    assert rates == sorted(rates)
