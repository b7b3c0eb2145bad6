"""Settings and counters of all ports, as arrays that the eBPF programs share. PURE.

`emulator.dataplane.plane` gives the kernel's memory; tests give memory of their own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from emulator.dataplane import layout
from emulator.dataplane.delays import LinkDelay
from topologies.errors import SpecError
from topologies.model import Fabric
from topologies.settings import (
    BufferRule,
    EcnRule,
    PfcRule,
    TrimRule,
    resolve,
    resolve_alphas,
)
from traffic.wire import FCS_BYTES, PREAMBLE_AND_GAP_BYTES

WIRE_OVERHEAD_BYTES = FCS_BYTES + PREAMBLE_AND_GAP_BYTES
_NS_PER_S = 1_000_000_000
_COUNTERS = layout.CLASS_STATE.names or ()
_PAUSE_COUNTERS = ("peak_headroom", "drop_packets", "lost_events")
_CLASS_NUMBERS, _ONE = np.arange(layout.CLASSES, dtype=np.uint64), np.uint64(1)
_CLASS_WORDS = layout.CLASSES * len(_COUNTERS)

Rows = npt.NDArray[np.void]


class Tables:
    """What the data plane is told and what it counts.

    Args:
        fabric: the fabric, target units.
        emulated_bps: emulated line rate of each link, bit/s by link id.
        seed: of the marking lottery.
        configs: `layout.PORT_CONFIG`[`layout.MAX_PORTS`], zeros.
        states: `layout.PORT_STATE`, as many.
        switches: `layout.SWITCH_STATE`[`layout.MAX_SWITCHES`], zeros.
        pause_configs: `layout.PAUSE_CONFIGS`[`layout.MAX_PORTS`], zeros; None = plain memory.
        pause_states: `layout.PAUSE_STATES`, as many.

    Attributes:
        switch_ids: number of each switch.
        configs: settings by port index; entry 0 is unused.
        states: counters by port index; entry 0 is unused.
        switches: buffer and its use by switch number.
        pauses: lossless classes by ingress port index, and their settings.
        held: what ingress ports and classes hold of their switches' buffers, by port index.
        delays_in_path: links delay packets, as `set_delays` says.

    Raises:
        SpecError: the fabric has more ports or switches than the data plane.
    """

    def __init__(
        self,
        fabric: Fabric,
        emulated_bps: Sequence[int],
        seed: int,
        configs: Rows,
        states: Rows,
        switches: Rows,
        pause_configs: Rows | None = None,
        pause_states: Rows | None = None,
    ) -> None:
        _check_room("ports", len(fabric.ports), layout.MAX_PORTS - 1)
        _check_room("switches", len(fabric.switches), layout.MAX_SWITCHES)
        self.fabric = fabric
        self.ports = len(fabric.ports)
        self.switch_ids = {node.name: number for number, node in enumerate(fabric.switches)}
        self.configs, self.states = configs[: self.ports + 1], states[: self.ports + 1]
        self.switches = switches[: len(self.switch_ids)]
        self.pauses = _rows(pause_configs, layout.PAUSE_CONFIGS, self.ports + 1)
        self.held = _rows(pause_states, layout.PAUSE_STATES, self.ports + 1)
        self._words = self.states.view(np.int64).reshape(self.ports + 1, -1)
        is_switch = [fabric.by_name[port.node].is_switch for port in fabric.ports]
        self._of_switch = np.flatnonzero([False, *is_switch])
        self._towards_switch = np.array([fabric.port(n).peer for n in self._of_switch.tolist()])
        self._fill_ports(emulated_bps, seed)
        self.switches["buffer_bytes"] = fabric.buffer_bytes
        self.delays_in_path = False

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

    def set_trim(self, port: int, tc: int, rule: TrimRule | None) -> None:
        """Trimming of one class at one egress port; takes effect with the next packet.

        Args:
            port: port index.
            tc: traffic class.
            rule: None = what the queue cannot take is dropped.
        """
        entry = self.configs["classes"][port, tc]
        if rule is not None:
            entry["trim_above"] = rule.threshold_bytes or 0
            entry["trim_dscp"] = rule.dscp
        entry["trim_bytes"] = rule.size_bytes if rule else 0

    def apply_trim(self, rules: Sequence[TrimRule]) -> None:
        """Trimming of all ports by rules."""
        for port, classes in resolve(rules, self.fabric).items():
            for tc, rule in classes.items():
                self.set_trim(port, tc, rule)

    @property
    def trimmable(self) -> dict[int, frozenset[int]]:
        """Classes that are cut at some port, and the classes in which what was cut goes on."""
        classes = self.configs["classes"]
        used = classes["trim_bytes"] > 0
        targets = classes["trim_dscp"] // layout.CLASSES
        return {
            tc: frozenset(targets[used[:, tc], tc].tolist())
            for tc in np.flatnonzero(used.any(axis=0)).tolist()
        }

    def set_buffer(self, switch: str, buffer_bytes: int, alphas: Sequence[float]) -> None:
        """Shared buffer and dynamic thresholds of a switch."""
        self.switches["buffer_bytes"][self.switch_ids[switch]] = buffer_bytes
        values = [round(alpha * layout.ALPHA_ONE) for alpha in alphas]
        for port in self.fabric.ports_of[switch]:
            self.configs["classes"]["alpha"][port.index] = values

    def apply_buffers(self, rules: Sequence[BufferRule]) -> None:
        """Dynamic thresholds of all switches by rules."""
        alphas = resolve_alphas(rules)
        for switch in self.switch_ids:
            self.set_buffer(switch, self.fabric.buffer_bytes, alphas)

    def set_pause(self, port: int, tc: int, rule: PfcRule | None) -> None:
        """Pause of one class at one ingress port; takes effect with the next packet.

        Args:
            port: port index.
            tc: traffic class.
            rule: with all numbers in it (`topologies.pause.settle`); None = the class is lossy.
        """
        self.configs["flags"][1:] |= layout.FLAG_TAGS
        entry = self.pauses["classes"][port, tc]
        before, room = int(entry["headroom"]), (rule.headroom_bytes or 0) if rule else 0
        if rule is not None:
            entry["alpha"] = round((rule.alpha or 0) * layout.ALPHA_ONE)
            entry["xoff"] = rule.xoff_bytes or 0
            entry["xon_offset"] = rule.xon_offset_bytes or 0
        entry["headroom"] = room
        switch = self.switch_ids[self.fabric.port(port).node]
        reserved = int(self.switches["reserved_bytes"][switch])
        self.switches["reserved_bytes"][switch] = reserved + room - before

    def apply_pfc(self, rules: Mapping[int, Mapping[int, PfcRule]]) -> None:
        """Pause of all ports and classes by rules, as `topologies.pause.settled` gives them."""
        for port, classes in rules.items():
            for tc, rule in classes.items():
                self.set_pause(port, tc, rule)

    def set_discard(self, port: int, tc: int, *, on: bool) -> None:
        """Whether an egress port drops a class: what is in its queue when it leaves, and comes."""
        self.pauses["classes"]["discard"][port, tc] = on

    def set_gate(self, port: int, tc: int, *, closed: bool) -> None:
        """Tells the programs and the NICs, which share this memory, what a gate does."""
        if closed:
            self.pauses["closed"][port] |= np.uint64(1 << tc)
        else:
            self.pauses["closed"][port] &= np.uint64(~(1 << tc) & 0xFF)
            # The gap since the last departure says nothing about the rate.
            self.states["run"][port] = 0

    @property
    def lossless(self) -> tuple[int, ...]:
        """Classes that are lossless at some port."""
        used = (self.pauses["classes"]["headroom"] > 0).any(axis=0)
        return tuple(np.flatnonzero(used).tolist())

    def set_delays(self, delays: Mapping[int, LinkDelay]) -> None:
        """What each link and switch adds to a packet's way, by port index; before any traffic."""
        self.delays_in_path = True
        for port, delay in delays.items():
            config = self.configs[port]
            config["link_ns"], config["header_ns"] = delay.link_ns, delay.header_ns
            config["ps_per_byte"], config["leaf"] = delay.ps_per_byte, delay.leaf
            config["whole_hosts"] = _words(delay.whole_hosts)
            config["whole_leaves"] = _words(delay.whole_leaves)

    def reset(self) -> None:
        """Sets all counters to 0; the fabric must be idle."""
        self.states.view(np.uint8)[:] = 0
        self.switches["in_bytes"] = self.switches["out_bytes"] = 0
        self.switches["peak_bytes"] = 0
        for name in _PAUSE_COUNTERS:
            self.held["classes"][name] = 0

    def queued_bytes(self) -> npt.NDArray[np.int64]:
        """Frame bytes in each queue now, int64[port index, class]."""
        return self._column("in_bytes") - self._column("out_bytes")

    def backlog_wire_bytes(self) -> npt.NDArray[np.int64]:
        """Wire bytes that wait at each port now and are not paused, int64[port index]."""
        packets = self._column("in_packets") - self._column("out_packets")
        waiting = self.queued_bytes() + packets * WIRE_OVERHEAD_BYTES
        closed = self.pauses["closed"]
        if closed.any():
            waiting[(closed[:, None] >> _CLASS_NUMBERS & _ONE).astype(bool)] = 0
        total: npt.NDArray[np.int64] = waiting.sum(1)
        return total

    def paused_classes(self) -> npt.NDArray[np.int64]:
        """Classes whose gates are closed, as bits, int64[port index]."""
        return self.pauses["closed"].astype(np.int64)

    def inside_switches(self) -> int:
        """Packets that have left one queue and not reached the next: the switches' own work.

        Where links delay packets, these are on a link, where they belong: then it is 0.
        """
        if self.delays_in_path:
            return 0
        arrived = self._column("out_packets").sum(1)[self._towards_switch]
        handled = (self._column("in_packets") + self._column("drop_packets"))[self._of_switch]
        return int(arrived.sum() - handled.sum())

    def _column(self, name: str) -> npt.NDArray[np.int64]:
        """A counter of all queues, int64[port index, class], without copying."""
        return self._words[:, _COUNTERS.index(name) : _CLASS_WORDS : len(_COUNTERS)]


def _rows(given: Rows | None, kind: npt.DTypeLike, count: int) -> Rows:
    return np.zeros(count, kind) if given is None else given[:count]


def _check_room(what: str, wanted: int, room: int) -> None:
    if wanted > room:
        raise SpecError("fabric", f"{wanted} {what}", f"is more than {room}, the most there can be")


def _words(numbers: Iterable[int]) -> npt.NDArray[np.uint32]:
    """A set of numbers as bits, the lowest first."""
    bits = sum(1 << number for number in numbers)
    return np.frombuffer(bits.to_bytes(4 * layout.NUMBER_WORDS, "little"), "<u4")


def _lottery_seed(seed: int, name: str) -> int:
    digest = hashlib.blake2b(f"{seed}/{name}".encode(), digest_size=4).digest()
    return int.from_bytes(digest, "little")
