"""The frames of one tick: collected as runs of numbers, stamped in bulk, sent in one go. PURE.

A row is (port, row of the stamper, word of its first packet, number of packets); the packets of a
row have consecutive sequence numbers. Within a port acknowledgements leave first, then everything
in the order in which it was added.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from traffic.nic.connection import Connection
from traffic.nic.medium import Medium
from traffic.nic.pacing import Grant
from traffic.nic.stamping import ASK, FEW, PSN_ONE, Batch, Stamper, row_of
from traffic.template import FrameBank
from traffic.wire import PSN_MASK, Opcode

_ROW = 4
_WITHOUT_RESERVED = ASK | PSN_MASK * PSN_ONE | 0xFFFFFFFF
_FIRST, _MIDDLE, _LAST, _ONLY = (
    Opcode.SEND_FIRST, Opcode.SEND_MIDDLE, Opcode.SEND_LAST, Opcode.SEND_ONLY,
)  # fmt: skip

Column = npt.NDArray[np.int64]


class Outbox:
    """Collects packets and sends them."""

    def __init__(self, bank: FrameBank, medium: Medium) -> None:
        self._stamper, self._medium = Stamper(bank), medium
        self._rows: list[int] = []
        self._acks: list[int] = []
        self._steps = np.arange(0, dtype=np.int64)

    def add(self, port: int, template: int, opcode: int, psn: int, ack_request: int) -> None:
        """One packet of any kind but ACK and NAK."""
        word = (psn & PSN_MASK) * PSN_ONE | (ASK if ack_request else 0)
        self._rows += (port, row_of(template, opcode), word, 1)

    def add_ack(self, connection: Connection, is_nak: bool, psn: int) -> None:
        """An ACK or NAK of a connection's receiving end."""
        word = (psn & PSN_MASK) * PSN_ONE | connection.receiver.aeth(is_nak)
        row = row_of(connection.templates.ack, Opcode.ACKNOWLEDGE)
        self._acks += (connection.ends.dst_port, row, word, 1)

    def answer(self, connection: Connection, now_ns: int) -> tuple[int, int]:
        """What the receiving end has to say now: (how many frames, how many of them NAKs)."""
        answer = connection.receiver.pop_answer()
        if answer is None:
            return 0, 0
        self.add_ack(connection, *answer)
        return 1, int(answer[0])

    def add_cnp(self, connection: Connection) -> None:
        """A congestion notification of a connection's receiving end."""
        self.add(connection.ends.dst_port, connection.templates.cnp, Opcode.CNP, 0, 0)

    def add_burst(self, grant: Grant) -> None:
        """Consecutive data packets of one message."""
        connection, burst = grant
        message, first, count = burst.message, burst.first, burst.count
        port, templates = connection.ends.src_port, connection.templates
        last = message.end - 1
        full = min(count, last - first)
        if full > 0:
            row, word = row_of(templates.full, _MIDDLE), (first & PSN_MASK) * PSN_ONE
            if first == message.first:
                self._rows += (port, row - _MIDDLE + _FIRST, word, 1)
                full, word = full - 1, word + PSN_ONE
            if full:
                self._rows += (port, row, word, full)
        if first + count > last:
            opcode = _ONLY if last == message.first else _LAST
            self.add(port, templates.tails[message.tail_bytes], opcode, last, 1)

    def flush(self) -> int:
        """Sends everything; returns how many packets the kernel did not take."""
        rows = self._acks + self._rows
        if not rows:
            return 0
        self._acks.clear()
        self._rows.clear()
        ports, batch = self._few(rows) if sum(rows[3::_ROW]) <= FEW else self._many(rows)
        headers, header_bytes, body_bytes, icrc = batch
        return len(ports) - self._medium.send(ports, headers, header_bytes, body_bytes, icrc)

    def _few(self, rows: list[int]) -> tuple[Column, Batch]:
        """Ports and frames, by port, made one by one."""
        ports, lines, words = [], [], []
        for at in sorted(range(0, len(rows), _ROW), key=rows.__getitem__):
            port, line, word, count = rows[at : at + _ROW]
            ports += [port] * count
            lines += [line] * count
            words += [(word + n * PSN_ONE) & _WITHOUT_RESERVED for n in range(count)]
        return np.array(ports, np.int64), self._stamper.stamp_few(lines, words)

    def _many(self, rows: list[int]) -> tuple[Column, Batch]:
        """Ports and frames, by port, made in bulk."""
        table = np.array(rows, np.int64).reshape(-1, _ROW)
        table = self._expanded(table.take(table[:, 0].argsort(kind="stable"), 0))
        return table[:, 0], self._stamper.stamp(table[:, 1], table[:, 2])

    def _expanded(self, table: Column) -> Column:
        """A row for each packet, with its own word."""
        counts = table[:, 3]
        ends = counts.cumsum()
        total = int(ends[-1])
        if total == len(table):
            return table
        if total > len(self._steps):
            self._steps = np.arange(2 * total, dtype=np.int64) * PSN_ONE
        table[:, 2] -= (ends - counts) * PSN_ONE
        table = table.repeat(counts, 0)
        table[:, 2] += self._steps[:total]
        table[:, 2] &= _WITHOUT_RESERVED
        return table
