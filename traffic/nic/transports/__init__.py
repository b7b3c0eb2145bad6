"""Transports: what the two ends of a connection do, behind one small interface. PURE.

Both ends of a connection (`traffic.nic.transports.base`) are made by the factory that
`NicParameters.transport` names, so a transport is a module with a factory and a line below; nothing
else of the engine changes for it.

What is there serves transports whose packets take one path. One that sprays them needs, besides:
- a UDP source port for each packet: a field of `Burst` that the outbox passes on to the stamper,
  which stamps two more bytes (`FrameBank.patch` takes them as `sport`);
- packets as they come: no `Lane` (it keeps the order of a path), but for each an event of the inbox
  with its port, mark and length; messages are reported complete in their order all the same;
- acknowledgements that say more than the AETH's 24 bits: a bitmap behind it makes the header longer
  (`traffic.template.HEADER_COLUMNS`) and the medium's records wider.
"""

from __future__ import annotations

from topologies.errors import UnknownNameError
from traffic.nic.parameters import NicParameters
from traffic.nic.transports.base import Ends, Factory, ReceiverSide, SenderSide
from traffic.nic.transports.dctcp import dctcp
from traffic.nic.transports.go_back_n import go_back_n

__all__ = [
    "Ends", "Factory", "ReceiverSide", "SenderSide", "build", "go_back_n", "names", "register",
]  # fmt: skip

_FACTORIES: dict[str, Factory] = {}


def register(name: str, factory: Factory) -> None:
    """Adds a transport; a second one of the same name is an error."""
    if name in _FACTORIES:
        raise ValueError(f"two transports are named {name}")
    _FACTORIES[name] = factory


def names() -> list[str]:
    """Names of all transports."""
    return sorted(_FACTORIES)


def build(rate_bps: int, parameters: NicParameters) -> Ends:
    """The ends of a connection, of the transport that the parameters name.

    Raises:
        UnknownNameError: there is no such transport.
    """
    name = parameters.transport
    if name not in _FACTORIES:
        raise UnknownNameError("transport", "transport", name, _FACTORIES)
    return _FACTORIES[name](rate_bps, parameters)


register("go-back-n", go_back_n)
register("dctcp", dctcp)
