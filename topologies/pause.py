"""Sizes and times of priority flow control: how much is in flight when a peer is paused. PURE.

From the moment at which a receiver decides to pause until silence, this still arrives, and lies
in the headroom (IEEE 802.1Qbb-2011 annex O; SONiC's buffer manager computes the same terms):

    2 x cable              what is under way when the pause is sent, and while it travels
    one frame              the receiver has begun one, which the pause frame must wait for
    the pause frame        64 bytes
    the peer's response    from the pause frame's end to its last decision to send
    one frame              the peer has begun one and finishes it
    the receiver's pipeline  what has come in and has not been counted yet

Rates are bit/s, times ns, sizes bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from topologies.model import Fabric, Link
from topologies.settings import PfcRule, resolve

QUANTUM_BITS = 512
"""A pause quantum is 512 bit times (IEEE 802.3 annex 31B)."""
MAX_QUANTA = 0xFFFF
PAUSE_FRAME_BYTES = 64
PREAMBLE_AND_GAP_BYTES = 20
FRAME_OVERHEAD_BYTES = 18
"""Ethernet header and frame check sequence, beside the IP MTU."""
XON_OFFSET_FRAMES = 2
"""RESUME two MTUs below PAUSE (Zhu et al., SIGCOMM 2015, section 4)."""
_RESPONSE_QUANTA = (
    (100_000_000, 1), (1_000_000_000, 2), (10_000_000_000, 67), (25_000_000_000, 80),
    (40_000_000_000, 118), (50_000_000_000, 147), (100_000_000_000, 394),
    (200_000_000_000, 453), (400_000_000_000, 905), (800_000_000_000, 905),
)  # fmt: skip
_BITS = 8
_NS_PER_S = 1_000_000_000


def response_ns(rate_bps: int) -> int:
    """Longest time that a peer may take to react to a pause frame at this rate, ns.

    Quanta by port speed as in SONiC's dynamic buffer calculation, which has them from IEEE 802.3;
    the next faster speed counts where the table has none.
    """
    quanta = next((q for rate, q in _RESPONSE_QUANTA if rate_bps <= rate), _RESPONSE_QUANTA[-1][1])
    return _ceil(quanta * QUANTUM_BITS * _NS_PER_S, rate_bps)


def frame_bytes(mtu_bytes: int) -> int:
    """The largest Ethernet frame of an IP MTU."""
    return mtu_bytes + FRAME_OVERHEAD_BYTES


def headroom_bytes(link: Link, mtu_bytes: int, peer_ns: int, pipeline_ns: int = 0) -> int:
    """Buffer that an ingress port and class needs above XOFF so that nothing is ever lost.

    Args:
        link: to the peer.
        mtu_bytes: IP MTU of both sides.
        peer_ns: the peer's response, see `response_ns`.
        pipeline_ns: time from a frame's arrival to its being counted.
    """
    silent_ns = 2 * link.delay_ns + peer_ns + pipeline_ns
    in_flight = _ceil(link.rate_bps * silent_ns, _BITS * _NS_PER_S)
    return in_flight + 2 * frame_bytes(mtu_bytes) + PAUSE_FRAME_BYTES


def notice_ns(link: Link) -> int:
    """From the decision to pause until the peer has the pause frame, ns."""
    size = PAUSE_FRAME_BYTES + PREAMBLE_AND_GAP_BYTES
    return link.delay_ns + _ceil(size * _BITS * _NS_PER_S, link.rate_bps)


def pause_ns(quanta: int, rate_bps: int) -> int:
    """How long a pause frame holds, ns."""
    return quanta * QUANTUM_BITS * _NS_PER_S // rate_bps


def settled(
    rules: Sequence[PfcRule], fabric: Fabric, pipeline_ns: int = 0, path: str = "pfc"
) -> dict[int, dict[int, PfcRule]]:
    """The rule of every ingress port index and class that has one, with all numbers in it.

    Args:
        rules: where several fit a port and class, the last counts.
        fabric: whose ports.
        pipeline_ns: latency of the switches, for the headroom.
        path: where the rules stand, for errors.

    Raises:
        UnknownNameError: a selector fits no port.
    """
    return {
        index: {tc: settle(rule, fabric, index, pipeline_ns) for tc, rule in sorted(found.items())}
        for index, found in sorted(resolve(rules, fabric, path).items())
    }


def settle(rule: PfcRule, fabric: Fabric, index: int, pipeline_ns: int = 0) -> PfcRule:
    """A rule for one port, its automatic numbers computed."""
    port = fabric.port(index)
    link, mtu_bytes = fabric.link_of(port), fabric.mtu_bytes
    peer_ns = response_ns(link.rate_bps) if rule.response_ns is None else rule.response_ns
    room, offset = rule.headroom_bytes, rule.xon_offset_bytes
    if room is None:
        room = headroom_bytes(link, mtu_bytes, peer_ns, pipeline_ns)
    if offset is None:
        offset = XON_OFFSET_FRAMES * frame_bytes(mtu_bytes)
        offset = offset if rule.xoff_bytes is None else min(offset, rule.xoff_bytes)
    return replace(
        rule, response_ns=peer_ns, headroom_bytes=room, xon_offset_bytes=offset, ports=port.name
    )


def reserved_bytes(rules: Mapping[int, Mapping[int, PfcRule]], fabric: Fabric) -> dict[str, int]:
    """Headroom of all ports and classes of each switch together, bytes by its name.

    Args:
        rules: as `settled` gives them.
        fabric: whose switches.
    """
    total = {node.name: 0 for node in fabric.switches}
    for index, classes in rules.items():
        total[fabric.port(index).node] += sum(r.headroom_bytes or 0 for r in classes.values())
    return total


def _ceil(numerator: int, denominator: int) -> int:
    return -(-numerator // denominator)
