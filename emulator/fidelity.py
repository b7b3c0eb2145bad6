"""Whether a run can be believed: evidence in, verdict out (design section 8). PURE.

The limits, and why:
- conservation: exact, no tolerance.
- rate: 3 % over the time that a port was busy, among ports that were busy for long enough, with
  packets so long that a shaper, which counts whole nanoseconds, can keep to 3 %.
- keeping up: a NIC that has something to send and whose queue ran dry lost that line time; 1 % of
  a NIC's busy time is tolerated. A late dequeue delays packets; 99 of 100 gaps between dequeues
  of a busy port must be late by less than one packet's time or 1 ms, whichever is more.
- switching: what packets spend inside the emulated switches beyond the idle time, which the NICs
  make up for, lengthens every round trip; 10 % of the unloaded round trip is tolerated.
- pauses: 99 of 100 gates must close within 2 ms of wall time, what automatic headroom allows for;
  a lossless class that lost something in spite of automatic headroom is a matter of dilation.
- unloaded round trip: 5 % of the prediction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from emulator.conservation import Ledger
from topologies.model import Fabric

RATE_LIMIT = 0.03
ROUND_TRIP_LIMIT = 0.05
SWITCHING_LIMIT = 0.10
STARVED_LIMIT = 0.01
LATE_GAPS_LIMIT = 0.01
LATE_FLOOR_US = 1000.0
PAUSE_LATENESS_NS = 2_000_000
MIN_GAPS = 200
MIN_BUSY_SHARE = 0.05
SHAPER_STEP_NS = 1
"""A shaper's times are whole nanoseconds."""
_BITS = 8


@dataclass(frozen=True)
class PortRate:
    """What a busy port achieved.

    Attributes:
        name: interface name.
        error: achieved over configured rate, minus 1.
        late_share: share of its dequeue gaps that were too late.
    """

    name: str
    error: float
    late_share: float


@dataclass(frozen=True)
class Evidence:
    """All that a verdict rests on.

    Attributes:
        packets: where the packets went.
        rates: busy ports.
        refused: frames that the kernel did not take from the NICs.
        strangers: frames that arrived for nobody.
        starved_share: largest share of a NIC's busy time that its queue was dry for want of us.
        lateness_us: {p50, p99} of the NICs' lateness, target us.
        switching_excess: time inside switches beyond the idle time, as a share of the unloaded
            round trip of the longest path.
        idle_least: smallest share of idle processor time in a second; None = too short.
        round_trip_error: largest deviation of an unloaded round trip; None = not measured.
        drained: whether the network fell silent at the end.
        missing_marks: places whose queue exceeded Kmax by far and that marked nothing.
        lossless: traffic classes that must not lose anything.
        headroom_drops: packets that an ingress port and class had no headroom for, by name.
        lost_to_lateness: what lossless classes lost had no room in headroom that is large enough
            for a machine that keeps up.
        pause_lateness_ns: how late 99 of 100 gates closed, wall ns.
        lost_crossings: crossings of XOFF or XON that the agent was not told of.
        troubles: anything else that makes the run invalid, as sentences.
    """

    packets: Ledger
    rates: Sequence[PortRate]
    refused: int = 0
    strangers: int = 0
    starved_share: float = 0.0
    lateness_us: Mapping[str, float] = field(default_factory=dict)
    switching_excess: float = 0.0
    idle_least: float | None = None
    round_trip_error: float | None = None
    drained: bool = True
    missing_marks: Sequence[str] = ()
    lossless: Sequence[int] = ()
    headroom_drops: Mapping[tuple[str, int], int] = field(default_factory=dict)
    lost_to_lateness: bool = False
    pause_lateness_ns: float = 0.0
    lost_crossings: int = 0
    troubles: Sequence[str] = ()


@dataclass(frozen=True)
class Verdict:
    """The judgement.

    Attributes:
        valid: whether the run can be believed.
        reasons: why not.
        slow_only: the only fault is that the machine did not keep up: more dilation would help.
    """

    valid: bool
    reasons: tuple[str, ...]
    slow_only: bool


def port_rates(fabric: Fabric, states: npt.NDArray[np.void],
               emulated_bps: Sequence[int]) -> list[PortRate]:  # fmt: skip
    """Achieved rates of all ports that were busy.

    A port is busy while packets wait behind the one that it sends: for `MIN_GAPS` packets at least,
    and for `MIN_BUSY_SHARE` of all that it sent, since the few that pile up when the machine pauses
    say nothing about the rate. Nor do packets of a few nanoseconds, such as ACKs at 100 Gbit/s: a
    shaper cuts their time to whole ones.

    Args:
        fabric: whose ports.
        states: `layout.PORT_STATE`[port index].
        emulated_bps: configured rate by link id, bit/s.
    """
    rates = []
    for port in fabric.ports:
        state = states[port.index]
        gaps, busy_ns = int(state["busy_gaps"]), int(state["busy_ns"])
        sent = int(state["classes"]["out_packets"].sum())
        if gaps < max(MIN_GAPS, MIN_BUSY_SHARE * sent) or not busy_ns:
            continue
        wire_bytes = int(state["busy_wire_bytes"])
        target = emulated_bps[port.link]
        packet_us = wire_bytes / gaps * _BITS * 1e6 / target
        if packet_us * 1000 * RATE_LIMIT < SHAPER_STEP_NS:
            continue
        achieved = wire_bytes * _BITS * 1e9 / busy_ns
        late = _late_share(state["late_gaps"], max(LATE_FLOOR_US, packet_us))
        rates.append(PortRate(port.name, achieved / target - 1, late))
    return rates


