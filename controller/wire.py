"""Our messages as OpenFlow 1.3 bytes. Pure: no framework, no socket.

The framework builds one flow-mod from objects in about 75 us; a fabric needs thousands of them.
Packing the fixed layout directly takes a few microseconds, and a switch's messages leave as one
buffer. `tests/unit/controller/test_wire.py` compares every kind of message with the framework's
encoding, byte for byte. Layouts: OpenFlow Switch Specification 1.3.5, sections 7.1, 7.2.3, 7.2.4,
7.2.5, 7.3.4.2 and 7.3.8.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from functools import lru_cache

from controller.core.messages import FIELD_BITS, Barrier, FlowMod, Match, Message, Output

VERSION = 0x04
FLOW_MOD = 14
BARRIER_REQUEST = 20
NO_BUFFER = 0xFFFFFFFF
ANY_PORT = 0xFFFFFFFF
ANY_GROUP = 0xFFFFFFFF

OXM_BASIC = 0x8000
OXM_FIELD = {"eth_type": 5, "ip_proto": 10, "ipv4_dst": 12, "tcp_src": 13, "udp_src": 15}
"""Field numbers of the basic class (7.2.3.7); a prerequisite has a smaller one than its field."""

_HEADER = struct.Struct("!BBHI")
_FLOW_MOD = struct.Struct("!BBHIQQBBHHHIIIHxx")
_MATCH = struct.Struct("!HH")
_OXM = struct.Struct("!HBB")
_INSTRUCTION = struct.Struct("!HHxxxx")
_OUTPUT = struct.Struct("!HHIHxxxxxx")
_MATCH_OXM = 1
_APPLY_ACTIONS = 4
_ACTION_OUTPUT = 0


def encode(messages: Iterable[Message], first_xid: int = 1) -> bytes:
    """All messages in one buffer.

    Args:
        messages: what to encode, in order.
        first_xid: transaction id of the first flow-mod; it counts up with every message. A
            barrier has its token instead.
    """
    return b"".join(
        encode_barrier(message)
        if isinstance(message, Barrier)
        else encode_flow_mod(message, (first_xid + position) & 0xFFFFFFFF)
        for position, message in enumerate(messages)
    )


def xid_of(message: bytes) -> int | None:
    """The transaction id of a message, or of its first bytes; None when they are too few."""
    if len(message) < _HEADER.size:
        return None
    xid: int = _HEADER.unpack_from(message)[3]
    return xid


def encode_barrier(barrier: Barrier) -> bytes:
    """A barrier request; its reply repeats the token as its transaction id."""
    return _HEADER.pack(VERSION, BARRIER_REQUEST, _HEADER.size, barrier.token)


def encode_flow_mod(message: FlowMod, xid: int) -> bytes:
    """A flow-mod without timeouts, buffer and flags."""
    body = encode_match(message.match) + _instructions(message.actions)
    return (
        _FLOW_MOD.pack(
            VERSION, FLOW_MOD, _FLOW_MOD.size + len(body), xid, message.cookie,
            message.cookie_mask, message.table, message.command, 0, 0, message.priority,
            NO_BUFFER, ANY_PORT, ANY_GROUP, 0,
        )
        + body
    )  # fmt: skip


@lru_cache(maxsize=1 << 16)
def encode_match(match: Match) -> bytes:
    """An OXM match, padded to a multiple of 8 bytes; its length field counts no padding."""
    fields = b"".join(
        _encode_field(name, value, mask)
        for name, value, mask in sorted(match.fields, key=lambda field: OXM_FIELD[field.name])
    )
    length = _MATCH.size + len(fields)
    return _MATCH.pack(_MATCH_OXM, length) + fields + bytes(-length % 8)


def _encode_field(name: str, value: int, mask: int) -> bytes:
    bits = FIELD_BITS[name]
    payload = value.to_bytes(bits // 8, "big")
    masked = mask != (1 << bits) - 1
    if masked:
        payload += mask.to_bytes(bits // 8, "big")
    return _OXM.pack(OXM_BASIC, OXM_FIELD[name] << 1 | masked, len(payload)) + payload


@lru_cache(maxsize=1 << 10)
def _instructions(actions: tuple[Output, ...]) -> bytes:
    """One apply-actions instruction; none at all for a rule that drops."""
    if not actions:
        return b""
    packed = b"".join(
        _OUTPUT.pack(_ACTION_OUTPUT, _OUTPUT.size, action.port, 0) for action in actions
    )
    return _INSTRUCTION.pack(_APPLY_ACTIONS, _INSTRUCTION.size + len(packed)) + packed
