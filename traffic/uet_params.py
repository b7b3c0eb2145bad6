"""Published parameters of Ultra-Ethernet-like transport, as data with their sources.

Where a constant of the source is a number of packets per round trip, it holds at 100 Gbit/s and
12 us; the control scales it by the bandwidth-delay product and the target delay.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType

RANDOM, ROUND_ROBIN = "random", "round-robin"
SPRAYS = (RANDOM, ROUND_ROBIN)
"""Orders in which the entropies of a pool are used."""

NSCC, RCCC = "nscc", "rccc"
"""Controls: the sender's window, the receiver's credits; joined by ``+`` they work together."""

_US = 1_000


@dataclass(frozen=True, slots=True)
class UetParams:
    """One set of parameters: spraying, congestion windows, recovery, credits.

    Attributes:
        name: what a user writes to choose it.
        source: where the values come from.
        entropies: values in a connection's pool, a power of two up to 256.
        spray: order in which they are used, ``random`` or ``round-robin``.
        marked_skips: how often an entropy is passed over after a packet of it was marked.
        trimmed_skips: the same after one was trimmed.
        target_times: queueing delay that is aimed for, in unloaded round trips; None = 3/4 where
            switches trim, else 1.
        window_times: largest window, and the first one, in bandwidth-delay products.
        min_packets: least window.
        proportional_packets: growth per round trip without queueing delay.
        fair_packets: growth per round trip at or above the target delay, without marks.
        fast_share: growth per acknowledged byte while there is no delay for a whole window.
        fast_delay_ns: what counts as no delay.
        eta_packets: growth per round trip in any case.
        gamma: share of the delay above target by which marks and delay together cut.
        least_cut: what one cut leaves at the least.
        delay_gain: weight of one sample in the mean delay.
        fulfil_packets: acknowledged packets after which growth is applied.
        adapt_times: delay, in targets, that makes the window what was achieved in a round trip.
        adapt_share: the same happens only when that was less than this share of the window's limit.
        reorder_times: a packet is lost when so many windows of later ones have arrived.
        reorder_least_packets: and at least so many packets.
        credit_packets: packets of one credit, given in turn to the senders that want some.
        credit_share: rate of credits over that of the receiver's link.
    """

    name: str
    source: str
    entropies: int
    spray: str
    marked_skips: int
    trimmed_skips: int
    target_times: float | None
    window_times: float
    min_packets: int
    proportional_packets: float
    fair_packets: float
    fast_share: float
    fast_delay_ns: int
    eta_packets: float
    gamma: float
    least_cut: float
    delay_gain: float
    fulfil_packets: int
    adapt_times: float
    adapt_share: float
    reorder_times: float
    reorder_least_packets: int
    credit_packets: int
    credit_share: float


UEC = UetParams(
    name="uec",
    source="Ultra Ethernet 1.0 (NSCC, RCCC, spraying over 64 to 256 entropies); constants of the "
    "consortium's htsim, uec.cpp",
    entropies=64,
    spray=ROUND_ROBIN,
    marked_skips=1,
    trimmed_skips=4,
    target_times=None,
    window_times=1.5,
    min_packets=1,
    proportional_packets=4.0,
    fair_packets=5.0,
    fast_share=0.25,
    fast_delay_ns=1 * _US,
    eta_packets=0.15,
    gamma=0.8,
    least_cut=0.5,
    delay_gain=0.0125,
    fulfil_packets=8,
    adapt_times=4.0,
    adapt_share=1 / 8,
    reorder_times=1.5,
    reorder_least_packets=5,
    credit_packets=4,
    credit_share=0.99,
)
PARAMETER_SETS = MappingProxyType({params.name: params for params in (UEC,)})
"""Every parameter set by its name."""