def _late_share(histogram: npt.NDArray[np.uint64], limit_us: float) -> float:
    """Share of gaps in buckets that lie wholly above the limit (bucket i: 2**(i-1)..2**i us)."""
    counts = histogram.astype(float)
    above = [i for i in range(1, len(counts)) if 2.0 ** (i - 1) >= limit_us]
    return float(counts[above].sum() / counts.sum()) if counts.sum() else 0.0


def judge(evidence: Evidence) -> Verdict:
    """The verdict on a run."""
    faults = [*_conservation(evidence), *_consistency(evidence), *evidence.troubles]
    slow, losses = list(_keeping_up(evidence)), _losses(evidence)
    if evidence.pause_lateness_ns > PAUSE_LATENESS_NS:
        slow.append(_late_pauses(evidence))
    if evidence.lost_to_lateness:
        slow += losses
    else:
        faults += losses
    return Verdict(not faults and not slow, (*faults, *slow), bool(slow) and not faults)


def _conservation(evidence: Evidence) -> list[str]:
    packets, reasons = evidence.packets, []
    if packets.unaccounted:
        places = [_place(*entry) for entry in packets.lost_in_switch.items()]
        if packets.lost_headers:
            arrived = packets.cut - packets.lost_headers
            places.append(f"{packets.cut} were cut to their headers, {arrived} came to an end")
        reasons.append(f"{packets.unaccounted} packets are unaccounted for ({', '.join(places)})")
    if packets.queued:
        reasons.append(f"{packets.queued} packets still waited in queues at the end")
    elif not evidence.drained:
        reasons.append("the network had not fallen silent at the end")
    return reasons


def _losses(evidence: Evidence) -> list[str]:
    """What lossless classes lost, and for want of which headroom."""
    lost = [
        f"lossless class {tc} lost {count} packets at {place}"
        for (place, tc), count in evidence.packets.dropped_at.items()
        if tc in evidence.lossless
    ]
    return lost + [
        f"the headroom of class {tc} at {place} was too small for {count} packets"
        for (place, tc), count in evidence.headroom_drops.items()
    ]


def _late_pauses(evidence: Evidence) -> str:
    return (
        f"one pause in a hundred came {evidence.pause_lateness_ns / 1e6:.1f} ms late or more "
        f"(limit {PAUSE_LATENESS_NS / 1e6:g} ms of wall time); use a larger dilation"
    )


def _place(switch: str, lost: int) -> str:
    return f"{lost} lost in {switch}" if lost > 0 else f"{-lost} too many from {switch}"


def _consistency(evidence: Evidence) -> list[str]:
    reasons = []
    if evidence.lost_crossings:
        reasons.append(f"{evidence.lost_crossings} pauses or resumes went unheard")
    if evidence.strangers:
        reasons.append(f"{evidence.strangers} frames arrived for nobody")
    reasons += [
        f"{place} marked nothing although its queue was above Kmax"
        for place in evidence.missing_marks
    ]
    error = evidence.round_trip_error
    if error is not None and error > ROUND_TRIP_LIMIT:
        reasons.append(
            f"the unloaded round trip was {error:.1%} off the prediction (limit "
            f"{ROUND_TRIP_LIMIT:.0%}): a larger dilation makes it exact"
        )
    return reasons


def _keeping_up(evidence: Evidence) -> list[str]:
    reasons = []
    if evidence.packets.overrun or evidence.refused:
        count = evidence.packets.overrun + evidence.refused
        reasons.append(f"the NIC engine was too slow for {count} frames")
    if evidence.starved_share > STARVED_LIMIT:
        reasons.append(
            f"a NIC's queue ran dry for {evidence.starved_share:.1%} of its busy time for want of "
            f"the engine (limit {STARVED_LIMIT:.0%})"
        )
    if evidence.switching_excess > SWITCHING_LIMIT:
        reasons.append(
            f"the emulated switches lengthened round trips by {evidence.switching_excess:.0%} "
            f"(limit {SWITCHING_LIMIT:.0%})"
        )
    reasons += _rate_reasons(evidence.rates)
    return [f"{reason}; use a larger dilation" for reason in reasons]


def _rate_reasons(rates: Sequence[PortRate]) -> list[str]:
    reasons = []
    worst = max(rates, key=lambda rate: abs(rate.error), default=None)
    if worst is not None and abs(worst.error) > RATE_LIMIT:
        reasons.append(f"{worst.name} ran {worst.error:+.1%} off its rate (limit {RATE_LIMIT:.0%})")
    latest = max(rates, key=lambda rate: rate.late_share, default=None)
    if latest is not None and latest.late_share > LATE_GAPS_LIMIT:
        reasons.append(
            f"{latest.late_share:.1%} of the dequeues of {latest.name} came late "
            f"(limit {LATE_GAPS_LIMIT:.0%})"
        )
    return reasons


def rate_error_max(rates: Sequence[PortRate]) -> float | None:
    """Largest deviation from a configured rate; None when no port was busy for long."""
    return max((abs(rate.error) for rate in rates), default=None)
