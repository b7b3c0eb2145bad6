"""A connection: its numbers, its delays, what it counts for which message."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.fakes.nic_rig import FRAME, PACKET_NS, PARAMETERS, PATH, PAYLOAD, endpoints, flow
from traffic.dcqcn_params import PAPER
from traffic.nic.connection import Connection, Path
from traffic.wire import ACK_FRAME_BYTES, Opcode, data_frame_bytes, wire_bytes

MIDDLE, LAST = Opcode.SEND_MIDDLE, Opcode.SEND_LAST
WITH_CONTROL = replace(PARAMETERS, dcqcn=PAPER)


def connection(number: int = 0, path: Path = PATH, **parameters: object) -> Connection:
    """A connection from h1 to h2."""
    return Connection(number, endpoints(path=path), replace(PARAMETERS, **parameters))


def test_queue_pairs_tell_connection_and_direction() -> None:
    """No two connections or directions share a number."""
    pairs = [
        pair for n in range(3) for pair in (connection(n).sender_qp, connection(n).receiver_qp)
    ]
    assert pairs == sorted(set(pairs))
    assert pairs == list(range(pairs[0], pairs[0] + 6))


def test_a_hold_is_affine_in_the_wire_bytes() -> None:
    """Fixed part plus time per byte of line time, preamble and gap included; never negative."""
    path = Path(1_000.5, 0.16)
    assert path.hold_ns(FRAME) == round(1_000.5 + 0.16 * wire_bytes(FRAME))
    assert path.hold_ns(20) == path.hold_ns(60)
    assert Path(-5_000.0, 0.1).hold_ns(ACK_FRAME_BYTES) == 0


def data_due_ns(one: Connection, arrived_ns: int, length: int) -> int:
    """When a data frame is due that has just arrived."""
    one.lane.add(0, arrived_ns, length, Opcode.SEND_ONLY, 2)
    return one.lane.runs[-1].due_ns(0)


def test_frames_arrive_after_their_hold() -> None:
    """Each frame waits for its own length's time, each direction by itself."""
    one = connection()
    assert data_due_ns(one, 500, FRAME) == 500 + PATH.hold_ns(FRAME)
    assert one.back.due_ns(500, ACK_FRAME_BYTES) == 500 + PATH.hold_ns(ACK_FRAME_BYTES)


def test_the_way_back_has_a_delay_of_its_own() -> None:
    """It ends with the sender's link, which may be slower than the receiver's."""
    ends = replace(endpoints(path=Path(100.0, 0.0)), back=Path(300.0, 0.0))
    one = Connection(0, ends, PARAMETERS)
    assert (data_due_ns(one, 0, FRAME), one.back.due_ns(0, FRAME)) == (100, 300)


def test_a_short_frame_does_not_overtake_a_long_one() -> None:
    """It would be held for less, but a link keeps the order; the other direction is free."""
    one = connection()
    long_one = data_due_ns(one, 1_000, FRAME)
    assert data_due_ns(one, 1_001, 64) == long_one
    assert one.back.due_ns(1_001, 64) < long_one
    assert data_due_ns(one, 1_001 + PATH.hold_ns(FRAME), 64) > long_one


def test_line_time_of_a_burst_counts_a_short_last_packet_as_short() -> None:
    """A rest of one byte takes a minimal frame, not a full one."""
    one = connection()
    one.enqueue(flow(1, 2 * PAYLOAD + 1))
    assert one.line_gap_ns == pytest.approx(PACKET_NS)
    assert one.line_bytes(one.sender.take(2, 0)) == 2 * wire_bytes(FRAME)
    assert one.line_bytes(one.sender.take(1, 0)) == wire_bytes(data_frame_bytes(1))


def received(one: Connection, psn: int, opcode: Opcode = MIDDLE, ce: bool = False) -> int | None:
    """Delivers a packet at time 0; the id of the flow that it completed."""
    done, _ = one.on_data(psn, opcode, ce, 0)
    return done[0].flow_id if done else None


def test_messages_complete_in_the_order_in_which_they_were_queued() -> None:
    """Each last packet completes the oldest message that is under way."""
    one = connection()
    one.enqueue(flow(5, 2 * PAYLOAD))
    one.enqueue(flow(6, PAYLOAD))
    assert [received(one, 0), received(one, 1, LAST), received(one, 2, Opcode.SEND_ONLY)] == (
        [None, 5, 6]
    )


def test_marks_count_for_the_message_that_was_marked() -> None:
    """Also when the packet comes out of order or again; a message that is done is not touched."""
    one = connection()
    for number in range(3):
        one.enqueue(flow(number, 2 * PAYLOAD))
    done, current, later = one.arriving
    received(one, 0, ce=True)
    received(one, 1, LAST, ce=True)
    received(one, 2, ce=True)
    received(one, 5, LAST, ce=True)  # after a gap
    received(one, 2, ce=True)  # again
    received(one, 1, LAST, ce=True)  # again, of the message that is done
    received(one, 3, LAST)
    assert (done.marked, current.marked, later.marked) == (2, 2, 1)


def test_a_mark_is_notified_at_most_once_per_interval() -> None:
    """The notification point of DCQCN: no CNP without a mark, then one per 50 us."""
    one = connection(dcqcn=PAPER)
    one.enqueue(flow(1, 100 * PAYLOAD))
    step = PAPER.cnp_interval_ns
    marks = [(0, False), (1, True), (2, True), (step, True), (step + 1, True), (2 * step, False)]
    notified = [one.on_data(n, MIDDLE, ce, at)[1] for n, (at, ce) in enumerate(marks)]
    assert notified == [False, True, False, False, True, False]


def test_without_rate_control_marks_are_not_notified() -> None:
    """Nobody would react to a CNP."""
    one = connection()
    one.enqueue(flow(1, PAYLOAD))
    assert not one.on_data(0, MIDDLE, True, 0)[1]


def test_a_connection_is_idle_when_everything_is_acknowledged() -> None:
    """Neither before nor while its packets are under way."""
    one = connection()
    assert one.idle
    one.enqueue(flow(1, PAYLOAD))
    assert not one.idle
    one.sender.take(1, 0)
    assert not one.idle
    one.sender.on_ack(0, 10)
    assert one.idle


@pytest.mark.parametrize("overtaking", [True, False])
def test_a_missing_packet_is_lost_where_nothing_overtakes(overtaking: bool) -> None:
    """Packet 1 is due before packet 0, which waits as well: swapped on the way, or sent again."""
    one = connection(overtaking=overtaking)
    one.lane.add(0, 10_000, FRAME, MIDDLE, 0)
    delivered = one.order.due((1, MIDDLE, False), one.lane.next_ns - 1, 0)
    assert delivered == ([] if overtaking else [(1, MIDDLE, False)])
