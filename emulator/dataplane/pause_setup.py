"""What pause needs of a fabric: gates at ports, and the driver in the agent's process."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from emulator.dataplane import building
from emulator.dataplane.gatekeeper import Gatekeeper
from emulator.dataplane.pause_driver import PauseDriver
from emulator.dataplane.pause_log import PauseLogWriter
from emulator.dataplane.pause_rules import PauseRules
from emulator.dataplane.pausing import PauseControl
from emulator.dataplane.plane import DataPlane
from emulator.kernel import gates, netlink
from topologies.model import Fabric, Port
from topologies.settings import PfcRule
from traffic.wire import MAX_QUANTA

Rules = Mapping[int, Mapping[int, PfcRule]]


@dataclass(frozen=True)
class PauseSettings:
    """Pause in a fabric.

    Attributes:
        rules: by ingress port index and class, as `topologies.pause.settled` gives them.
        pipeline_ns: latency of the switches, model ns.
        delays_in_path: links delay packets; else a pause comes later by what they should take.
        dilation: wall ns per model ns.
        captured: names of ports that are captured: pause frames are sent there.
    """

    rules: Rules = field(default_factory=dict)
    pipeline_ns: int = 0
    delays_in_path: bool = False
    dilation: float = 1.0
    captured: Sequence[str] = ()

    @property
    def classes(self) -> tuple[int, ...]:
        """The lossless classes; every port has a gate for each."""
        return tuple(sorted({tc for classes in self.rules.values() for tc in classes}))

    def in_flight_ns(self, fabric: Fabric, port: Port) -> int:
        """From leaving a queue to being counted at a port, where nothing waits for it.

        The last link of a way is always made up for by the receiving NIC.
        """
        delay_ns = fabric.link_of(port).delay_ns
        if not fabric.by_name[port.node].is_switch:
            return delay_ns
        return 0 if self.delays_in_path else delay_ns + self.pipeline_ns


def gate_messages(port: Port, classes: Sequence[int]) -> list[netlink.Message]:
    """The gates of a port, all open."""
    index, name = building.interface_index(port.index), port.name
    if not classes:
        return []
    own = [message for tc in classes for message in gates.gate(index, name, tc)]
    return [*gates.nowhere(index, name), *own]


def pause_frames(
    fabric: Fabric, settings: PauseSettings
) -> dict[tuple[int, int], tuple[bytes, bytes]]:
    """(sending port, class) -> pause and resume frame, of the links that are captured."""
    wanted = {fabric.port_named(name) for name in settings.captured} if settings.classes else set()
    if not wanted:
        return {}
    from traffic.headers import pause_frame  # noqa: PLC0415 - Scapy takes its time to import

    senders = {one.index for port in wanted for one in (port, fabric.port(port.peer))}
    frames: dict[tuple[int, int], tuple[bytes, bytes]] = {}
    for sender in sorted(senders):
        mac = building.port_mac(fabric, fabric.port(sender))
        for tc in settings.classes:
            frames[sender, tc] = pause_frame(mac, {tc: MAX_QUANTA}), pause_frame(mac, {tc: 0})
    return frames


def open_driver(
    plane: DataPlane, settings: PauseSettings, netns_fd: Callable[[str], int], log: Path
) -> PauseDriver:
    """Connects rules, gates and log; in the process that is to drive them."""
    fabric = plane.fabric
    rules = PauseRules(fabric, settings.rules, partial(settings.in_flight_ns, fabric))
    control = PauseControl(fabric, rules.reaction_ns, rules.watchdog, settings.dilation)
    keys = [(port.index, tc) for port in fabric.ports for tc in settings.classes]
    keeper = Gatekeeper(fabric, keys, netns_fd, pause_frames(fabric, settings))
    return PauseDriver(plane, keeper, rules, control, PauseLogWriter(log), settings.dilation)
