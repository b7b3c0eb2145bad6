"""What an experiment file says, resolved and checked: frozen dataclasses in target units.

Rates are bit/s, times ns, sizes bytes. "auto" stays "auto" where only a measurement of the machine
(`emulator.scale`) or a path (`emulator.timing`) can answer it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from emulator.spec.receivers import ReceiverSpec
from topologies.model import Fabric
from topologies.settings import BufferRule, ClassRule, EcnRule, PfcRule, TrimRule
from traffic import dcqcn_params, dctcp_params, uet_params
from traffic.dcqcn_params import DcqcnParams
from traffic.dctcp_params import DctcpParams
from traffic.uet_params import UetParams
from traffic.workloads import WorkloadSpec

AUTO = "auto"
UNLIMITED = "unlimited"
STORE_AND_FORWARD = "store-and-forward"
CUT_THROUGH = "cut-through"
GO_BACK_N = "go-back-n"
DCTCP = "dctcp"
CREDIT = "credit"
UET = "uet"
NO_CONTROL = "none"
DCQCN = "dcqcn"
ALL_LEAVES = "all-leaves"
ALL_HOSTS = "all-hosts"
PERIODIC = "periodic"
POISSON = "poisson"


@dataclass(frozen=True)
class RoutingSpec:
    """The controller's routing policy.

    Attributes:
        policy: name in `controller.policies.registry`.
        options: what the file says beside ``policy``, as written.
    """

    policy: str
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def section(self) -> dict[str, Any]:
        """The ``routing:`` section as the controller reads it."""
        return {"policy": self.policy, **self.options}


@dataclass(frozen=True)
class TransportSpec:
    """How NICs deliver messages.

    Attributes:
        kind: ``go-back-n``: RoCEv2's reliable connection; ``dctcp``: a window and marks;
            ``credit``: reliable connections over lossless classes; ``uet``: packets sprayed
            over all paths, selective acknowledgements.
        control: how senders react to congestion, one of the kind's.
        params: name of the control's parameter set; ``auto`` where a kind has none.
        overrides: (field of the set, value) pairs that differ from it.
        payload_bytes: payload of a full packet.
        window: most unacknowledged packets of a connection, ``auto`` or ``unlimited``.
        retransmit_timeout_ns: None = auto, from the path and the switch buffers.
    """

    kind: str
    control: str
    params: str
    overrides: tuple[tuple[str, Any], ...]
    payload_bytes: int
    window: int | str
    retransmit_timeout_ns: int | None

    @property
    def dcqcn(self) -> DcqcnParams | None:
        """Parameters of the rate control; None when the senders do not react."""
        if self.control != DCQCN:
            return None
        return replace(dcqcn_params.PARAMETER_SETS[self.params], **dict(self.overrides))

    @property
    def dctcp(self) -> DctcpParams | None:
        """Parameters of DCTCP's window; None for other transports."""
        if self.kind != DCTCP:
            return None
        return replace(dctcp_params.PARAMETER_SETS[self.params], **dict(self.overrides))

    @property
    def uet(self) -> UetParams | None:
        """Parameters of Ultra-Ethernet-like transport; None for other transports."""
        if self.kind != UET:
            return None
        return replace(uet_params.PARAMETER_SETS[self.params], **dict(self.overrides))


@dataclass(frozen=True)
class SwitchSpec:
    """What every switch does with a packet that need not wait.

    Attributes:
        mode: ``store-and-forward`` or ``cut-through``.
        latency_ns: time in the switch's pipeline.
    """

    mode: str = STORE_AND_FORWARD
    latency_ns: int = 0


@dataclass(frozen=True)
class ProbeSpec:
    """Latency and loss probes.

    Attributes:
        pairs: ``all-leaves`` (the first host of each leaf with that of each other leaf),
            ``all-hosts``, or (source, destination) pairs.
        rate_per_s: probes per second of model time, for each pair and class.
        classes: traffic classes that are probed.
        size_bytes: Ethernet frame from the first address byte to the ICRC, without FCS; RoCEv2 pads
            the payload in it to a multiple of 4.
        arrivals: ``periodic``, or ``poisson``: gaps are independent and exponential.
    """

    pairs: str | tuple[tuple[str, str], ...]
    rate_per_s: float
    classes: tuple[int, ...]
    size_bytes: int
    arrivals: str = PERIODIC

    @property
    def poisson(self) -> bool:
        """Whether probes are sent at random times."""
        return self.arrivals == POISSON


@dataclass(frozen=True)
class Experiment:
    """One experiment, complete: nothing else decides what a run does, except the machine.

    Attributes:
        name: names the run folder.
        seed: the one source of randomness.
        clock: ``live``.
        dilation: how many times slower than the target the emulation runs; None = auto.
        shrink: what message sizes, computations and request gaps are divided by; None = auto.
        budget_ns: wall time that ``shrink: auto`` aims for.
        duration_ns: upper limit of model time; None = until everything has arrived.
        fabric: built and verified.
        profile: name of the profile below the user's settings.
        ecn: marking rules; empty = switches mark nothing.
        scheduler: one rule for each of the eight classes.
        buffers: dynamic threshold of each of the eight classes.
        routing: the controller's policy.
        transport: the NICs.
        switch: forwarding mode and latency.
        workloads: what the hosts do.
        probes: None = no probes.
        pcap: names of the ports whose traffic is captured.
        pfc: pause rules of the lossless classes; empty = all classes are lossy.
        receivers: hosts that are slower than their links.
        trim: which packets are cut to their headers; empty = they are dropped.
        document: the merged file (defaults, profile, file, ``--set``), with paths resolved.
        origins: key path -> where its value came from.
    """

    name: str
    seed: int
    clock: str
    dilation: float | None
    shrink: float | None
    budget_ns: int
    duration_ns: int | None
    fabric: Fabric
    profile: str
    ecn: tuple[EcnRule, ...]
    scheduler: tuple[ClassRule, ...]
    buffers: tuple[BufferRule, ...]
    routing: RoutingSpec
    transport: TransportSpec
    switch: SwitchSpec
    workloads: tuple[WorkloadSpec, ...]
    probes: ProbeSpec | None
    pcap: tuple[str, ...]
    pfc: tuple[PfcRule, ...] = ()
    receivers: tuple[ReceiverSpec, ...] = ()
    trim: tuple[TrimRule, ...] = ()
    document: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)
    origins: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)
