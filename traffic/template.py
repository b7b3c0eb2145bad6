"""Thousands of RoCEv2 frames from a few templates, in bulk, ICRC included, without Scapy.

A `FrameBank` keeps the headers of template frames. `FrameBank.patch` copies them for a batch of
packets, writes the fields that differ per packet and corrects the ICRC by the linearity of CRC-32:
crc(x ^ d) = crc(x) ^ L(d), where L of one changed byte depends only on its value and on how far
from the end of the packet it stands. So there is one table of 256 entries per distance, for frames
of all lengths, and a batch costs a dozen NumPy operations whatever its size.

`FrameBank.derive` makes the templates of any number of flows from one frame of each length the
same way. `traffic.headers` builds those frames; tests hold every result against it, bit for bit.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from traffic import wire
from traffic.icrc import flips, icrc_of

HEADER_COLUMNS = 80
"""Width of a header row; headers are shorter, the rest is zero."""

Bytes = npt.NDArray[np.uint8]
Words = npt.NDArray[np.uint32]
Indices = npt.NDArray[np.intp]

_PLACES = {
    "tos": ("u1", wire.AT_TOS),
    "ip_bytes": (">u2", wire.AT_IP_LENGTH),
    "checksum": (">u2", wire.AT_IP_CHECKSUM),
    "sport": (">u2", wire.AT_SPORT),
    "udp_bytes": (">u2", wire.AT_UDP_LENGTH),
    "opcode": ("u1", wire.AT_OPCODE),
    "qp": (">u4", wire.AT_FECN_BECN),
    "psn": (">u4", wire.AT_ACK_REQUEST),
    "aeth": (">u4", wire.AT_AETH),
}
_FIELDS = np.dtype(
    {
        "names": list(_PLACES),
        "formats": [kind for kind, _ in _PLACES.values()],
        "offsets": [offset for _, offset in _PLACES.values()],
        "itemsize": HEADER_COLUMNS,
    }
)
_PACKET = (wire.AT_OPCODE, *range(wire.AT_ACK_REQUEST, wire.AT_PSN + 3))
_SPORT = (wire.AT_SPORT, wire.AT_SPORT + 1)
_DEST_QP = tuple(range(wire.AT_DEST_QP, wire.AT_DEST_QP + 3))
_SYNDROME = (wire.AT_SYNDROME,)
_MSN = tuple(range(wire.AT_MSN, wire.AT_MSN + 3))
_ADDRESSES = tuple(range(wire.AT_SRC_IP, wire.AT_DST_IP + 4))


class FrameBank:
    """Header templates with all that it takes to patch them in bulk.

    Attributes:
        headers: uint8[T, 80], Ethernet to BTH (and AETH), zero beyond `header_bytes`.
        header_bytes: intp[T], length of each header.
        body_bytes: intp[T], zero bytes between header and ICRC: payload and pad.
        frame_bytes: intp[T], length of the whole frame, ICRC included, FCS not.
        icrc: uint32[T], ICRC of each template, as a number (sent least byte first).
        flips: uint32, what a changed byte does to an ICRC (`traffic.icrc.flips`).
    """

    def __init__(self, frames: Sequence[bytes]) -> None:
        """Take templates apart; ValueError for a frame that is not RoCEv2 over IPv4 with zeros."""
        for frame in frames:
            _check(frame)
        lengths = [_header_bytes(frame) for frame in frames]
        rows = [
            frame[:size].ljust(HEADER_COLUMNS, b"\0")
            for frame, size in zip(frames, lengths, strict=True)
        ]
        headers = np.frombuffer(b"".join(rows), np.uint8).reshape(-1, HEADER_COLUMNS)
        icrc = [int.from_bytes(frame[-wire.ICRC_BYTES :], "little") for frame in frames]
        sizes = np.array([len(frame) for frame in frames], np.intp)
        self._fill(headers, np.array(lengths, np.intp), sizes, np.array(icrc, np.uint32))

    def _fill(self, headers: Bytes, header_bytes: Indices, sizes: Indices, icrc: Words) -> None:
        self.headers, self.icrc = headers, icrc
        self.header_bytes, self.frame_bytes = header_bytes, sizes
        self.body_bytes = sizes - header_bytes - wire.ICRC_BYTES
        self._last = sizes - wire.ICRC_BYTES - 1
        self.flips = flips(int(sizes.max(initial=0)))
        self._columns = np.ascontiguousarray(headers.T)
        self._has_aeth = header_bytes == wire.ACK_HEADER_BYTES

    def __len__(self) -> int:
        return len(self.headers)

    @classmethod
    def derive(
        cls,
        bases: Sequence[bytes],
        flows: Sequence[wire.FlowAddress],
        pairs: Sequence[tuple[int, int]] | None = None,
    ) -> FrameBank:
        """Templates of many flows from base frames of any flow, without building them.

        Args:
            bases: one frame of each kind and length.
            flows: whose addresses, port, queue pair and DSCP to give them.
            pairs: (number of the base, number of the flow) of each template. When None, every
                base for every flow: template ``i * len(bases) + j`` is base j of flow i.
        """
        base = cls(bases)
        if pairs is None:
            pairs = [(j, i) for i in range(len(flows)) for j in range(len(bases))]
        of_base, of_flow = np.array(pairs, np.intp).reshape(-1, 2).T
        headers = base.headers[of_base]
        _readdress(headers, flows, of_flow)
        icrc = base._corrected(headers, of_base, _ADDRESSES + _SPORT + _DEST_QP)
        bank = cls.__new__(cls)
        bank._fill(headers, base.header_bytes[of_base], base.frame_bytes[of_base], icrc)
        return bank

    def widen(self, template: int, nbytes: int) -> None:
        """The first bytes of a template's body count as header, so that they can be written."""
        if not 0 <= nbytes <= self.body_bytes[template]:
            raise ValueError(f"template {template} has no {nbytes} bytes of body")
        self.header_bytes[template] += nbytes
        self.body_bytes[template] -= nbytes

    def patch(
        self,
        index: Indices,
        opcode: npt.ArrayLike,
        ack_request: npt.ArrayLike,
        psn: npt.ArrayLike,
        *,
        sport: npt.ArrayLike | None = None,
        dest_qp: npt.ArrayLike | None = None,
        syndrome: npt.ArrayLike | None = None,
        msn: npt.ArrayLike | None = None,
    ) -> tuple[Bytes, Bytes]:
        """Headers and ICRCs of n packets.

        Args:
            index: the template of each packet, intp[n].
            opcode: BTH opcode, one for all or uint8[n], as are all that follow.
            ack_request: 1 where the packet asks for an acknowledgement.
            psn: packet sequence number, taken modulo 2**24.
            sport: UDP source port; the template's when None.
            dest_qp: destination queue pair; the template's when None.
            syndrome: AETH syndrome; the template's when None.
            msn: AETH message sequence number, modulo 2**24; the template's when None.

        Returns:
            uint8[n, 80] header rows and uint8[n, 4] ICRCs in the order of the wire.
        """
        headers = self.headers[index]
        fields = headers.view(_FIELDS)[:, 0]
        positions = _PACKET
        fields["opcode"] = opcode
        fields["psn"] = _joined(ack_request, 31, psn)
        if sport is not None:
            fields["sport"] = sport
            positions += _SPORT
        if dest_qp is not None:
            fields["qp"] = _joined(fields["qp"] >> 24, 24, dest_qp)
            positions += _DEST_QP
        if syndrome is not None or msn is not None:
            positions += self._patch_aeth(headers, index, syndrome, msn)
        icrc = self._corrected(headers, index, positions)
        return headers, icrc.astype("<u4", copy=False).view(np.uint8).reshape(-1, 4)

    def _patch_aeth(
        self,
        headers: Bytes,
        index: Indices,
        syndrome: npt.ArrayLike | None,
        msn: npt.ArrayLike | None,
    ) -> tuple[int, ...]:
        if not self._has_aeth[index].all():
            raise ValueError("syndrome and msn are fields of acknowledgements only")
        positions: tuple[int, ...] = ()
        if syndrome is not None:
            headers[:, wire.AT_SYNDROME] = syndrome
            positions += _SYNDROME
        if msn is not None:
            aeth = headers.view(_FIELDS)[:, 0]["aeth"]
            aeth[:] = _joined(aeth >> 24, 24, msn)
            positions += _MSN
        return positions

    def _corrected(self, headers: Bytes, index: Indices, positions: tuple[int, ...]) -> Words:
        """ICRC of patched headers that differ from their templates at these positions only."""
        at = np.array(positions)[:, None]
        change = headers.T[at[:, 0]] ^ self._columns[at, index]
        distance = self._last[index] - at
        flipped = self.flips.take(distance * 256 + change)
        corrected: Words = np.bitwise_xor.reduce(flipped, axis=0) ^ self.icrc[index]
        return corrected

    def frame(self, template: int) -> bytes:
        """A template as the whole frame that would be sent unpatched."""
        icrc = int(self.icrc[template]).to_bytes(wire.ICRC_BYTES, "little")
        return self.assemble(template, self.headers[template].tobytes(), icrc)

    def assemble(self, template: int, header: bytes, icrc: bytes) -> bytes:
        """The whole frame of one row of `patch`'s result (for tests and captures)."""
        head = header[: int(self.header_bytes[template])]
        return head + bytes(int(self.body_bytes[template])) + icrc


