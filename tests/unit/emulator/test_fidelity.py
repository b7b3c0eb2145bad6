"""Verdicts: what is tolerated, and every reason why a run is not believed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from emulator import fidelity
from emulator.conservation import Ledger
from emulator.fidelity import Evidence, PortRate, judge, port_rates
from tests.fakes.fabrics import leaf_spine
from tests.fakes.plane import FakePlane

SOUND = Ledger(1_000, 990, 10, 0, 0, 5, {}, {("leaf1-eth1", 3): 10})
GOOD = Evidence(
    packets=SOUND,
    rates=(PortRate("h1-eth1", 0.004, 0.0), PortRate("leaf1-eth1", -0.011, 0.002)),
    lateness_us={"p50": 0.0, "p99": 1.5},
    idle_least=0.35,
    round_trip_error=0.02,
)
FABRIC = leaf_spine(2, 2, 2)


def packets(**changes: Any) -> dict[str, Any]:
    """Evidence that differs in the ledger."""
    return {"packets": replace(SOUND, **changes)}


def rate(error: float = 0.0, late: float = 0.0) -> dict[str, Any]:
    """Evidence with one more busy port."""
    return {"rates": (*GOOD.rates, PortRate("spine1-eth2", error, late))}


WITHIN = [
    {},
    {"round_trip_error": None, "idle_least": None, "rates": (), "lateness_us": {}},
    {"idle_least": 0.0},
    {"starved_share": fidelity.STARVED_LIMIT},
    {"switching_excess": fidelity.SWITCHING_LIMIT},
    {"round_trip_error": fidelity.ROUND_TRIP_LIMIT},
    rate(error=fidelity.RATE_LIMIT),
    rate(error=-fidelity.RATE_LIMIT),
    rate(late=fidelity.LATE_GAPS_LIMIT),
    {"lossless": (0, 4)},
    {"pause_lateness_ns": fidelity.PAUSE_LATENESS_NS, "lossless": (0, 4)},
    packets(dropped_at={("leaf1-eth1", 3): 9, ("leaf1-eth1", 0): 1}),
]
FAULTS = [
    (
        packets(cut=9, trimmed=6, cut_dropped=1),
        "2 packets are unaccounted for (9 were cut to their headers, 7 came to an end)",
    ),
    (packets(lost_in_switch={"leaf1": 3}), "3 packets are unaccounted for (3 lost in leaf1)"),
    (
        packets(lost_in_switch={"leaf1": 3, "spine1": -3}),
        "6 packets are unaccounted for (3 lost in leaf1, 3 too many from spine1)",
    ),
    (packets(queued=4), "4 packets still waited in queues at the end"),
    ({"drained": False}, "the network had not fallen silent at the end"),
    ({"lossless": (3,)}, "lossless class 3 lost 10 packets at leaf1-eth1"),
    (
        {"lossless": (0,), "headroom_drops": {("spine1-eth2", 0): 4}},
        "the headroom of class 0 at spine1-eth2 was too small for 4 packets",
    ),
    ({"lost_crossings": 2}, "2 pauses or resumes went unheard"),
    ({"strangers": 2}, "2 frames arrived for nobody"),
    ({"missing_marks": ("leaf1-eth2 class 3",)}, "leaf1-eth2 class 3 marked nothing"),
    ({"round_trip_error": 0.051}, "the unloaded round trip was 5.1% off the prediction (limit 5%)"),
    ({"troubles": ("the NIC engine died (exit code 1)",)}, "the NIC engine died (exit code 1)"),
]
SLOWNESS = [
    (packets(overrun=7), "the NIC engine was too slow for 7 frames"),
    ({"refused": 5}, "the NIC engine was too slow for 5 frames"),
    ({"starved_share": 0.02}, "a NIC's queue ran dry for 2.0% of its busy time"),
    ({"switching_excess": 0.25}, "the emulated switches lengthened round trips by 25% (limit 10%)"),
    (rate(error=-0.04), "spine1-eth2 ran -4.0% off its rate (limit 3%)"),
    (rate(error=0.035), "spine1-eth2 ran +3.5% off its rate (limit 3%)"),
    (rate(late=0.02), "2.0% of the dequeues of spine1-eth2 came late (limit 1%)"),
    ({"pause_lateness_ns": 2.34e6}, "one pause in a hundred came 2.3 ms late or more (limit 2 ms"),
]


@pytest.mark.parametrize("changes", WITHIN, ids=str)
def test_what_is_within_the_limits_is_valid(changes: dict[str, Any]) -> None:
    """Drops and marks are no fault, and the limits themselves are still good."""
    assert judge(replace(GOOD, **changes)) == fidelity.Verdict(True, (), False)


@pytest.mark.parametrize(("changes", "reason"), FAULTS, ids=[reason for _, reason in FAULTS])
def test_faults_are_named_and_not_put_down_to_slowness(
    changes: dict[str, Any], reason: str
) -> None:
    """The run is invalid for this one reason, and repeating it slower would not help."""
    verdict = judge(replace(GOOD, **changes))
    assert not verdict.valid
    assert len(verdict.reasons) == 1
    assert verdict.reasons[0].startswith(reason)
    assert not verdict.slow_only


@pytest.mark.parametrize(("changes", "reason"), SLOWNESS, ids=[reason for _, reason in SLOWNESS])
def test_slowness_is_named_with_its_way_out(changes: dict[str, Any], reason: str) -> None:
    """The run is invalid, and the same run at a larger dilation may be valid."""
    verdict = judge(replace(GOOD, **changes))
    assert not verdict.valid
    assert verdict.slow_only
    assert len(verdict.reasons) == 1
    assert verdict.reasons[0].startswith(reason)
    assert verdict.reasons[0].endswith("; use a larger dilation")


def test_slowness_beside_a_fault_is_not_all() -> None:
    """More dilation alone would not make the run valid; both are said."""
    verdict = judge(replace(GOOD, refused=1, strangers=1))
    assert len(verdict.reasons) == 2
    assert not verdict.slow_only


def test_all_reasons_at_once() -> None:
    """Nothing hides anything else."""
    everything: dict[str, Any] = {"drained": True}
    for changes, _ in [*FAULTS[2:3], *FAULTS[5:], *SLOWNESS[1:5]]:
        everything |= changes
    assert len(judge(replace(GOOD, **everything)).reasons) == 11


def test_every_class_that_may_lose_nothing_is_named_with_its_places() -> None:
    """Two lossless classes that lose at one port are two reasons."""
    lost = {("leaf1-eth1", 3): 2, ("leaf1-eth1", 4): 5, ("leaf1-eth1", 0): 9}
    verdict = judge(replace(GOOD, lossless=(3, 4), **packets(dropped_at=lost)))
    assert verdict.reasons == (
        "lossless class 3 lost 2 packets at leaf1-eth1",
        "lossless class 4 lost 5 packets at leaf1-eth1",
    )


def test_losses_of_a_machine_that_is_late_are_a_matter_of_dilation() -> None:
    """They are told like others, but the same run at a larger dilation may be valid."""
    verdict = judge(replace(GOOD, lost_to_lateness=True, lossless=(3,)))
    assert verdict.slow_only
    assert verdict.reasons == ("lossless class 3 lost 10 packets at leaf1-eth1",)


def measured(plane: FakePlane) -> dict[str, PortRate]:
    """Rates of the busy ports, by name."""
    return {r.name: r for r in port_rates(FABRIC, plane.states, plane.emulated_bps)}


@pytest.mark.parametrize("speed", [1.0, 0.96, 1.05])
def test_a_busy_port_s_rate_is_measured_over_its_busy_time(speed: float) -> None:
    """Bytes over busy time, against the emulated rate."""
    plane = FakePlane(FABRIC)
    plane.busy("leaf1-eth3", 1_000, speed)
    rates = measured(plane)
    assert set(rates) == {"leaf1-eth3"}
    assert rates["leaf1-eth3"].error == pytest.approx(speed - 1, abs=1e-6)
    assert rates["leaf1-eth3"].late_share == 0


def test_a_port_that_was_hardly_busy_is_not_judged() -> None:
    """Too few gaps, or few among all that it sent, say nothing about a rate."""
    plane = FakePlane(FABRIC)
    plane.busy("leaf1-eth1", fidelity.MIN_GAPS - 1, 0.5)
    plane.busy("leaf1-eth2", fidelity.MIN_GAPS, 0.5)
    plane.busy("leaf1-eth3", fidelity.MIN_GAPS, 0.5)
    plane.carry(["leaf1-eth2"], int(fidelity.MIN_GAPS / fidelity.MIN_BUSY_SHARE) + 1)
    assert set(measured(plane)) == {"leaf1-eth3"}


def test_packets_of_a_few_nanoseconds_are_not_judged() -> None:
    """ACKs at 100 Gbit/s take 6.88 ns, of which a shaper counts 6; slowed down they are judged."""
    ack_bytes = 86
    for dilation, judged in ((1, False), (10, True)):
        plane = FakePlane(FABRIC, dilation=dilation)
        plane.busy("leaf1-eth3", 1_000, 6.88 / 6, length=ack_bytes)
        plane.busy("leaf1-eth2", 1_000, 334.24 / 334, length=4178)
        assert ("leaf1-eth3" in measured(plane)) is judged
        assert measured(plane)["leaf1-eth2"].error == pytest.approx(0.00072, abs=1e-5)


def test_gaps_are_late_from_a_millisecond_on() -> None:
    """Buckets are powers of two: those that lie above 1 ms as a whole count."""
    plane = FakePlane(FABRIC)
    plane.busy("leaf1-eth3", 1_000, late={10: 300, 11: 20, 15: 5})
    assert measured(plane)["leaf1-eth3"].late_share == pytest.approx(0.025)


def test_where_a_packet_takes_longer_than_a_millisecond_its_time_is_the_limit() -> None:
    """At 100 Gbit/s slowed by 10,000 a packet takes 3.3 ms."""
    plane = FakePlane(FABRIC, dilation=10_000)
    plane.busy("leaf1-eth3", 1_000, late={11: 300, 12: 20, 13: 5})
    assert measured(plane)["leaf1-eth3"].late_share == pytest.approx(0.005)


def test_the_largest_deviation_is_reported_whatever_its_sign() -> None:
    """None where no port was busy."""
    assert fidelity.rate_error_max([PortRate("a", 0.01, 0), PortRate("b", -0.02, 0)]) == 0.02
    assert fidelity.rate_error_max([]) is None
