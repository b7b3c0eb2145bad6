"""The frames of one tick: collected as plain numbers, patched in bulk, sent in one go."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from traffic.nic.connection import Connection
from traffic.nic.medium import Medium
from traffic.nic.pacing import Grant
from traffic.template import FrameBank
from traffic.wire import SYNDROME_ACK, SYNDROME_NAK_SEQUENCE, Opcode


class Outbox:
    """Collects packets and sends them."""

    def __init__(self, bank: FrameBank, medium: Medium) -> None:
        self._bank, self._medium = bank, medium
        self._rows: list[tuple[int, int, int, int, int]] = []
        self._acks: list[tuple[int, int, int, int, int]] = []

    def add(self, port: int, template: int, opcode: int, psn: int, ack_request: int) -> None:
        """One packet of any kind but ACK and NAK."""
        self._rows.append((port, template, opcode, psn, ack_request))

    def add_ack(self, connection: Connection, is_nak: bool, psn: int) -> None:
        """An ACK or NAK of a connection's receiving end."""
        syndrome = SYNDROME_NAK_SEQUENCE if is_nak else SYNDROME_ACK
        template = connection.templates.ack
        completed = connection.receiver.completed
        self._acks.append((connection.ends.dst_port, template, psn, syndrome, completed))

    def add_cnp(self, connection: Connection) -> None:
        """A congestion notification of a connection's receiving end."""
        self.add(connection.ends.dst_port, connection.templates.cnp, Opcode.CNP, 0, 0)

    def add_burst(self, grant: Grant) -> None:
        """Consecutive data packets of one message."""
        connection, burst = grant.connection, grant.burst
        port, templates = connection.ends.src_port, connection.templates
        message = burst.message
        last = message.end - 1
        for psn in range(burst.first, burst.first + burst.count):
            if psn == last:
                opcode = Opcode.SEND_ONLY if psn == message.first else Opcode.SEND_LAST
                self.add(port, templates.tails[message.tail_bytes], opcode, psn, 1)
            else:
                opcode = Opcode.SEND_FIRST if psn == message.first else Opcode.SEND_MIDDLE
                self.add(port, templates.full, opcode, psn, 0)

    def flush(self) -> int:
        """Sends everything; returns how many packets the kernel did not take."""
        refused = 0
        if self._acks:
            ports, index, psn, syndrome, msn = _columns(self._acks)
            headers, icrc = self._bank.patch(
                index, Opcode.ACKNOWLEDGE, 0, psn, syndrome=syndrome, msn=msn
            )
            refused += self._send(ports, index, headers, icrc)
            self._acks.clear()
        if self._rows:
            ports, index, opcode, psn, ack_request = _columns(self._rows)
            headers, icrc = self._bank.patch(index, opcode, ack_request, psn)
            refused += self._send(ports, index, headers, icrc)
            self._rows.clear()
        return refused

    def _send(
        self,
        ports: npt.NDArray[np.int64],
        index: npt.NDArray[np.int64],
        headers: npt.NDArray[np.uint8],
        icrc: npt.NDArray[np.uint8],
    ) -> int:
        bank = self._bank
        taken = self._medium.send(
            ports, headers, bank.header_bytes[index], bank.body_bytes[index], icrc
        )
        return len(ports) - taken


def _columns(rows: list[tuple[int, int, int, int, int]]) -> npt.NDArray[np.int64]:
    """The rows sorted by port, as columns (the order within a port stays)."""
    table = np.array(rows, np.int64)
    return np.ascontiguousarray(table[np.argsort(table[:, 0], kind="stable")].T)
