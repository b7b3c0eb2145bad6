"""PURE: closed forms that the cases are held against. Times ns, rates bit/s, sizes bytes.

They are written down here from their sources and share nothing with the code that predicts
latencies or plans runs, which they check as well.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

CUT_THROUGH_BYTES = 64
"""What a cut-through switch reads before it sends on: the shortest frame (IEEE 802.3)."""


def line_ns(nbytes: float, rate_bps: float) -> float:
    """Time of bytes on a line."""
    return nbytes * 8e9 / rate_bps


def store_and_forward_ns(
    nbytes: float, rate_bps: float, switches: int, switch_ns: float, propagation_ns: float
) -> float:
    """A lone packet over n switches and n+1 links of one rate: (n+1) L/C + n t + propagation.

    Args:
        nbytes: line bytes of the packet.
        rate_bps: of all links.
        switches: how many.
        switch_ns: latency of each.
        propagation_ns: sum over the links.
    """
    return (switches + 1) * line_ns(nbytes, rate_bps) + switches * switch_ns + propagation_ns


def cut_through_ns(
    nbytes: float, rate_bps: float, switches: int, switch_ns: float, propagation_ns: float
) -> float:
    """The same when switches wait for the header only: L/C + n (H/C + t) + propagation."""
    header_ns = line_ns(CUT_THROUGH_BYTES, rate_bps)
    return line_ns(nbytes, rate_bps) + switches * (header_ns + switch_ns) + propagation_ns


def md1_wait(load: float) -> float:
    """Mean wait before service of Poisson arrivals at a constant server, in service times.

    Pollaczek (1930), Khinchine (1932).
    """
    return load / (2 * (1 - load))


def lindley_waits_ns(arrivals_ns: Floats, service_ns: float) -> Floats:
    """Wait of each arrival at a constant server that starts idle (Lindley 1952).

    Args:
        arrivals_ns: ascending.
        service_ns: of each.
    """
    # The wait is how far the work that came until now exceeds its least excess so far.
    excess = np.arange(len(arrivals_ns)) * service_ns - (arrivals_ns - arrivals_ns[:1].sum())
    waits: Floats = excess - np.minimum.accumulate(excess)
    return waits


def marking_probability(depth: Floats, kmin: float, kmax: float, pmax: float) -> Floats:
    """The marking curve: 0 up to Kmin, linear up to Pmax at Kmax, 1 above."""
    ramp = pmax * (depth - kmin) / (kmax - kmin)
    curve: Floats = np.where(depth <= kmin, 0.0, np.where(depth <= kmax, ramp, 1.0))
    return curve


def standing_queue_packets(
    flows: int, window_packets: float, rtt_ns: float, packet_ns: float
) -> float:
    """What flows with fixed windows keep queued at their common bottleneck, if that is positive.

    All windows are in flight; what the unloaded round trip does not hold, waits.
    """
    return flows * window_packets - rtt_ns / packet_ns


def ring_share(flows_on_links: Sequence[tuple[int, float]]) -> float:
    """Share of the host rate at which a ring in lock step goes: that of its slowest link.

    Every hop carries the same bytes per step and nobody gets ahead of its neighbour, so the
    slowest link sets the time of all.

    Args:
        flows_on_links: (flows of the ring, rate over host rate) of each link that it uses.
    """
    return min(1.0, *(rate / flows for flows, rate in flows_on_links))


def go_back_n_goodput(loss: float, window_packets: float) -> float:
    """Share of the rate under independent loss when each loss costs the window: (1-p)/(1-p+pW)."""
    return (1 - loss) / (1 - loss + loss * window_packets)


def selective_repeat_goodput(loss: float) -> float:
    """Share of the rate when each loss costs one packet: 1-p."""
    return 1 - loss


def jain_index(values: Sequence[float] | Floats) -> float:
    """Fairness: 1 when all are equal, 1/n when one has everything (Jain, Chiu, Hawe 1984)."""
    rates = np.asarray(values, dtype=np.float64)
    return float(rates.sum() ** 2 / (len(rates) * (rates**2).sum()))
