"""What a routing policy is asked and what it answers.

A policy is asked once per *group*: one switch and one leaf that it sends to. It answers with a
*spread*: the port of each hash bucket, and of single hosts where it wants to. It sees no switch,
sends nothing and keeps no state that changes, so the same question always has the same answer;
the core turns answers into rules and the difference of two answers into messages.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from controller.core.buckets import BUCKETS
from topologies.model import Node


@dataclass(frozen=True, slots=True)
class Candidate:
    """One way out of a switch towards a leaf.

    Attributes:
        port: number of the port.
        name: name of its interface, such as ``leaf1-eth5``.
        neighbour: name of the switch at the other end.
        rate_bps: line rate of the link, bit/s.
        onward_bps: what can get from here to the leaf now, bit/s; 0 when nothing can.
    """

    port: int
    name: str
    neighbour: str
    rate_bps: int
    onward_bps: int

    @property
    def usable(self) -> bool:
        """Whether packets that leave here can reach the leaf now."""
        return self.onward_bps > 0


@dataclass(frozen=True, slots=True)
class Group:
    """The question where a switch sends packets for a leaf.

    Attributes:
        switch: the switch that sends.
        leaf: the destination leaf.
        seed: the run's seed.
        candidates: all ways as built, by port number, the unusable ones included.
        normal: the same when nothing is down.
        hosts: (name, number) of the hosts below the leaf; the number is the last of the address.
    """

    switch: Node
    leaf: Node
    seed: int
    candidates: tuple[Candidate, ...]
    normal: tuple[Candidate, ...]
    hosts: tuple[tuple[str, int], ...] = ()

    @property
    def key(self) -> tuple[int, str, str]:
        """What the order of the buckets depends on: each switch and destination has its own."""
        return self.seed, self.switch.name, self.leaf.name


@dataclass(frozen=True, slots=True)
class Spread:
    """The answer.

    Attributes:
        buckets: port of each of the `BUCKETS` buckets; a single port when no source port matters;
            empty when there is no way.
        hosts: (host number, port) of hosts that get a port of their own, whatever the bucket.
    """

    buckets: tuple[int, ...] = ()
    hosts: tuple[tuple[int, int], ...] = ()

    def port(self, bucket: int, host: int) -> int | None:
        """The port of a packet in a bucket for a host's number; None when there is no way."""
        single = dict(self.hosts).get(host)
        if single is not None:
            return single
        return self.buckets[bucket % len(self.buckets)] if self.buckets else None


class Policy(Protocol):
    """A routing policy; `controller/policies/_template.py` shows how to write one."""

    @property
    def name(self) -> str:
        """The name that selects it in ``routing: {policy: ...}``."""

    def spread(self, group: Group) -> Spread:
        """Where a switch sends packets for a leaf; uses only ports of usable candidates."""


class SpreadError(ValueError):
    """A policy has answered with something that is not a spread of its group."""


def check_spread(policy: str, group: Group, spread: Spread) -> None:
    """Raise `SpreadError` unless a spread has all buckets and uses usable candidates only."""
    usable = {candidate.port for candidate in group.candidates if candidate.usable}
    where = f"policy {policy}, {group.switch.name} to {group.leaf.name}"
    if len(spread.buckets) not in (BUCKETS, 1, 0):
        raise SpreadError(f"{where}: {len(spread.buckets)} buckets instead of {BUCKETS}")
    used = set(spread.buckets) | {port for _, port in spread.hosts}
    if used - usable:
        raise SpreadError(f"{where}: port {min(used - usable)} leads nowhere now")
    if usable and not spread.buckets:
        raise SpreadError(f"{where}: no buckets although there is a way")
    unknown = {number for number, _ in spread.hosts} - {number for _, number in group.hosts}
    if unknown:
        raise SpreadError(f"{where}: no host has the number {min(unknown)}")
