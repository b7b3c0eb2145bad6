"""Configuration and counters of all ports of a run, in shared memory of the eBPF maps.

Processes that are forked after `DataPlane` was made share it: the agent writes settings, the NIC
engine reads backlogs, the sampler reads counters, none of them by a system call.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from emulator.dataplane import layout
from emulator.kernel.bpf import BpfObject, Ring, map_array
from topologies.model import Fabric
from topologies.settings import BufferRule, EcnRule, resolve, resolve_alphas

RING_BYTES = 8 * 1024 * 1024
_NS_PER_S = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Programs:
    """File descriptors of the three programs."""

    egress: int
    wire_out: int
    nic_receive: int


class DataPlane:
    """The eBPF side of a fabric.

    Args:
        fabric: the fabric, target units.
        emulated_bps: emulated line rate of each link, bit/s by link id.
        seed: of the marking lottery.
        object_file: the compiled program.
    """

    def __init__(
        self, fabric: Fabric, emulated_bps: Sequence[int], seed: int, object_file: Path
    ) -> None:
        self.fabric = fabric
        loaded = BpfObject(object_file)
        self._loaded = loaded
        self.programs = Programs(
            *(loaded.program_fd(name) for name in ("mmu_egress", "wire_out", "nic_receive"))
        )
        self.ports = len(fabric.ports)
        self.switch_ids = {node.name: number for number, node in enumerate(fabric.switches)}
        configs = map_array(loaded.map_fd("port_configs"), layout.PORT_CONFIG, layout.MAX_PORTS)
        states = map_array(loaded.map_fd("port_states"), layout.PORT_STATE, layout.MAX_PORTS)
        switches = map_array(
            loaded.map_fd("switch_states"), layout.SWITCH_STATE, layout.MAX_SWITCHES
        )
        self.configs = configs[: self.ports + 1]
        self.states = states[: self.ports + 1]
        self.switches = switches[: len(self.switch_ids)]
        self.ring = Ring(loaded.map_fd("nic_ring"), RING_BYTES, layout.RING_RECORD)
        self._fill_ports(emulated_bps, seed)
        self.switches["buffer_bytes"] = fabric.buffer_bytes

    def _fill_ports(self, emulated_bps: Sequence[int], seed: int) -> None:
        for port in self.fabric.ports:
            config = self.configs[port.index]
            config["peer"] = port.peer
            config["seed"] = _lottery_seed(seed, port.name)
            config["ns_per_kib"] = round(1024 * 8 * _NS_PER_S / emulated_bps[port.link])
            if self.fabric.by_name[port.node].is_switch:
                config["flags"] = layout.FLAG_SWITCH
                config["switch_id"] = self.switch_ids[port.node]

    def set_ecn(self, port: int, tc: int, kmin_bytes: int, kmax_bytes: int, pmax: float) -> None:
        """Marking of one class of one port; takes effect with the next packet.

        Args:
            port: port index.
            tc: traffic class.
            kmin_bytes: no marks up to this queue, bytes.
            kmax_bytes: all packets marked above this queue, bytes; 0 switches marking off.
            pmax: probability at kmax.
        """
        entry = self.configs["classes"][port, tc]
        entry["kmin"], entry["kmax"] = kmin_bytes, kmax_bytes
        entry["pmax"] = round(pmax * layout.PROBABILITY_ONE)

    def apply_ecn(self, rules: Sequence[EcnRule]) -> None:
        """Marking of all ports by rules."""
        for port, classes in resolve(rules, self.fabric).items():
            for tc, rule in classes.items():
                self.set_ecn(port, tc, rule.kmin_bytes, rule.kmax_bytes, rule.pmax)

    def set_buffer(self, switch: str, buffer_bytes: int, alphas: Sequence[float]) -> None:
        """Shared buffer and dynamic thresholds of a switch."""
        self.switches["buffer_bytes"][self.switch_ids[switch]] = buffer_bytes
        values = [max(1, round(alpha * layout.ALPHA_ONE)) for alpha in alphas]
        for port in self.fabric.ports_of[switch]:
            self.configs["classes"]["alpha"][port.index] = values

    def apply_buffers(self, rules: Sequence[BufferRule]) -> None:
        """Dynamic thresholds of all switches by rules."""
        alphas = resolve_alphas(rules)
        for switch in self.switch_ids:
            self.set_buffer(switch, self.fabric.buffer_bytes, alphas)

    def queued_bytes(self) -> npt.NDArray[np.int64]:
        """Frame bytes in each queue now, int64[port index, class]."""
        classes = self.states["classes"]
        queued: npt.NDArray[np.int64] = (classes["in_bytes"] - classes["out_bytes"]).view(np.int64)
        return queued

    def backlog_wire_bytes(self) -> npt.NDArray[np.int64]:
        """Wire bytes that wait at each port now, int64[port index]."""
        classes = self.states["classes"]
        packets = (classes["in_packets"] - classes["out_packets"]).sum(axis=1)
        queued = (classes["in_bytes"] - classes["out_bytes"]).sum(axis=1)
        total: npt.NDArray[np.int64] = (queued + packets * 24).astype(np.int64)
        return total


def _lottery_seed(seed: int, name: str) -> int:
    digest = hashlib.blake2b(f"{seed}/{name}".encode(), digest_size=4).digest()
    return int.from_bytes(digest, "little")