def derive(base: bytes, flow: wire.FlowAddress) -> bytes:
    """One frame readdressed to another flow; use `FrameBank.derive` for many."""
    return FrameBank.derive([base], [flow]).frame(0)


def resized(base: bytes, payload_bytes: int) -> bytes:
    """A SEND frame with another length of payload: lengths, pad count, checksum and ICRC anew."""
    if base[wire.AT_OPCODE] not in wire.SEND_OPCODES:
        raise ValueError(f"a frame of opcode {base[wire.AT_OPCODE]:#04x} has no payload to resize")
    pad = wire.pad_bytes(payload_bytes)
    body = bytes(payload_bytes + pad)
    ip_bytes = wire.IP_OVERHEAD_BYTES + len(body)
    row = np.frombuffer(base[: wire.HEADER_BYTES].ljust(HEADER_COLUMNS), np.uint8).copy()
    row[wire.AT_BTH_FLAGS] = row[wire.AT_BTH_FLAGS] & 0xCF | pad << 4
    row.view(_FIELDS)["ip_bytes"] = ip_bytes
    row.view(_FIELDS)["udp_bytes"] = ip_bytes - wire.IPV4_BYTES
    _renew_checksum(row.reshape(1, -1))
    packet = row[: wire.HEADER_BYTES].tobytes() + body
    return packet + icrc_of(packet).to_bytes(wire.ICRC_BYTES, "little")


