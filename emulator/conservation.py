"""Where every packet went: exact sums over the counters of all ports. PURE.

A port counts a packet in when it enters its queue, or as dropped; its peer counts it out when it
has left. So for each switch, what came in must equal what its ports took or dropped, and for the
whole fabric, what hosts sent must equal what hosts got, plus drops, plus what still waits.

A packet that is cut to its headers is counted in the queue that the headers enter, or as dropped
there. Besides, all cuts together must equal the headers that hosts got and those that were dropped.
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
        delivered: packets that reached a host whole.
        dropped: packets that a switch port's MMU refused, headers of cut ones among them.
        queued: packets that still wait in a queue.
        overrun: packets that reached a host whose receive ring was full, whole or cut.
        marked: packets that a switch marked CE.
        lost_in_switch: packets that entered a switch and came to none of its ports, by name;
            negative where more came out of a switch than went in.
        dropped_at: drops by interface name and class.
        trimmed: packets that reached a host cut to their headers.
        cut: packets that switches cut.
        cut_dropped: those of them that were dropped on their further way.
    """

    sent: int
    delivered: int
    dropped: int
    queued: int
    overrun: int
    marked: int
    lost_in_switch: Mapping[str, int]
    dropped_at: Mapping[tuple[str, int], int]
    trimmed: int = 0
    cut: int = 0
    cut_dropped: int = 0

    @property
    def lost_headers(self) -> int:
        """Cut packets that came to no end; negative where more did than were cut.

        Those that still wait are not told from others that do, so then it is 0.
        """
        return 0 if self.queued else self.cut - self.cut_dropped - self.trimmed

    @property
    def unaccounted(self) -> int:
        """Packets that nobody can account for; 0 in a sound run.

        Lost ones and copies add up here. Where only one of them happened, this is also what was
        sent less what was delivered, trimmed, dropped and still waits.
        """
        lost = sum(abs(count) for count in self.lost_in_switch.values())
        return max(lost, abs(self.lost_headers))


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
    trimmed = int(states["trimmed_packets"].sum())
    return Ledger(
        sent=sum(int(into[port.index]) for port in hosts),
        delivered=sum(int(out[port.peer]) for port in hosts) - trimmed,
        dropped=int(drops.sum()),
        queued=int((into - out).sum()),
        overrun=int(states["overruns"].sum()),
        marked=int(classes["mark_packets"].sum()),
        lost_in_switch=_lost(fabric, into, out, drops.sum(axis=1)),
        dropped_at=dropped_at,
        trimmed=trimmed,
        cut=int(classes["trim_packets"].sum()),
        cut_dropped=int(classes["trim_drops"].sum()),
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
    """Sent, dropped, trimmed and marked packets of each class that was used, over all ports.

    A packet that was cut counts as trimmed where it would have waited, and as sent or dropped in
    the class in which its headers go on.
    """
    classes = states["classes"]
    rows = []
    for tc in range(classes.shape[1]):
        sent = int(classes["in_packets"][:, tc].sum())
        dropped = int(classes["drop_packets"][:, tc].sum())
        trimmed = int(classes["trim_packets"][:, tc].sum())
        if sent or dropped or trimmed:
            marked = int(classes["mark_packets"][:, tc].sum())
            counts = {"sent": sent, "dropped": dropped, "trimmed": trimmed, "marked": marked}
            rows.append({"tc": tc, **counts})
    return rows
