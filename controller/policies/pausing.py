"""Pause policies: which ports pause their peers when an ingress port crosses XOFF or XON.

A switch does this by itself and at once. ``pfc: {control: NAME}`` leaves it to a policy here: the
agent tells of every crossing, and the policy answers with ports that are to pause or to resume.
That takes a loop through the controller, whose time is part of the reaction that a run reports; so
such a class needs more headroom than a switch's own.

To add one: write a class like `Follow` and register it below. A policy may keep state, but must
answer the same crossings with the same orders.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from topologies.errors import UnknownNameError
from topologies.model import Fabric


@dataclass(frozen=True, slots=True)
class Crossing:
    """An ingress port and class has crossed a threshold.

    Attributes:
        port: name of the switch port.
        tc: traffic class.
        paused: True = XOFF was crossed upwards, False = XON downwards.
        held_bytes: what the port and class holds of its switch's buffer.
    """

    port: str
    tc: int
    paused: bool
    held_bytes: int


@dataclass(frozen=True, slots=True)
class Order:
    """A switch port is to pause its peer, or to let it go on.

    Attributes:
        port: name of the switch port.
        tc: traffic class.
        paused: pause or resume.
        duration_ns: the pause ends by itself after so long, model ns; None = until a resume.
    """

    port: str
    tc: int
    paused: bool
    duration_ns: int | None = None


class PausePolicy(Protocol):
    """Crossings in, orders out."""

    @property
    def name(self) -> str:
        """The name that selects it in ``pfc: {control: ...}``."""

    def crossed(self, crossing: Crossing) -> list[Order]:
        """What is to be done about a crossing, at once."""


class Follow:
    """The policy ``follow``: what a switch would do, by way of the controller."""

    name = "follow"

    def __init__(self, fabric: Fabric) -> None:
        self._switch_ports = {
            port.name for port in fabric.ports if fabric.by_name[port.node].is_switch
        }

    def crossed(self, crossing: Crossing) -> list[Order]:
        """The port that crossed pauses or resumes its own peer; hosts' ports are their hosts'."""
        if crossing.port not in self._switch_ports:
            return []
        return [Order(crossing.port, crossing.tc, crossing.paused)]


_builders: dict[str, Callable[[Fabric], PausePolicy]] = {Follow.name: Follow}


def names() -> tuple[str, ...]:
    """Names of all pause policies, sorted."""
    return tuple(sorted(_builders))


def build(name: str, fabric: Fabric, path: str = "control") -> PausePolicy:
    """The policy of a name; `UnknownNameError` when there is none."""
    if name not in _builders:
        raise UnknownNameError(path, "pause policy", name, _builders)
    return _builders[name](fabric)
