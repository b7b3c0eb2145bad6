"""Transports: what the two ends of a connection do, behind one small interface. PURE.

Both ends of a connection (`traffic.nic.transports.base`) are made by the factory that
`NicParameters.transport` names, so a transport is a module with a factory and a line below; nothing
else of the engine changes for it.

The packets of a transport take one path, by the source port of its connection, and arrive in runs
(`traffic.nic.lane`, `traffic.nic.outbox`). Or it sprays them: each packet has an entropy of its own
(`traffic.nic.spraying`), they are sorted when they arrive (`traffic.nic.scatter`), and answers say
more than an AETH holds (`traffic.sack`).
"""

from __future__ import annotations

from topologies.errors import UnknownNameError
from traffic.nic.parameters import NicParameters
from traffic.nic.transports.base import Ends, Factory, ReceiverSide, SenderSide
from traffic.nic.transports.dctcp import dctcp
from traffic.nic.transports.go_back_n import go_back_n
from traffic.nic.transports.uet import uet

__all__ = [
    "Ends", "Factory", "ReceiverSide", "SenderSide", "build", "go_back_n", "names", "register",
    "sprays",
]  # fmt: skip

_FACTORIES: dict[str, Factory] = {}
_SPRAYING: set[str] = set()


def register(name: str, factory: Factory, *, sprays: bool = False) -> None:
    """Adds a transport; a second one of the same name is an error."""
    if name in _FACTORIES:
        raise ValueError(f"two transports are named {name}")
    _FACTORIES[name] = factory
    if sprays:
        _SPRAYING.add(name)


def sprays(name: str) -> bool:
    """Whether a transport sends the packets of a connection over many paths."""
    return name in _SPRAYING


def names() -> list[str]:
    """Names of all transports."""
    return sorted(_FACTORIES)


def build(rate_bps: int, parameters: NicParameters, number: int = 0) -> Ends:
    """The ends of a connection, of the transport that the parameters name.

    Args:
        rate_bps: line rate of the sender.
        parameters: of all NICs.
        number: of the connection.

    Raises:
        UnknownNameError: there is no such transport.
    """
    name = parameters.transport
    if name not in _FACTORIES:
        raise UnknownNameError("transport", "transport", name, _FACTORIES)
    return _FACTORIES[name](rate_bps, parameters, number)


register("go-back-n", go_back_n)
register("dctcp", dctcp)
register("uet", uet, sprays=True)
