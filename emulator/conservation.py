"""Where every packet went: exact sums over the counters of all ports. PURE.

A port counts a packet in when it enters its queue, or as dropped; its peer counts it out when it
has left. So for each switch, what came in must equal what its ports took or dropped, and for the
whole fabric, what hosts sent must equal what hosts got, plus drops, plus what still waits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from topologies.model import Fabric

States = npt.NDArray[np.void]


@dataclass(frozen=True)
class Ledger:
    """Packet totals of a run.

    Attributes:
        sent: packets that hosts put into their NICs' queues.
        delivered: packets that reached a host.
        dropped: packets that a switch port's MMU refused.
        queued: packets that still wait in a queue.
        overrun: packets that reached a host whose receive ring was full.
        marked: packets that a switch marked CE.
        lost_in_switch: packets that entered a switch and came to none of its ports, by name;
            negative where more came out of a switch than went in.
        dropped_at: drops by interface name and class.
    """

    sent: int
    delivered: int
    dropped: int
    queued: int
    overrun: int
    marked: int
    lost_in_switch: Mapping[str, int]
    dropped_at: Mapping[tuple[str, int], int]

    @property
    def unaccounted(self) -> int:
        """Packets that nobody can account for; 0 in a sound run.

        Lost ones and copies add up here. Where only one of them happened, this is also what was
        sent less what was delivered, dropped and still waits.
        """
        return sum(abs(count) for count in self.lost_in_switch.values())


def balance(fabric: Fabric, states: States) -> Ledger:
    """Sums up the counters.

    Args:
        fabric: whose ports.
        states: `layout.PORT_STATE`[port index]; entry 0 is unused.
    """
    classes = states["classes"]
    into = _sum(classes["in_packets"])
    out = _sum(classes["out_packets"])
    drops = classes["drop_packets"].astype(np.int64)
    hosts = [port for port in fabric.ports if not fabric.by_name[port.node].is_switch]
    dropped_at = {
        (fabric.port(int(index)).name, int(tc)): int(drops[index, tc])
        for index, tc in np.argwhere(drops)
    }
    return Ledger(
        sent=sum(int(into[port.index]) for port in hosts),
        delivered=sum(int(out[port.peer]) for port in hosts),
        dropped=int(drops.sum()),
        queued=int((into - out).sum()),
        overrun=int(states["overruns"].sum()),
        marked=int(classes["mark_packets"].sum()),
        lost_in_switch=_lost(fabric, into, out, drops.sum(axis=1)),
        dropped_at=dropped_at,
    )


def _sum(counts: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    total: npt.NDArray[np.int64] = counts.sum(axis=1).astype(np.int64)
    return total


def _lost(
    fabric: Fabric,
    into: npt.NDArray[np.int64],
    out: npt.NDArray[np.int64],
    drops: npt.NDArray[np.int64],
) -> dict[str, int]:
    lost = {}
    for switch in fabric.switches:
        ports = fabric.ports_of[switch.name]
        arrived = sum(int(out[port.peer]) for port in ports)
        handled = sum(int(into[port.index] + drops[port.index]) for port in ports)
        if arrived != handled:
            lost[switch.name] = arrived - handled
    return lost


def by_class(states: States) -> list[dict[str, int]]:
    """Sent, dropped and marked packets of each traffic class that was used, over all ports."""
    classes = states["classes"]
    rows = []
    for tc in range(classes.shape[1]):
        sent = int(classes["in_packets"][:, tc].sum())
        dropped = int(classes["drop_packets"][:, tc].sum())
        if sent or dropped:
            marked = int(classes["mark_packets"][:, tc].sum())
            rows.append({"tc": tc, "sent": sent, "dropped": dropped, "marked": marked})
    return rows
