"""Stamps the frames of a batch: the templates' rows, copied into memory that is used again. PURE.

`FrameBank.patch` writes any field of any frame. Almost all packets differ from their template in
the opcode, in the word of AckReq and PSN, and in the AETH behind it. So a stamper keeps each
template's row once per SEND opcode, with what a batch needs beside it, and writes the eight bytes
of both words: one copy of whole rows, one of the words, one look-up per byte for the ICRC.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from traffic import wire
from traffic.template import HEADER_COLUMNS, FrameBank

KINDS = (
    wire.Opcode.SEND_FIRST,
    wire.Opcode.SEND_MIDDLE,
    wire.Opcode.SEND_LAST,
    wire.Opcode.SEND_ONLY,
)
"""Rows of a template; one that is no SEND is the same in all of them."""

ASK = -1 << 63
"""AckReq in a packet's word, which is signed."""

PSN_ONE = 1 << 32
"""The word of PSN 1; below it is the AETH, above it are reserved bits and AckReq."""

FEW = 8
"""Up to so many packets are stamped one by one."""

_KINDS = len(KINDS)
_WORD = slice(wire.AT_ACK_REQUEST, wire.AT_ACK_REQUEST + 8)
_ICRC = slice(HEADER_COLUMNS, HEADER_COLUMNS + wire.ICRC_BYTES)
_WORD_BYTES = 8
_COLUMNS = HEADER_COLUMNS + 32
_ICRC_AT = HEADER_COLUMNS // 4
_HEADER_AT, _BODY_AT, _START_AT = (HEADER_COLUMNS // 8 + n for n in (1, 2, 3))
_SPORT = slice(wire.AT_SPORT, wire.AT_SPORT + 2)
_SPORT_BEFORE = 256 * (wire.AT_ACK_REQUEST - wire.AT_SPORT)
_SACK = slice(wire.AT_SACK, wire.AT_SACK + wire.SACK_BYTES)
_SACK_OFFSETS = -256 * np.arange(
    wire.AT_SACK - wire.AT_ACK_REQUEST, _SACK.stop - wire.AT_ACK_REQUEST
)
_LEAST_ROWS = 256
_ICRC_AND_START = struct.Struct("<I20xq")

Bytes = npt.NDArray[np.uint8]
Numbers = npt.NDArray[np.int64]


def row_of(template: int, opcode: int) -> int:
    """The stamper's row of a template with an opcode; of one that is no SEND with its own."""
    return template * _KINDS + (opcode if opcode < _KINDS else _KINDS - 1)


class Batch(NamedTuple):
    """Stamped frames; the next call of `Stamper.stamp` writes over them.

    Attributes:
        headers: uint8[n, 80].
        header_bytes: int64[n].
        body_bytes: int64[n].
        icrc: uint8[n, 4].
    """

    headers: Bytes
    header_bytes: Numbers
    body_bytes: Numbers
    icrc: Bytes


class Stamper:
    """Writes PSN, AckReq and AETH into the frames of a bank.

    Args:
        bank: the templates; an ACK's AETH must be 0.
    """

    def __init__(self, bank: FrameBank) -> None:
        self._table, self._flips = _table(bank), bank.flips
        self._table_bytes, self._flips_words = self._table.reshape(-1).data, self._flips.data
        self._offsets = -256 * np.arange(_WORD_BYTES, dtype=np.int64)[:, None]
        self._reserve(_LEAST_ROWS)

    def _reserve(self, count: int) -> None:
        """Memory for so many frames."""
        self._room = count
        rows = self._rows = np.zeros((count, _COLUMNS), np.uint8)
        self._memory = rows.reshape(-1).data
        words = rows.view(np.int64)
        self._headers, self._tails = rows[:, :HEADER_COLUMNS], rows[:, _ICRC]
        self._words, self._icrc = rows[:, _WORD], rows.view("<u4")[:, _ICRC_AT]
        self._header_bytes, self._body_bytes = words[:, _HEADER_AT], words[:, _BODY_AT]
        self._start, self._sports = words[:, _START_AT], rows[:, _SPORT].view(">u2")[:, 0]
        self._places = np.zeros(count * _WORD_BYTES, np.int64)
        self._found = np.zeros(count * _WORD_BYTES, np.uint32)

    def stamp(self, rows: Numbers, words: Numbers) -> Batch:
        """The frames of n packets.

        Args:
            rows: the row of each, `row_of`.
            words: `ASK` where it asks for an acknowledgement, `PSN_ONE` times its PSN, and its
                AETH (0 for data).
        """
        count = len(rows)
        if count > self._room:
            self._reserve(max(count, 2 * self._room))
        self._table.take(rows, 0, self._rows[:count], "clip")
        octets = words.astype(">i8").view(np.uint8).reshape(count, _WORD_BYTES)
        self._words[:count] = octets
        places = self._places[: count * _WORD_BYTES].reshape(_WORD_BYTES, count)
        found = self._found[: count * _WORD_BYTES].reshape(_WORD_BYTES, count)
        np.add(octets.T, self._offsets, out=places)
        places += self._start[:count]
        self._flips.take(places, None, found, "clip")
        self._icrc[:count] ^= np.bitwise_xor.reduce(found, axis=0)
        return self._batch(count)

    def stamp_few(self, rows: Sequence[int], words: Sequence[int]) -> Batch:
        """The same one by one, which takes less time for a handful (at most `FEW`)."""
        table, flips, memory = self._table_bytes, self._flips_words, self._memory
        for number, (row, word) in enumerate(zip(rows, words, strict=True)):
            at, source = number * _COLUMNS, row * _COLUMNS
            memory[at : at + _COLUMNS] = table[source : source + _COLUMNS]
            icrc, place = _ICRC_AND_START.unpack_from(memory, at + HEADER_COLUMNS)
            octets = word.to_bytes(_WORD_BYTES, "big", signed=True)
            for octet in octets:
                if octet:
                    icrc ^= flips[place + octet]
                place -= 256
            memory[at + _WORD.start : at + _WORD.stop] = octets
            memory[at + _ICRC.start : at + _ICRC.stop] = icrc.to_bytes(wire.ICRC_BYTES, "little")
        return self._batch(len(rows))

    def spread(self, deltas: Numbers) -> None:
        """Changes the UDP source ports of the frames stamped last.

        Args:
            deltas: what to change in each one's, by exclusive or; 0 = nothing.
        """
        count = len(deltas)
        self._sports[:count] ^= deltas.astype(np.uint16)
        place = self._start[:count] + _SPORT_BEFORE
        self._icrc[:count] ^= self._flips.take(place + (deltas >> 8))
        self._icrc[:count] ^= self._flips.take(place - 256 + (deltas & 0xFF))

    def extend(self, at: Numbers, octets: Bytes) -> None:
        """Writes what selective acknowledgements have behind their AETH.

        Args:
            at: their places among the frames stamped last; zeros are there until now.
            octets: uint8[n, 20].
        """
        self._rows[at, _SACK] = octets
        places = self._start[at, None] + _SACK_OFFSETS + octets
        self._icrc[at] ^= np.bitwise_xor.reduce(self._flips.take(places), axis=1)

    def _batch(self, count: int) -> Batch:
        return Batch(
            self._headers[:count], self._header_bytes[:count], self._body_bytes[:count],
            self._tails[:count],
        )  # fmt: skip


def _table(bank: FrameBank) -> Bytes:
    """A row per template and kind: header, ICRC, lengths, place of the word's flips."""
    kinds = len(KINDS)
    index = np.arange(len(bank)).repeat(kinds)
    own = bank.headers[index, wire.AT_OPCODE]
    is_send = np.isin(own, KINDS)
    opcode = np.where(is_send, np.tile(np.array(KINDS, np.uint8), len(bank)), own)
    table = np.zeros((len(index), _COLUMNS), np.uint8)
    table[:, :HEADER_COLUMNS], table[:, _ICRC] = bank.patch(index, opcode, 0, 0)
    if table[:, _WORD].any():
        raise ValueError("a template to be stamped has no AETH of its own")
    numbers = table.view(np.int64)
    numbers[:, _HEADER_AT] = bank.header_bytes[index]
    numbers[:, _BODY_AT] = bank.body_bytes[index]
    last = bank.frame_bytes[index] - wire.ICRC_BYTES - 1
    # Data has no AETH: its bytes are zeros, whose flips are 0 wherever they are looked up, also
    # where a frame that ends before clips them to the first one.
    numbers[:, _START_AT] = (last - wire.AT_ACK_REQUEST) * 256
    return table
