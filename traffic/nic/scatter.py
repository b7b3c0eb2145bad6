"""What has arrived at NICs whose connections spray their packets over many paths. PURE.

The order of arrival means nothing there. So all packets that are due are sorted by connection and
sequence number, which makes runs of them again, whatever paths they took; the work per packet is
NumPy's, what is left is done once per run. Acknowledgements say more than an AETH holds; with what
stands behind it they are one number (`traffic.sack`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from traffic.nic.connection import QP_BASE, Connection, Tally
from traffic.nic.inbox import Inbox
from traffic.nic.medium import Records
from traffic.nic.probes import ProbeStream
from traffic.nic.sender import Message
from traffic.nic.transports.uet_receiver import UetReceiver
from traffic.wire import (
    CE,
    ECN_MASK,
    FCS_BYTES,
    MIN_FRAME_BYTES,
    PREAMBLE_AND_GAP_BYTES,
    PSN_MASK,
    SACK_FRAME_BYTES,
    Opcode,
)

_PSN_BITS = 24
_MARKED, _CONTINUES = 1, 2
_FIELDS = ("dest_qp", "time_ns", "psn", "length", "opcode", "aeth")
_SACK_FIELDS = ("sack_word", "sack_received", "sack_marked")

_ZERO = np.zeros(1, np.intp)

Numbers = npt.NDArray[np.int64]


class Packets(NamedTuple):
    """Data packets, one entry of each array for each.

    Attributes:
        due_ns: when it is to be handed over.
        key: number of its connection and, in the low 24 bits, its sequence number.
        flags: whether it is marked, and whether it continues its predecessor's message.
        word: the first four bytes of its payload.
    """

    due_ns: Numbers
    key: Numbers
    flags: Numbers
    word: Numbers

    def chosen(self, which: npt.NDArray[Any]) -> Packets:
        """Some of them, by a mask or by their places."""
        return Packets(*(column[which] for column in self))


class ScatterInbox(Inbox):
    """Takes records and gives back what is due.

    Args:
        connections: all of the run.
        probes: all streams of the run, by number.
    """

    def __init__(
        self, connections: Sequence[Connection], probes: Sequence[ProbeStream] = ()
    ) -> None:
        super().__init__(connections, probes)
        self._by_number = list(connections)
        self._receivers: list[UetReceiver] = [one.receiver for one in connections]
        paths = [one.ends.path for one in connections]
        self._fixed_ns = np.array([path.fixed_ns for path in paths])
        self._ns_per_byte = np.array([path.ns_per_byte for path in paths])
        self._held: list[Packets] = []

    @property
    def waits(self) -> bool:
        """True when something is not due yet."""
        return bool(self._held or self._events)

    def take(self, records: Records) -> None:
        """Frames that arrived, oldest first."""
        cut = records["trimmed"] != 0
        if cut.any():
            self._take_cut(records[cut])
            records = records[~cut]
        numbers = records["dest_qp"].astype(np.int64) - QP_BASE
        is_data = (numbers & 1 == 1) & (numbers > 0) & (numbers >> 1 < len(self._by_number))
        if is_data.any():
            self._held.append(self._packets(records[is_data], numbers[is_data] >> 1))
        if not is_data.all():
            self._take_rest(records[~is_data])

    def _packets(self, records: Records, numbers: Numbers) -> Packets:
        length = np.maximum(records["length"], MIN_FRAME_BYTES).astype(np.int64)
        on_wire = length + (FCS_BYTES + PREAMBLE_AND_GAP_BYTES)
        hold_ns = np.rint(self._fixed_ns[numbers] + self._ns_per_byte[numbers] * on_wire)
        due_ns = records["time_ns"].astype(np.int64) + np.maximum(hold_ns, 0).astype(np.int64)
        opcode = records["opcode"]
        continues = (opcode == Opcode.SEND_MIDDLE) | (opcode == Opcode.SEND_LAST)
        marked = records["tos"] & ECN_MASK == CE
        flags = marked.astype(np.int64) * _MARKED + continues * _CONTINUES
        key = numbers << _PSN_BITS | records["psn"]
        return Packets(due_ns, key, flags, records["aeth"].astype(np.int64))

    def _take_rest(self, records: Records) -> None:
        """Acknowledgements, probes, strangers."""
        columns = [records[name].tolist() for name in (*_FIELDS, *_SACK_FIELDS)]
        for qp, time_ns, psn, length, opcode, aeth, *behind in zip(*columns, strict=True):
            number = aeth
            if opcode == Opcode.ACKNOWLEDGE and length == SACK_FRAME_BYTES:
                word, received, marked = behind
                number |= ((word << 64 | received) << 64 | marked) << 32
            self._take_other(qp, time_ns, psn, length, opcode, number)

    def deliver(self, now_ns: int, tally: Tally) -> Iterator[Connection]:
        """Hands over the data that is due; yields each connection that got some."""
        if not self._held:
            return
        held = self._held
        packets = (
            held[0] if len(held) == 1 else Packets(*map(np.concatenate, zip(*held, strict=True)))
        )
        due = packets.due_ns <= now_ns
        if due.all():
            held.clear()
        else:
            held[:] = [packets.chosen(~due)]
            packets = packets.chosen(due)
        if len(packets.key):
            yield from self._hand_over(packets.chosen(packets.key.argsort(kind="stable")), tally)

    def _hand_over(self, packets: Packets, tally: Tally) -> Iterator[Connection]:
        """Packets in the order of connections and numbers."""
        key, due_ns = packets.key, packets.due_ns
        tally.packets += len(key)
        tally.last_due_ns = max(tally.last_due_ns, int(due_ns.max()))
        marked = packets.flags & _MARKED != 0
        if marked.any():
            self._mark(key[marked], tally)
        begins = _begins(key[1:] - key[:-1] == 1, packets.flags[1:] & _CONTINUES != 0)
        last_ns = np.maximum.reduceat(due_ns, begins).tolist()
        for begin, first, count, run_ns in zip(
            begins.tolist(), key[begins].tolist(), _counts(begins, key), last_ns, strict=True
        ):
            new, message = self._run(first >> _PSN_BITS, first & PSN_MASK, count)
            if message is None:
                continue
            arrived, at_ns = new.bit_count(), run_ns
            if arrived < count:  # what had been there before does not count
                dues = due_ns[begin : begin + count].tolist()
                at_ns = max(due for n, due in enumerate(dues) if new >> n & 1)
            self._arrived(first >> _PSN_BITS, message, arrived, at_ns, tally)
        yield from self._note_newest(packets)

    def _run(self, number: int, psn24: int, count: int) -> tuple[int, Message | None]:
        """Packets of one message that follow each other: (which are new, the message if any is)."""
        first, new = self._receivers[number].on_packets(psn24, count)
        if not new:
            return 0, None
        for message in self._by_number[number].arriving:
            if first < message.end:
                return new, message
        raise AssertionError((number, first))

    def _arrived(
        self, number: int, message: Message, packets: int, last_ns: int, tally: Tally
    ) -> None:
        """So many packets of a message, the last of them due at this time."""
        message.arrived += packets
        if last_ns > message.last_ns:
            message.last_ns = last_ns
        if message.arrived == message.end - message.first:
            self._by_number[number].arriving.remove(message)
            tally.done.append((message.last_ns, message))

    def _mark(self, key: Numbers, tally: Tally) -> None:
        """These packets carry CE. Those of messages long done do not count for them."""
        tally.marked += len(key)
        begins = _begins(key[1:] - key[:-1] == 1)
        for first, count in zip(key[begins].tolist(), _counts(begins, key), strict=True):
            number = first >> _PSN_BITS
            psn = self._receivers[number].on_marks(first & PSN_MASK, count)
            for message in self._by_number[number].arriving:
                if psn < message.end:
                    message.marked += count if psn >= message.first else 0
                    break

    def _note_newest(self, packets: Packets) -> Iterator[Connection]:
        """Tells each receiving end which of its packets was due last, and what they ask for."""
        numbers, base_ns = packets.key >> _PSN_BITS, int(packets.due_ns.min())
        begins = _begins(numbers[1:] == numbers[:-1])
        at = packets.due_ns - base_ns << _PSN_BITS | packets.key & PSN_MASK
        latest = np.maximum.reduceat(at, begins).tolist()
        wanted = np.maximum.reduceat(packets.word, begins).tolist()
        for number, value, word in zip(numbers[begins].tolist(), latest, wanted, strict=True):
            receiver = self._receivers[number]
            receiver.on_newest(value & PSN_MASK, base_ns + (value >> _PSN_BITS))
            if word:
                receiver.on_wanted(word)
            yield self._by_number[number]


def _begins(*joins: npt.NDArray[np.bool_]) -> npt.NDArray[np.intp]:
    """Where runs begin; all of `joins` say for each entry but the first that it goes on."""
    goes_on = joins[0] if len(joins) == 1 else joins[0] & joins[1]
    return np.concatenate((_ZERO, (~goes_on).nonzero()[0] + 1))


def _counts(begins: npt.NDArray[np.intp], key: Numbers) -> list[int]:
    """Lengths of runs."""
    starts = begins.tolist()
    return [end - start for start, end in zip(starts, [*starts[1:], len(key)], strict=True)]
