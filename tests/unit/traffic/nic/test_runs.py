"""Runs of packets against the same packets one by one: everything that happens is the same."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.medium import RECORD, Marking, Row, drop_randomly
from tests.fakes.nic_rig import PARAMETERS, PAYLOAD, Rig, flow, probe_stream
from traffic.dcqcn_params import HPCC, PAPER
from traffic.nic import inbox
from traffic.nic.arrivals import joined, singles
from traffic.nic.connection import QP_BASE, Connection, Tally
from traffic.nic.engine import PROBE_QP_BASE, NicEngine
from traffic.nic.inbox import Inbox
from traffic.nic.ordering import Packet
from traffic.nic.receiver import Receiver
from traffic.nic.sender import unwrap
from traffic.tasks import Flow
from traffic.wire import CE, ECN_MASK, PSN_MASK, Opcode

_HALF = (PSN_MASK + 1) // 2
_WINDOW_TICKS = 4
Waiting = tuple[int, int, int, int, bool]
"""(due_ns, number, 24-bit PSN, opcode, whether it is marked)"""


@dataclass
class PlainEnd:
    """A receiving end that knows packets only: each waits by itself."""

    window_ns: int
    last_due_ns: int = 0
    waiting: list[Waiting] = field(default_factory=list)
    held: dict[int, Packet] = field(default_factory=dict)
    overtaken: int = 0

    def arrives(self, due_ns: int, number: int, psn: int, opcode: int, marked: bool) -> None:
        """A packet is here; it is not due before those that came before it."""
        self.last_due_ns = max(due_ns, self.last_due_ns)
        heapq.heappush(self.waiting, (self.last_due_ns, number, psn, opcode, marked))

    def soon(self, psn: int, now_ns: int) -> bool:
        """Whether a packet waits and is due within moments; of two alike, the first one counts."""
        dues = [due_ns for due_ns, _, waiting, *_ in self.waiting if waiting == psn]
        return bool(dues) and min(dues) - now_ns <= self.window_ns

    def ready(self, packet: Packet, now_ns: int, expected: int) -> list[Packet]:
        """What to hand over when a packet is due."""
        psn = packet[0]
        ahead = (psn - expected) & PSN_MASK
        if 0 < ahead < _HALF and self.soon(expected, now_ns):
            self.held[psn] = packet
            return []
        if ahead or not self.held:
            return [packet]
        self.overtaken += 1
        out, after = [packet], (psn + 1) & PSN_MASK
        while after in self.held:
            out.append(self.held.pop(after))
            after = (after + 1) & PSN_MASK
        if self.held and not self.soon(after, now_ns):
            out += sorted(self.held.values(), key=lambda one: (one[0] - after) & PSN_MASK)
            self.held.clear()
        return out


class PlainReceiver:
    """The receiver's rules for one packet."""

    def __init__(self, of: Receiver) -> None:
        self.of = of

    def on_packet(self, psn24: int, opcode: int) -> bool:
        """True when it completes a message."""
        one = self.of
        psn = unwrap(psn24, one.expected)
        if psn == one.expected:
            one.expected, one._ack_due = psn + 1, True
            last = opcode in (Opcode.SEND_LAST, Opcode.SEND_ONLY)
            one.completed += last
            return last
        if psn > one.expected:
            one.discarded += 1
            one._nak_due = one._nak_due or one._nak_sent_for != one.expected
        else:
            one.duplicates += 1
            one._ack_due = True
        return False


class PlainInbox(Inbox):
    """An inbox that takes and delivers data packet by packet."""

    def __init__(self, engine: NicEngine) -> None:
        super().__init__(engine.plan.connections, engine.plan.probes)
        window_ns = _WINDOW_TICKS * engine.plan.parameters.tick_ns
        self.connections = engine.plan.connections
        self.ends = [PlainEnd(window_ns) for _ in self.connections]

    def take(self, records: np.ndarray) -> None:
        """One by one."""
        for qp, time_ns, psn, length, opcode, tos, aeth in singles(records):
            number, is_data = (qp - QP_BASE) >> 1, (qp - QP_BASE) & 1
            if is_data and 0 <= number < len(self.connections):
                due_ns = time_ns + self.connections[number].ends.path.hold_ns(length)
                self._number += 1
                marked = tos & ECN_MASK == CE
                self.ends[number].arrives(due_ns, self._number, psn, opcode, marked)
            else:
                self._take_other(qp, time_ns, psn, length, opcode, aeth)

    @property
    def waits(self) -> bool:
        """True when something is not due yet."""
        return bool(self._events or any(end.waiting for end in self.ends))

    def deliver(self, now_ns: int, tally: Tally) -> Iterator[Connection]:
        """Connection by connection, in the order of their first packets' times."""
        heads = [(end.waiting[0][0], n) for n, end in enumerate(self.ends) if end.waiting]
        for due_ns, number in sorted(heads):
            if due_ns <= now_ns:
                self._deliver_to(self.connections[number], now_ns, tally)
                yield self.connections[number]

    def _deliver_to(self, connection: Connection, now: int, tally: Tally) -> None:
        end, receiver = self.ends[connection.number], connection.receiver
        while end.waiting and end.waiting[0][0] <= now:
            due_ns, _, *packet = heapq.heappop(end.waiting)
            tally.last_due_ns = max(tally.last_due_ns, due_ns)
            for psn, opcode, marked in end.ready(
                tuple(packet), due_ns, receiver.expected & PSN_MASK
            ):
                tally.packets += 1
                tally.marked += marked
                if marked:
                    self._mark(connection, psn, due_ns, tally)
                if PlainReceiver(connection.receiver).on_packet(psn, opcode):
                    tally.done.append((due_ns, connection.arriving.popleft()))

    @staticmethod
    def _mark(connection: Connection, psn24: int, now_ns: int, tally: Tally) -> None:
        psn = unwrap(psn24, connection.receiver.expected)
        of = next((message for message in connection.arriving if psn < message.end), None)
        if of is not None and psn >= of.first:
            of.marked += 1
        tally.notify += [connection] * connection.receiver.on_marks((now_ns,))


