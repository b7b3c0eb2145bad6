"""Rules for switch ports and buffers, and which rule each port and traffic class ends up with.

A rule names ports by a selector: ``switches`` (all switch ports), ``last-hop`` (those of them that
lead to hosts), ``hosts`` (all host ports), ``all``, an interface name (``leaf1-eth3``), a node's
name (``leaf1``: all its ports) or a glob over interface names (``spine*-eth1``). Where several
rules fit a port and class, the last one counts, so a user's rules follow a profile's.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from topologies.errors import SpecError, UnknownNameError
from topologies.model import Fabric, Port

CLASSES = 8
"""Traffic classes, 0 to 7, as the eight priorities of IEEE 802.1Q."""
DEFAULT_ALPHA = 1.0
"""Share of the free buffer that one queue may take, where no rule says otherwise."""
DEFAULT_PAUSE_ALPHA = 1 / 8
"""XOFF threshold over the free shared buffer, as in the HPCC simulations for ports of NIC speed."""
WATCHDOG_ACTIONS = ("drop", "forward")
SWITCH = "switch"
"""Who pauses when XOFF is crossed, unless a pause policy of the controller does."""
MIN_TRIM_BYTES = 58
"""The shortest frame that a packet is cut to: Ethernet and IPv4 headers and 24 bytes of IP payload,
which is MIN_TRIM_SIZE of the Ultra Ethernet specification (1.0, table 4-1)."""
DEFAULT_TRIM_BYTES = 80
"""RoCEv2's headers and 16 bytes more, enough for an extended header; with less Wireshark takes what
is left of last packets for damaged remote procedure calls."""
MAX_DSCP = 63
LOCAL_USE = 0b011
"""Low bits of code points for local use (RFC 2474, section 6: pool 2)."""
MAX_WEIGHT = 1_000
MAX_LISTED = 64


@dataclass(frozen=True)
class EcnRule:
    """Marking of one class: never up to Kmin, rising to Pmax at Kmax, always above Kmax.

    Kmin = Kmax with Pmax 1 is a step, as DCTCP has it (RFC 8257); the ramp is that of DCQCN
    (Zhu et al., SIGCOMM 2015).

    Attributes:
        tc: traffic class, 0-7.
        kmin_bytes: queue length from which on packets are marked, bytes.
        kmax_bytes: queue length above which every packet is marked, bytes.
        pmax: marking probability at Kmax, above 0 and at most 1.
        ports: selector of ports.
    """

    tc: int
    kmin_bytes: int
    kmax_bytes: int
    pmax: float
    ports: str = "switches"

    def __post_init__(self) -> None:
        _check_class(self.tc)
        _check_range("kmin_bytes", self.kmin_bytes, 0, None)
        if self.kmax_bytes < self.kmin_bytes:
            rule = f"must not be below kmin_bytes, {self.kmin_bytes}"
            raise SpecError("kmax_bytes", self.kmax_bytes, rule)
        if not 0 < self.pmax <= 1:
            raise SpecError("pmax", self.pmax, "must be above 0 and at most 1", "write e.g. 0.2")


@dataclass(frozen=True)
class ClassRule:
    """Service of one class at a port: lower priority numbers first, weights among equals.

    Attributes:
        tc: traffic class, 0-7.
        priority: 0 is served first.
        weight: share among the classes of the same priority.
        ports: selector of ports.
    """

    tc: int
    priority: int
    weight: int
    ports: str = "switches"

    def __post_init__(self) -> None:
        _check_class(self.tc)
        _check_range("priority", self.priority, 0, CLASSES - 1)
        _check_range("weight", self.weight, 1, MAX_WEIGHT)


@dataclass(frozen=True)
class BufferRule:
    """Dynamic threshold of one class: a queue may grow to alpha times the free shared buffer.

    Choudhury and Hahne, "Dynamic queue length thresholds for shared-memory packet switches",
    IEEE/ACM Transactions on Networking 6(2), 1998.

    Attributes:
        tc: traffic class, 0-7.
        alpha: the factor, above 0; it may exceed 1.
    """

    tc: int
    alpha: float

    def __post_init__(self) -> None:
        _check_class(self.tc)
        _check_alpha(self.alpha)


@dataclass(frozen=True)
class PauseWatchdog:
    """Ends a pause storm at a port: detect, act, restore (as SONiC's PFC watchdog).

    Attributes:
        detect_ns: a queue that is paused for so long without a break is in a storm, ns.
        restore_ns: without a pause for so long the queue is normal again, ns.
        action: ``drop`` what is queued and what comes, or ``forward`` it against the pause.
    """

    detect_ns: int
    restore_ns: int
    action: str = "drop"

    def __post_init__(self) -> None:
        _check_range("detect_ns", self.detect_ns, 1, None)
        _check_range("restore_ns", self.restore_ns, 1, None)
        if self.action not in WATCHDOG_ACTIONS:
            raise UnknownNameError("action", "watchdog action", self.action, WATCHDOG_ACTIONS)


@dataclass(frozen=True)
class PfcRule:
    """Priority flow control of one lossless class at ingress ports (IEEE 802.1Qbb).

    A port counts what waits in its switch and came in through it. Above XOFF it pauses its peer's
    class, at XON (XOFF less the offset) it lets it go on; what arrives in between lies in the
    headroom, which is reserved for this port and class.

    Attributes:
        tc: traffic class, 0-7.
        alpha: XOFF as a part of the free shared buffer; None = static.
        xoff_bytes: static XOFF, bytes; None = dynamic. Exactly one of the two is given.
        xon_offset_bytes: how far below XOFF sending is resumed, bytes; None = two frames.
        headroom_bytes: reserved buffer, bytes; None = what is in flight (`topologies.pause`).
        response_ns: time from a pause frame's arrival to the end of its peer's sending, ns;
            None = the longest that the standard allows at the port's rate.
        watchdog: None = no watchdog.
        ports: selector of ingress ports, of switches only.
        control: who pauses when XOFF is crossed: the ``switch`` itself, or the controller's pause
            policy of this name, which is told and asks for the pause.
    """

    tc: int
    alpha: float | None = DEFAULT_PAUSE_ALPHA
    xoff_bytes: int | None = None
    xon_offset_bytes: int | None = None
    headroom_bytes: int | None = None
    response_ns: int | None = None
    watchdog: PauseWatchdog | None = None
    ports: str = "switches"
    control: str = SWITCH

    def __post_init__(self) -> None:
        _check_class(self.tc)
        if not self.control:
            raise SpecError("control", self.control, "must not be empty", "write e.g. switch")
        for name, minimum in (("headroom_bytes", 1), ("response_ns", 0), ("xon_offset_bytes", 0)):
            if getattr(self, name) is not None:
                _check_range(name, getattr(self, name), minimum, None)
        if (self.alpha is None) == (self.xoff_bytes is None):
            rule = "must be given exactly when alpha is not"
            raise SpecError("xoff_bytes", self.xoff_bytes, rule, "give one of the two")
        if self.alpha is not None:
            _check_alpha(self.alpha)
        if self.xoff_bytes is not None:
            _check_range("xoff_bytes", self.xoff_bytes, 1, None)
            if (self.xon_offset_bytes or 0) > self.xoff_bytes:
                rule = f"puts XON below 0: XOFF is {self.xoff_bytes}"
                raise SpecError("xon_offset_bytes", self.xon_offset_bytes, rule)


@dataclass(frozen=True)
class TrimRule:
    """Trimming of one class at egress ports, as Ultra Ethernet has it (specification 1.0, 4.1).

    A packet that its queue cannot take is cut to its headers and goes on in another class, so that
    the receiver learns at once what was lost.

    Attributes:
        tc: traffic class whose packets may be cut.
        dscp: code point of cut packets; its upper three bits are the class that they go on in.
        size_bytes: what is kept: Ethernet frame without FCS.
        threshold_bytes: longest queue, bytes; what would make it longer is cut. None = only what
            would be dropped is.
        ports: selector of egress ports, of switches only.
    """

    tc: int
    dscp: int
    size_bytes: int = DEFAULT_TRIM_BYTES
    threshold_bytes: int | None = None
    ports: str = "switches"

    def __post_init__(self) -> None:
        _check_class(self.tc)
        _check_range("dscp", self.dscp, 0, MAX_DSCP)
        _check_range("size_bytes", self.size_bytes, MIN_TRIM_BYTES, None)
        if self.threshold_bytes is not None:
            _check_range("threshold_bytes", self.threshold_bytes, 1, None)
        if self.to_class == self.tc:
            rule = f"belongs to class {self.tc} itself, whose queue has no room for the packet"
            raise SpecError("dscp", self.dscp, rule, "choose one of another class")

    @property
    def to_class(self) -> int:
        """The class in which cut packets go on."""
        return self.dscp // CLASSES


def trimmed_dscp(tc: int) -> int:
    """The code point of packets that were cut and go on in a class: one that nobody else uses."""
    return tc * CLASSES + LOCAL_USE


def _check_alpha(alpha: float) -> None:
    if not 0 < alpha < float("inf"):
        raise SpecError("alpha", alpha, "must be a finite number above 0", "write e.g. 1/8")


def _check_class(tc: int) -> None:
    _check_range("tc", tc, 0, CLASSES - 1)


def _check_range(name: str, value: int, minimum: int, maximum: int | None) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise SpecError(name, value, "must be a whole number")
    if value < minimum or (maximum is not None and value > maximum):
        bounds = f"at least {minimum}" if maximum is None else f"{minimum} to {maximum}"
        raise SpecError(name, value, f"must be {bounds}")


PortRule = TypeVar("PortRule", EcnRule, ClassRule, PfcRule, TrimRule)


def resolve(
    rules: Sequence[PortRule], fabric: Fabric, path: str = "rules"
) -> dict[int, dict[int, PortRule]]:
    """The rule of every port index and class that has one; the last fitting rule counts.

    Raises:
        UnknownNameError: a selector fits no port; ``path[i].ports`` says which rule.
    """
    result: dict[int, dict[int, PortRule]] = {}
    for position, rule in enumerate(rules):
        for port in select_ports(fabric, rule.ports, f"{path}[{position}].ports"):
            result.setdefault(port.index, {})[rule.tc] = rule
    return result


def resolve_alphas(
    rules: Iterable[BufferRule], default: float = DEFAULT_ALPHA
) -> tuple[float, ...]:
    """Alpha of each of the eight classes; the last rule of a class counts."""
    alphas = [default] * CLASSES
    for rule in rules:
        alphas[rule.tc] = rule.alpha
    return tuple(alphas)


def select_ports(fabric: Fabric, selector: str, path: str = "ports") -> list[Port]:
    """The ports that a selector names, by index; `UnknownNameError` when there are none."""
    chosen = [port for port in fabric.ports if _fits(fabric, port, selector)]
    if not chosen:
        raise UnknownNameError(path, "port", selector, _known_ports(fabric))
    return chosen


def _fits(fabric: Fabric, port: Port, selector: str) -> bool:
    is_switch = fabric.by_name[port.node].is_switch
    groups: Mapping[str, bool] = {
        "all": True,
        "switches": is_switch,
        "last-hop": is_switch and leads_to_host(fabric, port),
        "hosts": not is_switch,
    }
    if selector in groups:
        return groups[selector]
    return selector == port.node or fnmatch.fnmatchcase(port.name, selector)


def leads_to_host(fabric: Fabric, port: Port) -> bool:
    """Whether a host is at the other end of a port's link."""
    return not fabric.by_name[fabric.port(port.peer).node].is_switch


def _known_ports(fabric: Fabric) -> list[str]:
    """The selectors and all port names; as one range per node where there are too many."""
    names = [port.name for port in fabric.ports]
    if len(names) > MAX_LISTED:
        names = [f"{n.name}-eth1..{len(fabric.ports_of[n.name])}" for n in fabric.switches]
        names.append(f"h1-eth1..h{len(fabric.hosts)}-eth{len(fabric.planes)}")
    return ["all", "switches", "last-hop", "hosts", *names]