def _joined(high: npt.ArrayLike, shift: int, low: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """A 32-bit word from a field above `shift` and a 24-bit number."""
    above = np.asarray(high, np.int64) << shift
    joined: npt.NDArray[np.int64] = above | np.asarray(low, np.int64) & wire.PSN_MASK
    return joined


def _header_bytes(frame: bytes) -> int:
    is_ack = frame[wire.AT_OPCODE] == wire.Opcode.ACKNOWLEDGE
    return wire.ACK_HEADER_BYTES if is_ack else wire.HEADER_BYTES


def _check(frame: bytes) -> None:
    """ValueError unless the frame is an intact one that the linear patching is right for."""
    if len(frame) < wire.HEADER_BYTES + wire.ICRC_BYTES:
        raise ValueError(f"a frame of {len(frame)} bytes is too short for RoCEv2")
    if frame[wire.AT_ETHERTYPE : wire.AT_IP + 1] != b"\x08\x00\x45":
        raise ValueError("not an untagged IPv4 frame without options")
    dport = int.from_bytes(frame[wire.AT_DPORT : wire.AT_DPORT + 2], "big")
    if frame[wire.AT_PROTOCOL] != wire.IP_PROTOCOL_UDP or dport != wire.ROCE_PORT:
        raise ValueError("not a packet to UDP port 4791")
    if any(frame[_header_bytes(frame) : -wire.ICRC_BYTES]):
        raise ValueError("the body of a template must be zeros")
    if icrc_of(frame[: -wire.ICRC_BYTES]) != int.from_bytes(frame[-wire.ICRC_BYTES :], "little"):
        raise ValueError("the ICRC of a template must be valid")


def _readdress(headers: Bytes, flows: Sequence[wire.FlowAddress], of_flow: Indices) -> None:
    """Write into each header row the addresses of the flow that it belongs to."""
    fields = headers.view(_FIELDS)[:, 0]
    octets = np.array([_octets(flow) for flow in flows], np.uint8).reshape(-1, 20)[of_flow]
    numbers = np.array([(flow.tos, flow.sport, flow.dest_qp) for flow in flows], np.uint32)
    numbers = numbers.reshape(-1, 3)[of_flow]
    headers[:, wire.AT_DST_MAC : wire.AT_ETHERTYPE] = octets[:, :12]
    headers[:, wire.AT_SRC_IP : wire.AT_UDP] = octets[:, 12:]
    fields["tos"], fields["sport"] = numbers[:, 0], numbers[:, 1]
    fields["qp"] = _joined(fields["qp"] >> 24, 24, numbers[:, 2])
    _renew_checksum(headers)


def _octets(flow: wire.FlowAddress) -> list[int]:
    """MAC and IPv4 addresses in the order of the wire."""
    ends = _mac(flow.dst_mac) + _mac(flow.src_mac) + _ip(flow.src_ip) + _ip(flow.dst_ip)
    if len(ends) != 20 or max(ends) > 0xFF:
        raise ValueError(f"{flow} has an address that is not a MAC or an IPv4 address")
    return ends


def _mac(text: str) -> list[int]:
    return [int(part, 16) for part in text.split(":")]


def _ip(text: str) -> list[int]:
    return [int(part) for part in text.split(".")]


def _renew_checksum(headers: Bytes) -> None:
    """Set the IPv4 header checksum of each row (RFC 791)."""
    fields = headers.view(_FIELDS)[:, 0]
    fields["checksum"] = 0
    words = np.ascontiguousarray(headers[:, wire.AT_IP : wire.AT_UDP]).view(">u2")
    total = words.sum(axis=1, dtype=np.uint32)
    for _ in range(2):
        total = (total & 0xFFFF) + (total >> 16)
    fields["checksum"] = ~total & 0xFFFF
