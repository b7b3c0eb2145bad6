"""Thousands of RoCEv2 frames from a few templates, in bulk, ICRC included, without Scapy.

A `FrameBank` keeps the headers of template frames. `FrameBank.patch` copies them for a batch of
packets, writes the fields that differ per packet and corrects the ICRC by the linearity of CRC-32:
crc(x ^ d) = crc(x) ^ L(d), where L of one changed byte depends only on its value and on how far
from the end of the packet it stands. So there is one table of 256 entries per frame length and
header position, and a batch costs a dozen NumPy operations whatever its size.

`FrameBank.derive` makes the templates of any number of flows from one frame of each length the
same way. `traffic.headers` builds those frames; tests hold every result against it, bit for bit.
"""

from __future__ import annotations

import functools
import zlib
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from traffic import wire

HEADER_COLUMNS = 64
"""Width of a header row; headers are shorter, the rest is zero."""

Bytes = npt.NDArray[np.uint8]
Words = npt.NDArray[np.uint32]
Indices = npt.NDArray[np.intp]

_FIELDS = np.dtype(
    {
        "names": ["dst_mac", "src_mac", "tos", "checksum", "src_ip", "dst_ip", "sport"]
        + ["opcode", "qp", "psn", "aeth"],
        "formats": ["(6,)u1", "(6,)u1", "u1", ">u2", "(4,)u1", "(4,)u1", ">u2"]
        + ["u1", ">u4", ">u4", ">u4"],
        "offsets": [wire.AT_DST_MAC, wire.AT_SRC_MAC, wire.AT_TOS, wire.AT_IP_CHECKSUM]
        + [wire.AT_SRC_IP, wire.AT_DST_IP, wire.AT_SPORT]
        + [wire.AT_OPCODE, wire.AT_FECN_BECN, wire.AT_ACK_REQUEST, wire.AT_AETH],
        "itemsize": HEADER_COLUMNS,
    }
)
_PACKET = (wire.AT_OPCODE, *range(wire.AT_ACK_REQUEST, wire.AT_PSN + 3))
_SPORT = (wire.AT_SPORT, wire.AT_SPORT + 1)
_DEST_QP = tuple(range(wire.AT_DEST_QP, wire.AT_DEST_QP + 3))
_SYNDROME = (wire.AT_SYNDROME,)
_MSN = tuple(range(wire.AT_MSN, wire.AT_MSN + 3))
_ADDRESSES = tuple(range(wire.AT_SRC_IP, wire.AT_DST_IP + 4))
_IP_WORDS = slice(wire.AT_IP, wire.AT_IP + wire.IPV4_BYTES)


