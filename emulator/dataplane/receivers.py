"""Receivers that are slower than their links: their settings and levels, as the programs see them.

PURE: over arrays that `emulator.dataplane.plane` takes from the kernel and tests from memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from emulator.dataplane import layout
from emulator.spec.receivers import ReceiverSpec
from topologies.model import Fabric, Link

_NS_PER_S = 1_000_000_000
_KIB = 1024
_NEVER = 2**64 - 1

Rows = npt.NDArray[np.void]


class Receivers:
    """Slow receivers by port index.

    Args:
        fabric: whose hosts.
        port_configs: `layout.PORT_CONFIG` by port index; slow ports get a flag.
        configs: `layout.RECEIVER_CONFIG` by port index, zeros; None = plain memory.
        states: `layout.RECEIVER_STATE`, as many.
    """

    def __init__(
        self,
        fabric: Fabric,
        port_configs: Rows,
        configs: Rows | None = None,
        states: Rows | None = None,
    ) -> None:
        count = len(port_configs)
        self._fabric, self._ports = fabric, port_configs
        self.configs = np.zeros(count, layout.RECEIVER_CONFIG) if configs is None else configs
        states = np.zeros(count, layout.RECEIVER_STATE) if states is None else states
        self.levels = states["classes"]
        self._specs: dict[int, ReceiverSpec] = {}

    def apply(self, specs: Iterable[ReceiverSpec], classes: Sequence[int], dilation: float) -> None:
        """Settings of all slow receivers; they are as fast as their links until `begin`.

        Args:
            specs: target units.
            classes: the lossless ones.
            dilation: wall ns per model ns.
        """
        for spec in specs:
            for port in self._fabric.ports_of[spec.host]:
                self._specs[port.index] = spec
                self._set(port.index, spec, self._fabric.link_of(port), classes, dilation)

    def _set(
        self, port: int, spec: ReceiverSpec, link: Link, classes: Sequence[int], dilation: float
    ) -> None:
        entry, mtu_bytes = self.configs[port], self._fabric.mtu_bytes
        if spec.rate_bps:
            entry["ns_per_kib"] = round(_KIB * 8 * _NS_PER_S * dilation / spec.rate_bps)
        entry["xoff"] = spec.xoff_bytes(link, mtu_bytes)
        entry["xon"] = spec.xon_bytes(link, mtu_bytes)
        entry["classes"] = sum(1 << tc for tc in classes)
        entry["from_ns"] = entry["until_ns"] = _NEVER
        self._ports["flags"][port] |= layout.FLAG_RECEIVER

    def begin(self, start_wall_ns: int, dilation: float) -> None:
        """Model time 0 is at this monotonic time."""
        for port, spec in self._specs.items():
            begin_ns = start_wall_ns + round(spec.start_ns * dilation)
            entry = self.configs[port]
            if spec.duration_ns is not None:
                entry["until_ns"] = begin_ns + round(spec.duration_ns * dilation)
            entry["from_ns"] = begin_ns

    def is_slow(self, port: int) -> bool:
        """Whether a port is a slow receiver's."""
        return bool(self._ports["flags"][port] & layout.FLAG_RECEIVER)

    def calm_ns(self, port: int, tc: int, now_ns: int) -> int | None:
        """When the NIC's buffer is down to XON if nothing more comes; None = never.

        As `level_at` in bpf/receive.h has it, rounded up.
        """
        entry, level = self.configs[port], self.levels[port, tc]
        until_ns, xon = int(entry["until_ns"]), int(entry["xon"])
        if not int(entry["from_ns"]) <= now_ns < until_ns or int(level["bytes"]) <= xon:
            return now_ns
        calm_ns = _NEVER
        if entry["ns_per_kib"]:
            above = (int(level["bytes"]) - xon) * int(entry["ns_per_kib"])
            calm_ns = int(level["time_ns"]) + -(-above // _KIB)
        calm_ns = min(calm_ns, until_ns)
        return None if calm_ns == _NEVER else max(calm_ns, now_ns)

    def resume(self, port: int, tc: int) -> int:
        """Notes that XON was crossed; the number of changes so far."""
        level = self.levels[port : port + 1, tc]
        if int(level["changes"][0]) & 1:
            level["changes"] += 1
        return int(level["changes"][0])
