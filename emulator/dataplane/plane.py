"""The eBPF side of a fabric: programs, and the maps' memory shared with this process.

Processes that are forked after `DataPlane` was made share it too: the agent writes settings, the
NIC engine reads backlogs, the sampler reads counters, none of them by a system call.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from emulator.dataplane import layout
from emulator.dataplane.receivers import Receivers
from emulator.dataplane.tables import Tables
from emulator.kernel.bpf import BpfObject, Ring, map_array
from topologies.addressing import host_ip
from topologies.model import Fabric

RING_BYTES = 8 * 1024 * 1024
PAUSE_RING_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Programs:
    """File descriptors of the programs."""

    egress: int
    wire_out: int
    nic_receive: int
    wire_delay: int


class DataPlane(Tables):
    """Loaded programs and their tables.

    Args:
        fabric: the fabric, target units.
        emulated_bps: emulated line rate of each link, bit/s by link id.
        seed: of the marking lottery.
        object_file: the compiled program.

    Attributes:
        programs: to attach to ports.
        ring: what the hosts' NICs received.
        pause_ring: XOFF and XON crossed.
        receivers: hosts that are slower than their links.
    """

    def __init__(
        self, fabric: Fabric, emulated_bps: Sequence[int], seed: int, object_file: Path
    ) -> None:
        loaded = self._loaded = BpfObject(object_file)
        names = ("mmu_egress", "wire_out", "nic_receive", "wire_delay")
        self.programs = Programs(*(loaded.program_fd(name) for name in names))
        super().__init__(
            fabric,
            emulated_bps,
            seed,
            map_array(loaded.map_fd("port_configs"), layout.PORT_CONFIG, layout.MAX_PORTS),
            map_array(loaded.map_fd("port_states"), layout.PORT_STATE, layout.MAX_PORTS),
            map_array(loaded.map_fd("switch_states"), layout.SWITCH_STATE, layout.MAX_SWITCHES),
            map_array(loaded.map_fd("pause_configs"), layout.PAUSE_CONFIGS, layout.MAX_PORTS),
            map_array(loaded.map_fd("pause_states"), layout.PAUSE_STATES, layout.MAX_PORTS),
        )
        self.receivers = Receivers(
            fabric,
            self.configs,
            map_array(loaded.map_fd("receiver_configs"), layout.RECEIVER_CONFIG, layout.MAX_PORTS),
            map_array(loaded.map_fd("receiver_states"), layout.RECEIVER_STATE, layout.MAX_PORTS),
        )
        self._name_hosts()
        fd = loaded.map_fd("pause_ring")
        self.pause_ring = Ring(fd, PAUSE_RING_BYTES, layout.PAUSE_RING_RECORD)
        self.ring = Ring(loaded.map_fd("nic_ring"), RING_BYTES, layout.RING_RECORD)

    def _name_hosts(self) -> None:
        """Tells the programs whose address is whose."""
        for port in self.fabric.ports:
            if not self.fabric.by_name[port.node].is_switch:
                ip = host_ip(self.fabric, port.node, self.fabric.link_of(port).plane)
                self._loaded.put("host_ports", socket.inet_aton(ip), struct.pack("=I", port.index))

    def crossings(self) -> npt.NDArray[np.void]:
        """What crossed XOFF or XON since the last call, `layout.PAUSE_EVENT`s."""
        return self.pause_ring.drain()
