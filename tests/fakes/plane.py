"""A data plane without a kernel: its tables in plain memory, and packets counted by hand."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from emulator.dataplane import layout
from emulator.dataplane.tables import Tables
from topologies.model import Fabric

LENGTH = 4154
"""Frame bytes of a full data packet."""


class FakePlane(Tables):
    """Tables that start at zero.

    Args:
        fabric: whose ports.
        dilation: by which the links' rates are divided.
        seed: of the marking lottery.
    """

    def __init__(self, fabric: Fabric, dilation: float = 1_000.0, seed: int = 7) -> None:
        self.emulated_bps = [round(link.rate_bps / dilation) for link in fabric.links]
        super().__init__(
            fabric,
            self.emulated_bps,
            seed,
            np.zeros(layout.MAX_PORTS, layout.PORT_CONFIG),
            np.zeros(layout.MAX_PORTS, layout.PORT_STATE),
            np.zeros(layout.MAX_SWITCHES, layout.SWITCH_STATE),
        )

    def add(self, port: str, tc: int = 3, **counts: int) -> None:
        """Adds to counters of a port's class: ``in_packets=5``."""
        for name, count in counts.items():
            self.states["classes"][name][self.fabric.port_named(port).index, tc] += count

    def enter(self, port: str, count: int = 1, tc: int = 3, length: int = LENGTH) -> None:
        """Packets go into a port's queue."""
        self.add(port, tc, in_packets=count, in_bytes=count * length)

    def leave(self, port: str, count: int = 1, tc: int = 3, length: int = LENGTH) -> None:
        """Packets leave it."""
        self.add(port, tc, out_packets=count, out_bytes=count * length)

    def drop(self, port: str, count: int = 1, tc: int = 3, length: int = LENGTH) -> None:
        """A port's MMU refuses packets."""
        self.add(port, tc, drop_packets=count, drop_bytes=count * length)

    def cut(self, port: str, count: int = 1, tc: int = 3, to_class: int = 5) -> None:
        """A port's MMU cuts packets to 64 bytes; their headers enter its queue of another class."""
        self.add(port, tc, trim_packets=count, trim_bytes=count * (LENGTH - 64))
        self.enter(port, count, to_class, 64)

    def carry(self, ports: Iterable[str], count: int = 1, tc: int = 3) -> None:
        """Packets go through these egress ports, one after the other."""
        for port in ports:
            self.enter(port, count, tc)
            self.leave(port, count, tc)

    def busy(self, port: str, gaps: int, speed: float = 1.0, late: dict[int, int] | None = None,
             length: int = LENGTH + 24) -> None:  # fmt: skip
        """A port sends so many packets in a row at `speed` times its rate.

        Args:
            port: interface name.
            gaps: between departures.
            speed: 1 = its configured rate.
            late: bucket -> gaps in it; the rest is in time.
            length: wire bytes of a packet.
        """
        late = late or {}
        one = self.fabric.port_named(port)
        state = self.states[one.index : one.index + 1]
        state["busy_gaps"] += gaps
        state["busy_wire_bytes"] += gaps * length
        state["busy_ns"] += round(gaps * length * 8e9 / self.emulated_bps[one.link] / speed)
        state["late_gaps"][0, 0] += gaps - sum(late.values())
        for bucket, count in late.items():
            state["late_gaps"][0, bucket] += count
