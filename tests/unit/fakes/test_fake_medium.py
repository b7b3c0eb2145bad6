"""The fake medium itself: what it reads from frames, its queues, its losses, its clock."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.fakes.medium import (
    FakeClock,
    FakeMedium,
    FakeQueue,
    Frame,
    Marking,
    drop_numbers,
    drop_randomly,
)
from tests.fakes.nic_rig import PACKET_NS, PAYLOAD, RATE_BPS, address
from traffic import headers
from traffic.template import FrameBank
from traffic.wire import CE, ECN_MASK, ECT0, Opcode, data_frame_bytes, wire_bytes

FLOW = replace(address("h1", "h2", 26, entropy=5), dest_qp=0xABCDEF)
LENGTH = data_frame_bytes(PAYLOAD)


class Net:
    """Port 1 sends to one switch queue; frames are given as bytes."""

    def __init__(self, queue: FakeQueue | None = None, **keys: object) -> None:
        self.clock = FakeClock()
        self.nic, self.queue = FakeQueue(RATE_BPS), queue or FakeQueue(RATE_BPS)
        self.medium = FakeMedium(self.clock, {1: self.nic}, lambda *_: [self.queue], **keys)  # type: ignore[arg-type]

    def send(self, *frames: bytes) -> int:
        """Sends whole frames now."""
        bank = FrameBank(frames)
        tails = bank.icrc.astype("<u4").view(np.uint8).reshape(-1, 4)
        ports = np.ones(len(frames), np.intp)
        return self.medium.send(ports, bank.headers, bank.header_bytes, bank.body_bytes, tails)

    def arrived(self, until_ns: int) -> list[tuple[int, int]]:
        """(time, sequence number) of everything that arrives until then."""
        self.clock.sleep_until(until_ns)
        rows = self.medium.receive()
        return list(zip(rows["time_ns"].tolist(), rows["psn"].tolist(), strict=True))


def data(psn: int, flow: headers.FlowAddress = FLOW) -> bytes:
    """A full data packet."""
    return headers.data_frame(flow, Opcode.SEND_MIDDLE, psn, PAYLOAD)


def test_a_frame_s_fields_are_read_from_its_bytes() -> None:
    """A NAK and a CNP tell what they were built from, and that they are intact."""
    net = Net(check_icrc=True)
    net.send(headers.nak_frame(FLOW, 77, 9), headers.cnp_frame(FLOW), data(5))
    nak, cnp, full = net.medium.sent
    assert (nak.src_ip, nak.dst_ip, nak.sport) == (FLOW.src_ip, FLOW.dst_ip, FLOW.sport)
    assert (nak.dest_qp, nak.psn, nak.aeth) == (0xABCDEF, 77, 0x60 << 24 | 9)
    assert (nak.opcode, nak.tos, nak.traffic_class) == (Opcode.ACKNOWLEDGE, FLOW.tos, 3)
    assert (cnp.opcode, cnp.becn, cnp.aeth, cnp.is_data) == (Opcode.CNP, 1, 0, False)
    assert (full.psn, full.length, full.is_data, full.ack_request) == (5, LENGTH, True, 0)
    assert all(frame.icrc_ok for frame in (nak, cnp, full))


def test_a_broken_frame_is_seen() -> None:
    """An ICRC that is not that of the bytes is no good."""
    net = Net(check_icrc=True)
    bank = FrameBank([data(5)])
    rows = bank.headers.copy()
    rows[0, 53] ^= 1
    tails = bank.icrc.astype("<u4").view(np.uint8).reshape(-1, 4)
    net.medium.send(np.ones(1, np.intp), rows, bank.header_bytes, bank.body_bytes, tails)
    assert net.medium.sent[0].icrc_ok is False


def test_the_first_frame_leaves_at_once_and_the_next_one_after_it() -> None:
    """Two lines of equal rate in a row let frames through one packet time apart."""
    net = Net()
    net.send(data(0), data(1), data(2))
    assert net.arrived(10_000) == [(int(n * PACKET_NS), n) for n in range(3)]


def test_nothing_arrives_before_its_time() -> None:
    """Time passes only while somebody sleeps."""
    net = Net(FakeQueue(RATE_BPS, delay_ns=500))
    net.send(data(0), data(1))
    assert net.arrived(499) == []
    assert net.arrived(500) == [(500, 0)]
    assert net.arrived(10_000) == [(int(500 + PACKET_NS), 1)]


def test_a_backlog_is_what_has_not_left_the_host() -> None:
    """In wire bytes, by port index."""
    net = Net()
    net.send(data(0), data(1), data(2))
    assert net.medium.backlog().tolist() == [0, 2 * wire_bytes(LENGTH)]
    net.clock.sleep_until(int(PACKET_NS) + 1)
    assert net.medium.backlog().tolist() == [0, wire_bytes(LENGTH)]


def test_control_goes_before_data() -> None:
    """A class 6 frame passes those that wait, but not the one that has left."""
    net = Net()
    net.send(data(0), data(1), headers.ack_frame(replace(FLOW, dscp=48), 9, 0))
    assert [psn for _, psn in net.arrived(10_000)] == [0, 9, 1]


def test_a_full_buffer_drops() -> None:
    """A slow line with room for two frames loses the rest of a burst."""
    queue = FakeQueue(RATE_BPS // 100, buffer_bytes=2 * LENGTH)
    net = Net(queue)
    net.send(*(data(psn) for psn in range(6)))
    assert [psn for _, psn in net.arrived(1_000_000)] == [0, 1, 2]
    assert (queue.dropped, queue.sent, queue.peak_bytes) == (3, 3, 2 * LENGTH)


@pytest.mark.parametrize(
    ("queued", "chance"), [(0, 0), (100, 0), (150, 0.1), (200, 0.2), (201, 1.0)]
)
def test_marking_rises_from_kmin_to_kmax(queued: int, chance: float) -> None:
    """Nothing up to Kmin, Pmax at Kmax, everything above."""
    assert Marking(100, 200, 0.2).chance(queued) == pytest.approx(chance)


def test_marks_are_set_in_the_record() -> None:
    """A frame that meets a long queue arrives with CE; one that cannot be marked does not."""
    net = Net(FakeQueue(RATE_BPS // 100, marking=Marking(LENGTH, LENGTH)))
    net.send(*(data(psn) for psn in range(4)), data(4, replace(FLOW, ect=0)))
    net.clock.sleep_until(1_000_000)
    bits = (net.medium.receive()["tos"] & ECN_MASK).tolist()
    assert bits == [ECT0, ECT0, ECT0, CE, 0]
    assert net.queue.marked == 1


def test_chosen_frames_are_lost() -> None:
    """The second and third of those that the rule counts; the others do not count."""
    net = Net(lose=drop_numbers({2, 3}, among=lambda frame: frame.psn % 2 == 0))
    net.send(*(data(psn) for psn in range(8)))
    assert [psn for _, psn in net.arrived(100_000)] == [0, 1, 3, 5, 6, 7]
    assert [frame.psn for frame in net.medium.lost] == [2, 4]


def test_random_losses_have_their_share_and_repeat() -> None:
    """About one in five, the same ones for the same seed."""
    frame = Frame(1, "", "", 0, 0, 0, 0, 0, 0, 0, 0, 64)
    first, second = drop_randomly(0.2, 3), drop_randomly(0.2, 3)
    lost = [first(frame) for _ in range(5_000)]
    assert lost == [second(frame) for _ in range(5_000)]
    assert sum(lost) == pytest.approx(1_000, abs=100)


def test_a_full_socket_buffer_ends_a_batch() -> None:
    """What follows the refused frame is not taken either; the next batch is."""
    net = Net(refuse=drop_numbers({2}))
    assert net.send(data(0), data(1), data(2)) == 1
    assert net.send(data(3)) == 1
    assert [frame.psn for frame in net.medium.sent] == [0, 3]


def test_frames_must_be_grouped_by_port() -> None:
    """The contract of a medium is checked."""
    net = Net()
    bank = FrameBank([data(n) for n in range(3)])
    tails = bank.icrc.astype("<u4").view(np.uint8).reshape(-1, 4)
    with pytest.raises(AssertionError, match="grouped"):
        net.medium.send(
            np.array([1, 2, 1]), bank.headers, bank.header_bytes, bank.body_bytes, tails
        )


def test_a_clock_jumps_and_never_back() -> None:
    """Sleeping until a time that has passed takes none; a late wake-up is late by what is asked."""
    clock = FakeClock(100, late_ns=lambda asked: 7 if asked == 500 else 0)
    clock.sleep_until(50)
    assert clock.now_ns() == 100
    clock.sleep_until(500)
    assert clock.now_ns() == 507
