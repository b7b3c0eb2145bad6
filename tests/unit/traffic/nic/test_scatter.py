"""Packets that arrive in any order, sorted into runs: what each receiving end is told."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pytest

from tests.fakes.medium import RECORD
from tests.fakes.nic_rig import FRAME, PARAMETERS, PATH, PAYLOAD, endpoints, flow, probe_stream
from traffic import sack
from traffic.nic.connection import Connection, Tally
from traffic.nic.plan import PROBE_QP_BASE
from traffic.nic.scatter import ScatterInbox
from traffic.nic.transports.uet_receiver import UetReceiver
from traffic.wire import CE, ECT0, MIN_FRAME_BYTES, SACK_FRAME_BYTES, Opcode, data_frame_bytes

UET = replace(PARAMETERS, transport="uet")
HOLD_NS = PATH.hold_ns(FRAME)
TAIL = 500


def connections(count: int = 2) -> list[Connection]:
    """Some, each with a message of ten packets and one of four."""
    made = [Connection(n, endpoints("h1", f"h{n + 2}"), UET) for n in range(count)]
    for one in made:
        one.enqueue(flow(2 * one.number, 9 * PAYLOAD + TAIL))
        one.enqueue(flow(2 * one.number + 1, 3 * PAYLOAD + TAIL))
    return made


def record(one: Connection, psn: int, time_ns: int = 0, marked: bool = False, word: int = 0,
           trimmed: bool = False) -> tuple[int, ...]:  # fmt: skip
    """A data packet of one of those messages."""
    ends = psn in (9, 13)
    opcode = Opcode.SEND_FIRST if psn in (0, 10) else Opcode.SEND_MIDDLE
    opcode = Opcode.SEND_LAST if ends else opcode
    length = data_frame_bytes(TAIL) if ends else FRAME
    return (time_ns, psn, one.receiver_qp, word, 64 if trimmed else length, opcode,
            CE if marked else ECT0, 0, trimmed, 0, 0, 0)  # fmt: skip


def delivered(box: ScatterInbox, now_ns: int) -> tuple[list[int], Tally]:
    """(numbers of the connections that got something, what it amounts to)."""
    tally = Tally()
    return [one.number for one in box.deliver(now_ns, tally)], tally


def test_a_message_is_complete_when_all_its_packets_are_there() -> None:
    """In whatever order; at the time of the last one to be due."""
    (one,) = connections(1)
    box = ScatterInbox([one])
    order = [5, 0, 12, 9, 7, 3, 13, 1, 2, 11, 8, 6, 4]
    box.take(np.array([record(one, psn, 10 * n) for n, psn in enumerate(order)], RECORD))
    numbers, tally = delivered(box, HOLD_NS + 1_000)
    assert numbers == [0]
    assert (tally.packets, tally.marked) == (13, 0)
    assert [(due, message.flow_id) for due, message in tally.done] == [(HOLD_NS + 120, 0)]
    box.take(np.array([record(one, 10, 500)], RECORD))
    _, tally = delivered(box, HOLD_NS + 1_000)
    assert [(due, message.flow_id) for due, message in tally.done] == [(HOLD_NS + 500, 1)]
    assert not one.arriving
    assert not box.waits


def test_a_later_message_may_be_complete_first() -> None:
    """It does not wait for the one before it."""
    (one,) = connections(1)
    box = ScatterInbox([one])
    box.take(np.array([record(one, psn, psn) for psn in range(1, 14)], RECORD))
    _, tally = delivered(box, HOLD_NS + 1_000)
    assert [message.flow_id for _, message in tally.done] == [1]
    box.take(np.array([record(one, 0, 900)], RECORD))
    _, tally = delivered(box, HOLD_NS + 1_000)
    assert [message.flow_id for _, message in tally.done] == [0]


def test_packets_are_handed_over_when_they_are_due() -> None:
    """Each by its own length's time; a short one may be due before a long one that came earlier."""
    (one,) = connections(1)
    box = ScatterInbox([one])
    box.take(np.array([record(one, 8, 0), record(one, 9, 1)], RECORD))
    short_ns = PATH.hold_ns(data_frame_bytes(TAIL))
    assert delivered(box, short_ns)[1].packets == 0
    assert delivered(box, short_ns + 1)[1].packets == 1
    assert box.waits
    assert delivered(box, HOLD_NS - 1)[1].packets == 0
    assert delivered(box, HOLD_NS)[1].packets == 1
    assert not box.waits


