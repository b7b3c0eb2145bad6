"""A leaf's ports on real devices, without Open vSwitch: frames are put where it would put them."""

from __future__ import annotations

import select
import socket
import struct
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from emulator.dataplane import building, compiling, layout
from emulator.dataplane.plane import DataPlane
from emulator.kernel import gates, kicks, links, netlink, netns, offloads
from emulator.kernel.wakeups import Waker
from emulator.naming import host_namespace
from topologies.addressing import host_ip, host_mac
from topologies.model import Fabric
from topologies.pause import settled
from topologies.registry import build_fabric
from topologies.settings import BufferRule, PfcRule

HEADER_BYTES = 34
LENGTH = 1000
"""Frame bytes of what `MmuRig.send` sends."""
LOSSLESS = 3
_PATIENCE_S = 5.0


@dataclass
class MmuRig:
    """Three hosts at one leaf, all ports in one namespace.

    Attributes:
        fabric: the graph.
        plane: the loaded programs and their tables.
        session: netlink in the ports' namespace.
        waker: woken by crossings.
        sockets: closed with the rig.
        senders: port name -> socket that sends there.
    """

    fabric: Fabric
    plane: DataPlane
    session: netlink.Session
    waker: Waker
    sockets: ExitStack
    senders: dict[str, socket.socket] = field(default_factory=dict)

    def index(self, port: str) -> int:
        """Index of a port."""
        return self.fabric.port_named(port).index

    def sender(self, port: str) -> socket.socket:
        """A packet socket on a port."""
        if port not in self.senders:
            sender = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
            self.senders[port] = self.sockets.enter_context(sender)
            sender.bind((port, 0))
        return self.senders[port]

    def send(self, port: str, source: str, count: int = 1, tc: int = LOSSLESS,
             target: str = "h3", length: int = LENGTH) -> None:  # fmt: skip
        """Frames of a host go to an egress port, as if the switch had sent them there."""
        frame = frame_of(self.fabric, source, target, tc, length)
        for _ in range(count):
            self.sender(port).send(frame)

    def gate(self, port: str, *, closed: bool, tc: int = LOSSLESS) -> None:
        """Closes or opens a gate; opened, it is kicked."""
        index = building.interface_index(self.index(port))
        self.session.run([gates.change(index, port, tc, closed=closed)])
        if not closed:
            self.kick(port)

    def kick(self, port: str) -> None:
        """Makes a port's shaper look at its queues."""
        with kicks.open_wire(port) as wire:
            kicks.kick(wire)

    def held(self, port: str, tc: int = LOSSLESS) -> Any:
        """What an ingress port and class holds."""
        return self.plane.held["classes"][self.index(port), tc]

    def queue(self, port: str, tc: int = LOSSLESS) -> Any:
        """Counters of an egress queue."""
        return self.plane.states["classes"][self.index(port), tc]

    def events(self) -> list[tuple[str, int, int]]:
        """(port, class, kind) of what was crossed since the last call."""
        return [
            (self.fabric.port(int(event["port"])).name, int(event["tc"]), int(event["kind"]))
            for event in self.plane.pause_ring.drain()
        ]

    def is_woken(self) -> bool:
        """Whether somebody who waits for events would be woken now."""
        with select.epoll() as poll:
            poll.register(self.waker.fileno(), select.EPOLLIN)
            return bool(poll.poll(0))

    def tap(self, port: str) -> socket.socket:
        """What a port receives, from now on."""
        tap = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        self.sockets.enter_context(tap)
        tap.bind((port, 3))
        tap.settimeout(_PATIENCE_S)
        return tap


def frame_of(fabric: Fabric, source: str, target: str, tc: int, length: int = LENGTH) -> bytes:
    """An IP frame from one host to another, of a class."""
    ends = [bytes.fromhex(host_mac(fabric, name).replace(":", "")) for name in (target, source)]
    ip = struct.pack("!BBHIBBH", 0x45, tc << 5, length - 14, 0, 64, 253, 0)
    ip += socket.inet_aton(host_ip(fabric, source)) + socket.inet_aton(host_ip(fabric, target))
    return (b"".join(ends) + b"\x08\x00" + ip).ljust(length, b"\0")


@contextmanager
def mmu_rig(run_id: str, rules: list[PfcRule], buffer: str = "1 MB", rate_bps: int = 1_000_000_000,
            alphas: Mapping[int, float] | None = None) -> Iterator[MmuRig]:  # fmt: skip
    """A rig with pause rules; every switch port has a gate for the lossless class."""
    fabric = build_fabric(
        {"kind": "leaf-spine", "leaves": 1, "spines": 0, "hosts_per_leaf": 3, "buffer": buffer}
    )
    rates = [rate_bps for _ in fabric.links]
    plane = DataPlane(fabric, rates, 7, compiling.object_file())
    plane.apply_buffers([BufferRule(tc, alpha) for tc, alpha in (alphas or {}).items()])
    plane.apply_pfc(settled(rules, fabric))
    name = host_namespace(run_id, "rig")
    netns.create([name], _quiet)
    try:
        fd = netns.open_fd(name)
        with netlink.Session() as session:
            session.run(building.veth_pairs(fabric, lambda _node: fd))
        with netns.entered(fd), netlink.Session() as session:
            offloads.turn_off(port.name for port in fabric.ports)
            _set_up(session, plane, rates)
            with ExitStack() as sockets:
                waker = sockets.enter_context(closing(Waker(fd, layout.WAKE_MARK)))
                yield MmuRig(fabric, plane, session, waker, sockets)
    finally:
        netns.remove(name)


def _quiet(_name: str) -> None:
    """No frames but ours, and a loopback device that is up."""
    for scope in ("all", "default"):
        path = Path(f"/proc/sys/net/ipv6/conf/{scope}/disable_ipv6")
        if path.exists():
            path.write_text("1")
    with netlink.Session() as session:
        session.run([links.up(1, "lo")])


def _set_up(session: netlink.Session, plane: DataPlane, rates: list[int]) -> None:
    leaves = building.leaf_classes(None)
    for port in plane.fabric.ports:
        session.run(
            building.port_messages(plane.fabric, port, rates[port.link], plane.programs, leaves)
        )
        index = building.interface_index(port.index)
        session.run([*gates.nowhere(index, port.name), *gates.gate(index, port.name, LOSSLESS)])