def overtaken(engine: NicEngine) -> list[int]:
    """Packets put back in order, by connection."""
    if isinstance(engine._inbox, PlainInbox):
        return [end.overtaken for end in engine._inbox.ends]
    return [one.order.overtaken for one in engine.plan.connections]


def disturbed(seed: int, swaps: float, copies: float) -> Callable[[list[Row]], list[Row]]:
    """Swaps neighbours that arrived together, and hands some rows over twice."""
    rng = Random(seed)

    def hand_over(rows: list[Row]) -> list[Row]:
        out: list[Row] = []
        for row in rows:
            out += [row] * (1 + (rng.random() < copies))
        for n in range(len(out) - 1):
            if rng.random() < swaps:
                out[n], out[n + 1] = out[n + 1], out[n]
        return out

    return hand_over


def flows(rng: Random) -> list[Flow]:
    """Messages of all sizes between a few hosts, many of them to one, some after others."""
    made: list[Flow] = []
    for number in range(rng.randint(5, 24)):
        src, dst = rng.sample(["h1", "h2", "h3", "h4", "h5"], 2)
        dst = rng.choice([dst, "h1" if src != "h1" else "h2"])
        size = rng.choice([1, 64, PAYLOAD, PAYLOAD + 1, rng.randint(1, 90 * PAYLOAD)])
        after = tuple(rng.sample(range(number), min(number, rng.randint(0, 1))))
        made.append(flow(number, size, src, dst, after=after, start_ns=rng.randint(0, 40_000)))
    return made


def rig(seed: int) -> Rig:
    """A random load over a network that loses, doubles, marks and reorders, or does not."""
    rng = Random(seed)
    parameters = replace(
        PARAMETERS,
        window_packets=rng.choice([4, 64, None, None]),
        tick_ns=(tick := rng.choice([500, 2_000, 10_000])),
        lookahead_ns=tick * 3 // 2,
        rto_ns=rng.choice([60_000, 200_000]),
        dcqcn=rng.choice([None, PAPER, replace(HPCC, cnp_interval_ns=3_000)]),
    )
    return Rig(
        flows(rng),
        [probe_stream(0, "h2", "h1", 3, 7_000, total=20), probe_stream(1, "h3", "h4", 6, 9_000)],
        parameters=parameters,
        buffer_bytes=rng.choice([None, 60 * 4_200]),
        marking=rng.choice([None, Marking(20_000, 60_000, 0.5)]),
        lose=drop_randomly(rng.choice([0.0, 0.0, 0.01, 0.05]), seed),
        hand_over=disturbed(seed, rng.choice([0.0, 0.0, 0.2]), rng.choice([0.0, 0.0, 0.05])),
    )


def happened(seed: int, plain: bool) -> dict[str, Any]:
    """All that can be seen of a run."""
    one = rig(seed)
    if plain:
        one.engine._inbox = PlainInbox(one.engine)
    assert one.run()
    assert one.settle()
    return {
        "counters": asdict(one.counters),
        "flows": one.seen.flows,
        "probes": one.seen.probes,
        "ticks": one.seen.ticks,
        "frames": [
            (sent.port, sent.dest_qp, sent.psn, sent.opcode, sent.tos, sent.aeth, sent.length)
            for sent in one.medium.sent
        ],
        "overtaken": overtaken(one.engine),
        "receivers": [
            (end.expected, end.completed, end.discarded, end.duplicates)
            for end in (each.receiver for each in one.plan.connections)
        ],
    }