def test_each_end_learns_which_packet_was_last() -> None:
    """By time, not by number."""
    made = connections(2)
    box = ScatterInbox(made)
    rows = [record(made[n], psn, time) for n, psn, time in ((0, 5, 30), (1, 2, 7), (0, 3, 40))]
    box.take(np.array(rows, RECORD))
    assert delivered(box, HOLD_NS + 100)[0] == [0, 1]
    newest = [(one.receiver._newest, one.receiver._newest_ns) for one in made]
    assert newest == [(3, HOLD_NS + 40), (2, HOLD_NS + 7)]


def test_marks_count_for_their_message_and_are_told() -> None:
    """Those of messages long done count for none."""
    (one,) = connections(1)
    box = ScatterInbox([one])
    box.take(np.array([record(one, n, marked=n in (2, 3, 7, 11)) for n in range(14)], RECORD))
    messages = list(one.arriving)
    _, tally = delivered(box, HOLD_NS)
    assert tally.marked == 4
    assert [message.marked for message in messages] == [3, 1]
    assert one.receiver._marked == [(2, 2), (7, 1), (11, 1)]
    box.take(np.array([record(one, 2, marked=True)], RECORD))
    assert delivered(box, HOLD_NS)[1].marked == 1
    assert messages[0].marked == 3
    assert one.receiver.duplicates == 1


def test_what_packets_ask_for_reaches_the_receiving_end() -> None:
    """The most that any of them wants; 0 is nothing."""
    made = connections(2)
    box = ScatterInbox(made)
    rows = [record(made[0], psn, word=word) for psn, word in ((4, 30), (5, 20), (6, 25))]
    box.take(np.array([*rows, record(made[1], 0)], RECORD))
    delivered(box, HOLD_NS)
    assert [one.receiver.wanted for one in made] == [30, 0]


def test_other_frames_are_events() -> None:
    """Acknowledgements with all that they say, cut packets, probes, and strangers."""
    (one,) = connections(1)
    stream = probe_stream()
    box = ScatterInbox([one], [stream])
    number = sack.pack(sack.Answer(-3, 5, -7, 1 << 63, 9, 0, 77))
    behind = number >> 32
    bitmaps = behind >> 128, behind >> 64 & sack.MASK, behind & sack.MASK
    answer = (5, 6, one.sender_qp, number & 0xFFFFFFFF, SACK_FRAME_BYTES, 0x11, 192, 0, 0, *bitmaps)
    probe = (6, 1, PROBE_QP_BASE, 0, MIN_FRAME_BYTES, Opcode.SEND_ONLY, 0, 0, 0, 0, 0, 0)
    stranger = (7, 1, 0x7FFF, 0, MIN_FRAME_BYTES, Opcode.SEND_ONLY, 0, 0, 0, 0, 0, 0)
    box.take(np.array([answer, probe, stranger, record(one, 4, trimmed=True)], RECORD))
    events = list(box.events(1_000_000))
    targets = {event[3] is one: event for event in events}
    assert [event[3] for event in events].count(None) == 1
    assert [event[3] for event in events].count(stream) == 1
    assert targets[True][1:] != ()
    (ack,) = [event for event in events if event[6] == 0x11]
    assert ack[3:6] == (one, 6, number)
    (cut,) = [event for event in events if event[6] == -1]
    assert cut[1:2] + cut[3:5] == (one.receiver_qp, one, 4)


@pytest.mark.parametrize("seed", range(20))
def test_many_packets_of_many_connections_are_what_they_are_one_by_one(seed: int) -> None:
    """Copies, marks and wrong order; together or alone, at once or tick by tick."""
    rng = Random(seed)
    rows = [(rng.randrange(3), rng.randrange(14), rng.random() < 0.3) for _ in range(60)]
    together, alone = connections(3), connections(3)
    box, single = ScatterInbox(together), ScatterInbox(alone)
    done = {id(box): [], id(single): []}  # type: ignore[var-annotated]
    for at in range(0, 60, 20):
        part = list(enumerate(rows[at : at + 20], at))
        box.take(np.array([record(together[n], p, t, m) for t, (n, p, m) in part], RECORD))
        for t, (n, p, m) in part:
            single.take(np.array([record(alone[n], p, t, m)], RECORD))
            done[id(single)] += delivered(single, HOLD_NS + 60)[1].done
        done[id(box)] += delivered(box, HOLD_NS + 60)[1].done
    for one, other in zip(together, alone, strict=True):
        assert isinstance(one.receiver, UetReceiver)
        states = [(r.expected, r._have, r.duplicates) for r in (one.receiver, other.receiver)]
        assert states[0] == states[1]
        marks = [[message.marked for message in each.arriving] for each in (one, other)]
        assert len(marks[0]) == len(marks[1])
    finished = [sorted((due, m.flow_id) for due, m in rows) for rows in done.values()]
    assert finished[0] == finished[1]
