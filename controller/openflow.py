"""Between the framework's OpenFlow 1.3 objects and ours: what arrives, and how messages leave."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from controller import sdn, wire
from controller.core.events import PortState
from controller.core.messages import Message

FIRST_XID = 1 << 31
"""Transaction ids of flow-mods begin here, those of barriers (their tokens) at 1."""


def port_state(port: Any, *, removed: bool = False) -> PortState:
    """Our view of an `OFPPort`; a port that was removed is down."""
    ofp = sdn.ofproto_v1_3
    down = port.config & ofp.OFPPC_PORT_DOWN or port.state & ofp.OFPPS_LINK_DOWN
    name = port.name.decode(errors="replace")
    return PortState(port.port_no, name, up=not (removed or down))


def port_states(datapath: Any) -> tuple[PortState, ...]:
    """All ports that a switch reported when it connected."""
    return tuple(port_state(port) for port in datapath.ports.values())


def changed_port(message: Any) -> PortState:
    """The port of an `OFPPortStatus` message."""
    removed = message.reason == sdn.ofproto_v1_3.OFPPR_DELETE
    return port_state(message.desc, removed=removed)


class Connection:
    """One connection of a switch: sends our messages and explains its errors.

    Args:
        datapath: the framework's object.
    """

    def __init__(self, datapath: Any) -> None:
        self.datapath = datapath
        self._next_xid = FIRST_XID
        self._first_xid = FIRST_XID
        self._sent: Sequence[Message] = ()

    def send(self, messages: Sequence[Message]) -> None:
        """Send messages as one buffer; they are lost if the connection is just ending."""
        self._first_xid, self._sent = self._next_xid, messages
        self._next_xid += len(messages)
        if self._next_xid + len(messages) > 0xFFFFFFFF:
            self._next_xid = FIRST_XID
        self.datapath.send(wire.encode(messages, self._first_xid))

    def describe_error(self, message: Any) -> str:
        """One line about an `OFPErrorMsg`: type, code, and the message that was refused."""
        ofp = sdn.ofproto_v1_3
        if message.type == ofp.OFPET_EXPERIMENTER:
            what = f"experimenter {message.experimenter:#x}, type {message.exp_type}"
        else:
            kind = ofp.ofp_error_type_to_str(message.type)
            what = f"{kind}, {ofp.ofp_error_code_to_str(message.type, message.code)}"
        return f"{what}, in answer to {self._refused(bytes(message.data or b''))}"

    def _refused(self, head: bytes) -> str:
        """What the head of the refused message, which an error carries, belongs to."""
        xid = wire.xid_of(head)
        position = -1 if xid is None else xid - self._first_xid
        if 0 <= position < len(self._sent):
            return str(self._sent[position])
        return f"a message that begins with {head[:16].hex()}" if head else "an unknown message"
