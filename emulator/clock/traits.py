"""PURE: what differs between the two clocks for whoever sets up and times a run.

Nothing that sends, forwards or measures knows which clock runs; only set-up reads this. All times
are of the emulating machine: wall time under the live clock, the guest's time under the virtual.
"""

from __future__ import annotations

from dataclasses import dataclass

CLOCKS = LIVE_CLOCK, VIRTUAL_CLOCK = "live", "virtual"


@dataclass(frozen=True)
class ClockTraits:
    """How a run is timed.

    Attributes:
        name: as experiments call it.
        burst_ns: how late a shaper may be without losing rate (HTB's burst, as a time).
        delays_in_path: links delay packets themselves; else the receiving NIC holds them.
        least_tick_ns: shortest period of the NIC engine.
        most_tick_ns: longest period.
        ticks_per_round_trip: periods per unloaded round trip, between these bounds.
        lead_ns: from the engine's start to model time 0.
        quiet_ns: the network is drained when nothing arrives for so long.
        drain_ns: how long to wait for that.
        least_sample_ns: shortest time between two queue samples.
        samples: queue samples of a whole run, if that is not too many.
        look_ns: how often the run is looked after at least.
        rest_ns: shortest rest of whoever looks after it.
        flush_ns: how often rows are written to the run folder; None = 50 times per run.
        real_time: competes for processors, so it needs priority, and idle time means something.
        datapath: of Open vSwitch; None = what the machine has.
    """

    name: str
    burst_ns: int
    delays_in_path: bool
    least_tick_ns: int
    most_tick_ns: int
    ticks_per_round_trip: float
    lead_ns: int
    quiet_ns: int
    drain_ns: int
    least_sample_ns: int
    samples: int
    look_ns: int
    rest_ns: int
    flush_ns: int | None
    real_time: bool
    datapath: str | None = None


LIVE = ClockTraits(
    name=LIVE_CLOCK,
    burst_ns=150_000,
    delays_in_path=False,
    least_tick_ns=250_000,
    most_tick_ns=1_000_000,
    ticks_per_round_trip=8,
    lead_ns=20_000_000,
    quiet_ns=50_000_000,
    drain_ns=5_000_000_000,
    least_sample_ns=5_000_000,
    samples=1500,
    look_ns=20_000_000,
    rest_ns=1_000_000,
    flush_ns=200_000_000,
    real_time=True,
)
VIRTUAL = ClockTraits(
    name=VIRTUAL_CLOCK,
    burst_ns=0,
    delays_in_path=True,
    least_tick_ns=1_000,
    most_tick_ns=20_000,
    ticks_per_round_trip=2,
    lead_ns=1_000_000,
    quiet_ns=200_000,
    drain_ns=50_000_000,
    least_sample_ns=2_000,
    samples=1500,
    look_ns=10_000_000,
    rest_ns=1_000,
    flush_ns=None,
    real_time=False,
    datapath="system",
)
_ALL = {traits.name: traits for traits in (LIVE, VIRTUAL)}


def traits_of(clock: str) -> ClockTraits:
    """The traits of a clock by its name."""
    return _ALL[clock]
