"""The frames of one tick of NICs that spray: each packet has its own UDP source port. PURE.

As `traffic.nic.outbox`, with one column more in its rows: where the numbers of the packets'
entropies begin in a buffer of the tick, or which of the tick's selective acknowledgements it is.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from traffic.nic.connection import Connection
from traffic.nic.medium import Medium
from traffic.nic.pacing import Grant
from traffic.nic.stamping import ASK, PSN_ONE, Stamper, row_of
from traffic.template import FrameBank
from traffic.wire import PSN_MASK, SACK_BYTES, Opcode

_ROW = 5
_NOTHING = -1
_WITHOUT_RESERVED = ASK | PSN_MASK * PSN_ONE | 0xFFFFFFFF
_FIRST, _MIDDLE, _LAST, _ONLY = (
    Opcode.SEND_FIRST, Opcode.SEND_MIDDLE, Opcode.SEND_LAST, Opcode.SEND_ONLY,
)  # fmt: skip

Column = npt.NDArray[np.int64]


class SprayOutbox:
    """Collects packets and sends them.

    Args:
        bank: templates of all frames.
        medium: the network below.
        offsets: what each entropy of the pool changes in a source port.
    """

    def __init__(self, bank: FrameBank, medium: Medium, offsets: Sequence[int]) -> None:
        self._stamper, self._medium = Stamper(bank), medium
        self._offsets = np.array(offsets, np.int64)
        self._rows: list[int] = []
        self._acks: list[int] = []
        self._entropies = bytearray()
        self._behind = bytearray()
        self._steps = np.arange(0, dtype=np.int64)

    def add(self, port: int, template: int, opcode: int, psn: int, ack_request: int) -> None:
        """One packet of any kind but ACK and NAK, over its connection's own path."""
        word = (psn & PSN_MASK) * PSN_ONE | (ASK if ack_request else 0)
        self._rows += (port, row_of(template, opcode), word, 1, _NOTHING)

    def add_cnp(self, connection: Connection) -> None:
        """Transports that spray have no congestion notifications."""
        raise NotImplementedError(connection)

    def answer(self, connection: Connection, now_ns: int) -> tuple[int, int]:
        """What the receiving end has to say now: (how many frames, how many of them NAKs)."""
        frames = connection.receiver.answers(now_ns)
        port, row = connection.ends.dst_port, row_of(connection.templates.ack, Opcode.ACKNOWLEDGE)
        for _, psn, number in frames:
            word = (psn & PSN_MASK) * PSN_ONE | number & 0xFFFFFFFF
            place = _NOTHING - 1 - len(self._behind) // SACK_BYTES
            self._acks += (port, row, word, 1, place)
            self._behind += (number >> 32).to_bytes(SACK_BYTES, "big")
        return len(frames), sum(is_nak for is_nak, _, _ in frames)

    def add_burst(self, grant: Grant) -> None:
        """Consecutive data packets of one message, over as many paths as they have entropies."""
        connection, burst = grant
        message, first, count = burst.message, burst.first, burst.count
        port, templates = connection.ends.src_port, connection.templates
        at, last = len(self._entropies), message.end - 1
        self._entropies += burst.entropies
        full = min(count, last - first)
        word = (first & PSN_MASK) * PSN_ONE | burst.word
        if full > 0:
            row = row_of(templates.full, _MIDDLE)
            if first == message.first:
                self._rows += (port, row - _MIDDLE + _FIRST, word, 1, at)
                full, word, at = full - 1, word + PSN_ONE, at + 1
            if full:
                self._rows += (port, row, word, full, at)
                at += full
        if first + count > last:
            opcode = _ONLY if last == message.first else _LAST
            row = row_of(templates.tails[message.tail_bytes], opcode)
            word = (last & PSN_MASK) * PSN_ONE | burst.word | ASK
            self._rows += (port, row, word, 1, at)

    def flush(self) -> int:
        """Sends everything; returns how many packets the kernel did not take."""
        rows = self._acks + self._rows
        if not rows:
            return 0
        table = np.array(rows, np.int64).reshape(-1, _ROW)
        table = self._expanded(table.take(table[:, 0].argsort(kind="stable"), 0))
        ports, places = table[:, 0], table[:, 4]
        batch = self._stamper.stamp(table[:, 1], table[:, 2])
        if self._entropies:
            self._stamper.spread(self._deltas(places))
        if self._behind:
            behind = np.frombuffer(self._behind, np.uint8).reshape(-1, SACK_BYTES)
            at = (places < _NOTHING).nonzero()[0]
            self._stamper.extend(at, behind[_NOTHING - 1 - places[at]])
        headers, header_bytes, body_bytes, icrc = batch
        refused = len(ports) - self._medium.send(ports, headers, header_bytes, body_bytes, icrc)
        self._acks, self._rows = [], []
        self._entropies, self._behind = bytearray(), bytearray()
        return refused

    def _deltas(self, places: Column) -> Column:
        """What to change in each frame's source port."""
        entropies = np.frombuffer(self._entropies, np.uint8)
        return np.where(places >= 0, self._offsets[entropies.take(places, mode="clip")], 0)

    def _expanded(self, table: Column) -> Column:
        """A row for each packet, with its own word and entropy."""
        counts = table[:, 3]
        ends = counts.cumsum()
        total = int(ends[-1])
        if total == len(table):
            return table
        if total > len(self._steps):
            self._steps = np.arange(2 * total, dtype=np.int64)
        before = ends - counts
        table[:, 2] -= before * PSN_ONE
        more = counts > 1
        table[:, 4] -= before * more
        table = table.repeat(counts, 0)
        steps = self._steps[:total]
        table[:, 2] += steps * PSN_ONE
        table[:, 2] &= _WITHOUT_RESERVED
        table[:, 4] += steps * more.repeat(counts)
        return table