def rows(records: np.ndarray) -> dict[int, list[tuple[int, ...]]]:
    """(PSN, time, length, opcode, ToS, AETH) of each packet of `runs`, by queue pair."""
    by_pair: dict[int, list[tuple[int, ...]]] = {}
    for pair, times, psn, length, opcode, tos, aeth in joined(records):
        assert times == sorted(times)
        for n, time_ns in enumerate(times):
            kind, extra = (opcode, aeth) if n == 0 else (Opcode.SEND_MIDDLE, 0)
            row = psn + n, time_ns, length, kind, tos, extra
            by_pair.setdefault(pair, []).append(row)
    return by_pair


PAIRS = [0x100, 0x101, 0x102, 0x103, 0x10101, PROBE_QP_BASE + 1]
PSNS = [*range(6), PSN_MASK - 1, PSN_MASK]
OPCODES = [Opcode.SEND_FIRST, *[Opcode.SEND_MIDDLE] * 3, Opcode.SEND_LAST, Opcode.SEND_ONLY]


@st.composite
def arrivals(draw: st.DrawFn) -> np.ndarray:
    """Records that often follow each other and now and then do not."""
    rows, now = [], draw(st.integers(-50, 50))
    following = dict.fromkeys(PAIRS, 0)
    for pair in draw(st.lists(st.sampled_from(PAIRS), min_size=1, max_size=60)):
        psn = draw(st.sampled_from([following[pair], following[pair], *PSNS]))
        following[pair] = (psn + 1) & PSN_MASK
        now += draw(st.sampled_from([0, 10, 10, -10]))
        length, tos = draw(st.sampled_from([64, 4_158])), draw(st.sampled_from([2, 2, 3]))
        opcode = draw(st.sampled_from(OPCODES))
        aeth = 0 if opcode == Opcode.SEND_MIDDLE else draw(st.integers(0, 9))
        rows.append((now, psn, pair, aeth, length, opcode, tos, 0, 0, 0, 0, 0))
    return np.array(rows, RECORD)


@given(arrivals())
def test_joined_runs_hold_every_record_once_and_in_order(records: np.ndarray) -> None:
    """Those of each queue pair, as they arrived."""
    expected: dict[int, list[tuple[int, ...]]] = {}
    for pair, time_ns, *keys in singles(records):
        psn, length, opcode, tos, aeth = keys
        expected.setdefault(pair, []).append((psn, time_ns, length, opcode, tos, aeth))
    assert rows(records) == expected


def test_a_stream_of_packets_is_one_run_however_it_is_interleaved() -> None:
    """A message's first and middle packets; its last one stands alone."""
    kinds = [Opcode.SEND_FIRST, *[Opcode.SEND_MIDDLE] * 8, Opcode.SEND_LAST]
    table = [(10 * n, n, pair, 0, 4_158, kind, 2, 0, 0, 0, 0, 0) for n, kind in enumerate(kinds)
             for pair in (0x105, 0x101, 0x103)]  # fmt: skip
    found = [(run[0], run[2], len(run[1])) for run in joined(np.array(table, RECORD))]
    assert found == [(pair, psn, count) for pair in (0x101, 0x103, 0x105)
                     for psn, count in ((0, 9), (9, 1))]  # fmt: skip


@given(st.lists(st.tuples(st.integers(-9, 9), st.integers(1, 9), st.booleans(), st.booleans())))
def test_a_receiver_takes_a_run_as_its_packets(steps: list[tuple[int, int, bool, bool]]) -> None:
    """In order, beyond a gap, again, or again and then in order; with the same answers."""
    together, single = Receiver(), PlainReceiver(Receiver())
    together.expected = single.of.expected = PSN_MASK - 20
    for ahead, count, ends, asks in steps:
        first = together.expected + ahead
        done = together.on_run(first & PSN_MASK, count, ends)
        kinds = [Opcode.SEND_MIDDLE] * (count - 1) + [
            Opcode.SEND_LAST if ends else Opcode.SEND_FIRST
        ]
        each = [single.on_packet((first + n) & PSN_MASK, kind) for n, kind in enumerate(kinds)]
        assert done == any(each)
        if asks:
            assert together.pop_answer() == single.of.pop_answer()
        for name in ("expected", "completed", "discarded", "duplicates"):
            assert getattr(together, name) == getattr(single.of, name), name


@pytest.mark.parametrize("seed", range(60))
def test_a_run_is_what_its_packets_are_one_by_one(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every frame, time, counter and mark, over losses, copies, marks and wrong order.

    Whether packets are joined before they are taken, as many are, or not.
    """
    monkeypatch.setattr(inbox, "_MANY", 1 if seed % 2 else 1_000_000)
    together, single = happened(seed, plain=False), happened(seed, plain=True)
    for name, value in single.items():
        assert together[name] == value, name
