"""How many packets and how much line time a message takes."""

from __future__ import annotations

from traffic import wire


def packets(size_bytes: int, payload_bytes: int) -> int:
    """Data packets of a message; an empty message still takes one."""
    return max(1, -(-size_bytes // payload_bytes))


def message_wire_bytes(size_bytes: int, payload_bytes: int) -> int:
    """Bytes of line time of a message's data packets: headers, FCS, preamble and gap included.

    Args:
        size_bytes: the message, bytes.
        payload_bytes: payload of a full packet, bytes.
    """
    full = packets(size_bytes, payload_bytes) - 1
    last = size_bytes - full * payload_bytes
    return full * _packet_wire_bytes(payload_bytes) + _packet_wire_bytes(last)


def _packet_wire_bytes(payload_bytes: int) -> int:
    return wire.wire_bytes(wire.data_frame_bytes(payload_bytes))


def header_efficiency(payload_bytes: int, overhead_bytes: int | None = None) -> float:
    """Share of line time that is payload when all packets are full.

    Args:
        payload_bytes: payload of a packet.
        overhead_bytes: all else that takes line time; None for a RoCEv2 packet over IPv4 with frame
            check sequence, preamble and gap (82 B).
    """
    if payload_bytes <= 0:
        return 0.0
    if overhead_bytes is None:
        return payload_bytes / _packet_wire_bytes(payload_bytes)
    return payload_bytes / (payload_bytes + overhead_bytes)
