"""Takes netlink messages apart, as the kernel would: header, fixed part, attributes."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from emulator.kernel.netlink import Message

FIXED = {16: 16, 20: 8, 28: 12, 36: 20, 40: 20, 44: 20}
"""Message type -> bytes of its fixed part: ifinfomsg, ifaddrmsg, ndmsg, tcmsg."""


@dataclass(frozen=True)
class Parsed:
    """A request.

    Attributes:
        kind: message type.
        flags: of the header.
        fixed: the fixed part.
        attributes: type -> value; nested ones are values too.
    """

    kind: int
    flags: int
    fixed: bytes
    attributes: dict[int, bytes]


def attributes(data: bytes) -> dict[int, bytes]:
    """Attributes one after the other, each at a multiple of 4 bytes."""
    found: dict[int, bytes] = {}
    offset = 0
    while offset < len(data):
        size, kind = struct.unpack_from("=HH", data, offset)
        assert size >= 4
        assert offset + size <= len(data)
        assert kind not in found
        found[kind] = data[offset + 4 : offset + size]
        padded = (size + 3) & ~3
        assert not any(data[offset + size : offset + padded])
        offset += padded
    assert offset == len(data)
    return found


def parse(message: Message) -> Parsed:
    """A message; its lengths must be right."""
    size, kind, flags, sequence, port = struct.unpack_from("=IHHII", message.data)
    assert size == len(message.data)
    assert size % 4 == 0
    assert sequence == port == 0
    start = 16 + FIXED[kind]
    return Parsed(kind, flags, message.data[16:start], attributes(message.data[start:]))
