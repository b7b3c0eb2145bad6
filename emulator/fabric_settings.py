"""What a fabric is built with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from emulator.dataplane.pause_setup import PauseSettings
from emulator.kernel import queues
from emulator.spec.model import SwitchSpec
from emulator.spec.receivers import ReceiverSpec
from topologies.errors import MachineError
from topologies.model import Fabric
from topologies.settings import BufferRule, ClassRule, EcnRule, PfcRule, TrimRule

KERNEL_DATAPATH = "system"


@dataclass(frozen=True)
class FabricSettings:
    """What a fabric is set up with, all in target units but for the emulated rates.

    Attributes:
        fabric: the graph.
        emulated_bps: rate of each link as the kernel shapes it, bit/s by link id.
        seed: of hashes and of the marking lottery.
        ecn: marking rules.
        scheduler: service of the classes.
        buffers: dynamic thresholds.
        routing: the ``routing:`` section for the controller.
        datapath: ``netdev`` or ``system``.
        dilation: wall ns per model ns.
        delays_in_path: links delay packets, and switches by what `switch` says; needs the kernel
            datapath. Else the receiving NIC holds packets for the time of their path.
        switch: forwarding mode and latency of every switch.
        burst_ns: how late a shaper may be without losing rate.
        pfc: pause rules by ingress port index and class (`topologies.pause.settled`).
        receivers: hosts that are slower than their links.
        pause_margin_ns: how late a pause may come, model ns; part of automatic headroom.
        captured: names of ports that are captured; pause frames are sent there.
        trim: which packets are cut to their headers.
    """

    fabric: Fabric
    emulated_bps: Sequence[int]
    seed: int
    ecn: Sequence[EcnRule] = ()
    scheduler: Sequence[ClassRule] = ()
    buffers: Sequence[BufferRule] = ()
    routing: Mapping[str, Any] = field(default_factory=lambda: {"policy": "ecmp"})
    datapath: str = "netdev"
    dilation: float = 1.0
    delays_in_path: bool = False
    switch: SwitchSpec = field(default_factory=SwitchSpec)
    burst_ns: int = queues.BURST_NS
    pfc: Mapping[int, Mapping[int, PfcRule]] = field(default_factory=dict)
    receivers: Sequence[ReceiverSpec] = ()
    pause_margin_ns: int = 0
    captured: Sequence[str] = ()
    trim: Sequence[TrimRule] = ()

    @property
    def pauses(self) -> PauseSettings:
        """What the part that drives pauses needs of it."""
        return PauseSettings(
            self.pfc, self.switch.latency_ns, self.delays_in_path, self.dilation, self.captured
        )

    def __post_init__(self) -> None:
        if self.delays_in_path and self.datapath != KERNEL_DATAPATH:
            # The userspace datapath takes packets from a port before they can be held.
            raise MachineError(
                f"links cannot delay packets with the {self.datapath} datapath of Open vSwitch; "
                "it needs the kernel's"
            )
