"""Published parameter sets of DCTCP, as data with their sources. Windows are packets."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class DctcpParams:
    """One set of DCTCP parameters.

    Attributes:
        name: what a user writes to choose it.
        source: where the values come from.
        g: weight of one window's share of marks in alpha.
        initial_alpha: alpha before the first window is over.
        initial_packets: packets that may be in flight at the start; None = one bandwidth-delay
            product.
        slow_start: whether the window doubles each round trip until the first mark or loss.
        min_packets: packets that may always be in flight.
        increase_packets: packets by which the window grows in a round trip after that.
        cut_at_once: whether the first mark of a window cuts, or the window's end if there was one.
    """

    name: str
    source: str
    g: float
    initial_alpha: float
    initial_packets: int | None
    slow_start: bool
    min_packets: int
    increase_packets: float
    cut_at_once: bool


RFC8257 = DctcpParams(
    name="rfc8257",
    source="RFC 8257, section 3.3, as listed there; initial window of RFC 6928, least of RFC 5681",
    g=1 / 16,
    initial_alpha=1.0,
    initial_packets=10,
    slow_start=True,
    min_packets=1,
    increase_packets=1.0,
    cut_at_once=False,
)
LINUX = DctcpParams(
    name="linux",
    source="Linux, net/ipv4/tcp_dctcp.c: the window is reduced as with any ECN echo, at once",
    g=1 / 16,
    initial_alpha=1.0,
    initial_packets=10,
    slow_start=True,
    min_packets=2,
    increase_packets=1.0,
    cut_at_once=True,
)
HPCC = DctcpParams(
    name="hpcc",
    source='"dctcp" of the HPCC simulations (SIGCOMM 2019): starts with a full window, then adds a'
    " packet of 1 KB per round trip",
    g=1 / 16,
    initial_alpha=1.0,
    initial_packets=None,
    slow_start=False,
    min_packets=1,
    increase_packets=1.0,
    cut_at_once=True,
)
PARAMETER_SETS = MappingProxyType({params.name: params for params in (RFC8257, LINUX, HPCC)})
"""Every parameter set by its name."""