class FrameBank:
    """Header templates with all that it takes to patch them in bulk.

    Attributes:
        headers: uint8[T, 64], Ethernet to BTH (and AETH), zero beyond `header_bytes`.
        header_bytes: intp[T], length of each header.
        body_bytes: intp[T], zero bytes between header and ICRC: payload and pad.
        frame_bytes: intp[T], length of the whole frame, ICRC included, FCS not.
        icrc: uint32[T], ICRC of each template, as a number (sent least byte first).
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
        self.headers, self.header_bytes, self.frame_bytes, self.icrc = (
            headers,
            header_bytes,
            sizes,
            icrc,
        )
        self.body_bytes = sizes - header_bytes - wire.ICRC_BYTES
        distinct, group = np.unique(sizes, return_inverse=True)
        tables = [_tables(int(size)) for size in distinct]
        self._tables = np.concatenate(tables) if tables else np.zeros(0, np.uint32)
        self._table_start = group.astype(np.intp) * (HEADER_COLUMNS * 256)
        self._columns = np.ascontiguousarray(headers.T)
        self._has_aeth = header_bytes == wire.ACK_HEADER_BYTES

    def __len__(self) -> int:
        return len(self.headers)

    @classmethod
    def derive(cls, bases: Sequence[bytes], flows: Sequence[wire.FlowAddress]) -> FrameBank:
        """Templates of every flow from base frames of any flow, without building them.

        Returns:
            A bank whose template ``i * len(bases) + j`` is ``bases[j]`` readdressed to ``flows[i]``.
        """
        base = cls(bases)
        index = np.tile(np.arange(len(bases)), len(flows))
        headers = base.headers[index]
        _readdress(headers, flows, len(bases))
        positions = _ADDRESSES + _SPORT + _DEST_QP
        icrc = base._corrected(headers, index, positions)
        bank = cls.__new__(cls)
        bank._fill(headers, base.header_bytes[index], base.frame_bytes[index], icrc)
        return bank

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
            uint8[n, 64] header rows and uint8[n, 4] ICRCs in the order of the wire.
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
        at = np.array(positions)
        change = headers.T[at] ^ self._columns[at[:, None], index]
        entry = change + (at[:, None] * 256 + self._table_start[index])
        flips = self._tables.take(entry)
        corrected: Words = np.bitwise_xor.reduce(flips, axis=0) ^ self.icrc[index]
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


def icrc_of(frame: bytes) -> int:
    """The ICRC that a frame should carry (IBTA annex A17.3), as a number."""
    packet = bytearray(frame[: -wire.ICRC_BYTES])
    for position in wire.ICRC_MASKED:
        packet[position] = 0xFF
    return zlib.crc32(packet[wire.AT_IP :], zlib.crc32(b"\xff" * 8))


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
    if icrc_of(frame) != int.from_bytes(frame[-wire.ICRC_BYTES :], "little"):
        raise ValueError("the ICRC of a template must be valid")


def _readdress(headers: Bytes, flows: Sequence[wire.FlowAddress], repeat: int) -> None:
    """Write each flow's addresses into its `repeat` consecutive header rows."""
    fields = headers.view(_FIELDS)[:, 0]

    def column(values: Iterable[object], kind: str = "u4") -> npt.NDArray[np.uint32]:
        return np.repeat(np.array(list(values), kind), repeat, axis=0)

    fields["src_mac"] = column((_mac(flow.src_mac) for flow in flows), "u1").reshape(-1, 6)
    fields["dst_mac"] = column((_mac(flow.dst_mac) for flow in flows), "u1").reshape(-1, 6)
    fields["src_ip"] = column((_ip(flow.src_ip) for flow in flows), "u1").reshape(-1, 4)
    fields["dst_ip"] = column((_ip(flow.dst_ip) for flow in flows), "u1").reshape(-1, 4)
    fields["tos"] = column(flow.tos for flow in flows)
    fields["sport"] = column(flow.sport for flow in flows)
    fields["qp"] = fields["qp"] & 0xFF000000 | column(flow.dest_qp for flow in flows)
    fields["checksum"] = 0
    fields["checksum"] = _ip_checksum(headers)


def _ip_checksum(headers: Bytes) -> Words:
    """RFC 791 header checksum of rows whose checksum field is 0."""
    words = np.ascontiguousarray(headers[:, _IP_WORDS]).view(">u2")
    total = words.sum(axis=1, dtype=np.uint32)
    for _ in range(2):
        total = (total & 0xFFFF) + (total >> 16)
    checksum: Words = ~total & 0xFFFF
    return checksum


@functools.cache
def _mac(text: str) -> list[int]:
    return list(bytes.fromhex(text.replace(":", "")))


@functools.cache
def _ip(text: str) -> list[int]:
    return [int(part) for part in text.split(".")]


@functools.cache
def _byte_table() -> Words:
    """CRC-32 (IEEE 802.3) of each byte value, from register 0 and without final inversion."""
    zero = zlib.crc32(b"\0")
    return np.array([zlib.crc32(bytes([value])) ^ zero for value in range(256)], np.uint32)


@functools.cache
def _tables(frame_bytes: int) -> Words:
    """L for each header position and byte value of frames of this length, uint32[64 * 256].

    Positions that the ICRC masks or does not cover stay zero; so do those beyond the packet.
    """
    end = frame_bytes - wire.ICRC_BYTES
    last = min(HEADER_COLUMNS, end) - 1
    tables = np.zeros((HEADER_COLUMNS, 256), np.uint32)
    step = _byte_table()
    row = _distant(end - 1 - last)
    for position in range(last, wire.AT_IP - 1, -1):
        if position not in wire.ICRC_MASKED:
            tables[position] = row
        row = step[row & 0xFF] ^ (row >> 8)
    return tables.reshape(-1)


def _distant(zeros: int) -> Words:
    """L of each byte value followed by this many unchanged bytes."""
    still = zlib.crc32(bytes(zeros + 1))
    row = np.zeros(256, np.uint32)
    for bit in range(8):
        flip = zlib.crc32(bytes([1 << bit]) + bytes(zeros)) ^ still
        row[1 << bit : 2 << bit] = row[: 1 << bit] ^ np.uint32(flip)
    return row
