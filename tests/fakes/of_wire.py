"""The switch's side of OpenFlow 1.3 on the wire, written from the specification (1.3.5).

It shares nothing with `controller.wire` but the message classes, so each checks the other.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from controller.core.events import PortState
from controller.core.messages import Barrier, Command, Field, FlowMod, Match, Message, Output

VERSION = 4
HELLO, ERROR, ECHO_REQUEST, ECHO_REPLY = 0, 1, 2, 3
FEATURES_REQUEST, FEATURES_REPLY, SET_CONFIG, PORT_STATUS = 5, 6, 9, 12
FLOW_MOD, MULTIPART_REQUEST, MULTIPART_REPLY = 14, 18, 19
BARRIER_REQUEST, BARRIER_REPLY = 20, 21
MULTIPART_PORT_DESC = 13
PORT_ADDED, PORT_REMOVED, PORT_MODIFIED = 0, 1, 2
LINK_DOWN = 1

FIELDS = {5: ("eth_type", 2), 10: ("ip_proto", 1), 12: ("ipv4_dst", 4), 13: ("tcp_src", 2),
          15: ("udp_src", 2)}  # fmt: skip


def pack(kind: int, xid: int, body: bytes = b"") -> bytes:
    """A whole message (7.1)."""
    return struct.pack("!BBHI", VERSION, kind, 8 + len(body), xid) + body


def split(stream: bytearray) -> Iterator[tuple[int, int, bytes]]:
    """Take the complete messages from the front of a stream: (type, xid, body)."""
    while len(stream) >= 8:
        version, kind, length, xid = struct.unpack_from("!BBHI", stream)
        assert version == VERSION, f"OpenFlow version {version}"
        assert length >= 8, f"length {length} of a message"
        if len(stream) < length:
            return
        body = bytes(stream[8:length])
        del stream[:length]
        yield kind, xid, body


def hello(xid: int = 1) -> bytes:
    """A hello whose version bitmap has OpenFlow 1.3 only (7.5.1)."""
    return pack(HELLO, xid, struct.pack("!HHI", 1, 8, 1 << VERSION))


def features_reply(xid: int, dpid: int) -> bytes:
    """The switch's features (7.3.1); one table, no buffers."""
    return pack(FEATURES_REPLY, xid, struct.pack("!QIBBxxII", dpid, 0, 1, 0, 0, 0))


def port(state: PortState) -> bytes:
    """The description of a port (7.2.1)."""
    return struct.pack(
        "!I4x6s2x16sIIIIIIII",
        state.number, bytes(6), state.name.encode(), 0, 0 if state.up else LINK_DOWN, *[0] * 6,
    )  # fmt: skip


def port_desc_reply(xid: int, ports: tuple[PortState, ...]) -> bytes:
    """All ports (7.3.5.7)."""
    head = struct.pack("!HH4x", MULTIPART_PORT_DESC, 0)
    return pack(MULTIPART_REPLY, xid, head + b"".join(map(port, ports)))


def port_status(reason: int, state: PortState) -> bytes:
    """A port was added, removed or modified (7.4.3)."""
    return pack(PORT_STATUS, 0, struct.pack("!B7x", reason) + port(state))


def error(xid: int, kind: int, code: int, refused: bytes) -> bytes:
    """An error message with at least 64 bytes of what was refused (7.4.4)."""
    return pack(ERROR, xid, struct.pack("!HH", kind, code) + refused[:64])


def read_message(kind: int, xid: int, body: bytes) -> Message:
    """A flow-mod or barrier as our message."""
    if kind == BARRIER_REQUEST:
        assert not body, "a barrier has no body"
        return Barrier(xid)
    assert kind == FLOW_MOD, f"message type {kind}"
    return read_flow_mod(body)


def read_flow_mod(body: bytes) -> FlowMod:
    """The body of a flow-mod (7.3.4.1), with at most one apply-actions instruction."""
    (
        cookie, cookie_mask, table, command, idle, hard, priority, buffer, out_port, out_group,
        flags,
    ) = struct.unpack_from("!QQBBHHHIIIH2x", body)  # fmt: skip
    assert (idle, hard, buffer, flags) == (0, 0, 0xFFFFFFFF, 0)
    assert (out_port, out_group) == (0xFFFFFFFF, 0xFFFFFFFF)
    match, used = read_match(body[40:])
    actions = read_instructions(body[40 + used :])
    return FlowMod(Command(command), match, priority, actions, cookie, cookie_mask, table)


def read_match(data: bytes) -> tuple[Match, int]:
    """An OXM match (7.2.3.1) and how many bytes it takes, padding included."""
    kind, length = struct.unpack_from("!HH", data)
    assert kind == 1, f"match type {kind}"
    fields, at = [], 4
    while at < length:
        group, head, size = struct.unpack_from("!HBB", data, at)
        assert group == 0x8000, f"OXM class {group:#x}"
        name, width = FIELDS[head >> 1]
        masked = head & 1
        assert size == width * (1 + masked), f"length {size} of {name}"
        payload = data[at + 4 : at + 4 + size]
        value = int.from_bytes(payload[:width], "big")
        mask = int.from_bytes(payload[width:], "big") if masked else (1 << 8 * width) - 1
        fields.append(Field(name, value, mask))
        at += 4 + size
    padded = (length + 7) // 8 * 8
    assert at == length, "fields are longer than the match"
    assert not any(data[length:padded]), "padding is not zero"
    return Match(tuple(sorted(fields))), padded


def read_instructions(data: bytes) -> tuple[Output, ...]:
    """The outputs of the apply-actions instruction (7.2.4); none for no instruction."""
    if not data:
        return ()
    kind, length = struct.unpack_from("!HH", data)
    assert (kind, length) == (4, len(data)), "not a single apply-actions instruction"
    outputs = []
    for at in range(8, length, 16):
        action, size, number, _ = struct.unpack_from("!HHIH6x", data, at)
        assert (action, size) == (0, 16), "not an output"
        outputs.append(Output(number))
    return tuple(outputs)
