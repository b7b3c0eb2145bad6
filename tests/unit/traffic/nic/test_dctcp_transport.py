"""DCTCP on the NIC engine: what marks do to its window, and what acknowledgements say."""

from __future__ import annotations

from dataclasses import replace
from statistics import fmean
from typing import Any

import pytest

from tests.fakes.medium import Marking, drop_numbers, drop_randomly
from tests.fakes.nic_rig import FRAME, PACKET_NS, PARAMETERS, PATH, PAYLOAD, RATE_BPS, Rig, flow
from traffic.dctcp import DctcpWindow
from traffic.dctcp_params import HPCC, LINUX, RFC8257, DctcpParams
from traffic.nic import transports
from traffic.nic.parameters import NicParameters
from traffic.nic.transports.dctcp import DctcpReceiver, DctcpSender
from traffic.wire import PSN_MASK, SYNDROME_NAK_SEQUENCE, Opcode

ROUND_TRIP_NS = 2 * PATH.hold_ns(FRAME)
BDP = ROUND_TRIP_NS / PACKET_NS
DCTCP = replace(
    PARAMETERS,
    transport="dctcp",
    window_packets=None,
    round_trip_ns=ROUND_TRIP_NS,
    rto_ns=2_000_000,
)


def ends(parameters: NicParameters = DCTCP) -> tuple[DctcpSender, DctcpReceiver]:
    """Both ends of a connection."""
    sender, receiver = transports.build(RATE_BPS, parameters)
    assert isinstance(sender, DctcpSender)
    assert isinstance(receiver, DctcpReceiver)
    return sender, receiver


def step(packets: int) -> Marking:
    """Marks what finds more than so many packets."""
    return Marking(packets * FRAME, packets * FRAME)


def incast(
    senders: int, packets: int, k: int, params: DctcpParams = RFC8257, **rig: Any
) -> tuple[Rig, list[float]]:
    """Some hosts send to one; the rig and the switch's queue at each tick, packets."""
    tasks = [flow(n, packets * PAYLOAD, src=f"h{n + 2}", dst="h1") for n in range(senders)]
    one = Rig(tasks, parameters=replace(DCTCP, dctcp=params), marking=step(k), **rig)
    lengths: list[float] = []
    one.seen.tick = lambda _now: lengths.append(one.switch[1].bytes / FRAME)  # type: ignore[method-assign]
    assert one.run()
    assert one.settle()
    return one, lengths


def test_the_first_window_is_that_of_its_parameters() -> None:
    """Ten packets, or a bandwidth-delay product; a limit of the user's counts, too."""
    assert ends()[0]._window == 10
    assert ends(replace(DCTCP, dctcp=HPCC))[0]._window == 28
    assert ends(replace(DCTCP, window_packets=4))[0]._window == 4


def test_an_acknowledgement_carries_the_number_of_marks() -> None:
    """A running total of the packets taken with CE, modulo 2**24, in acknowledgements and NAKs."""
    _, receiver = ends()
    receiver.on_run(0, 4, ends_message=False)
    assert receiver.aeth(is_nak=False) == 0
    receiver.on_marks([1, 2, 3])
    receiver.on_run(4, 3, ends_message=False)
    receiver.marks += PSN_MASK - 1
    assert receiver.aeth(is_nak=False) == 1
    assert receiver.aeth(is_nak=True) == SYNDROME_NAK_SEQUENCE << 24 | 1


def test_marks_of_packets_that_are_thrown_away_do_not_count() -> None:
    """Only those that an acknowledgement stands for: not after a gap, not had before."""
    _, receiver = ends()
    receiver.on_marks([1, 2])
    receiver.on_run(5, 2, ends_message=False)
    assert receiver.marks == 0
    receiver.on_run(0, 3, ends_message=False)
    receiver.on_marks([3, 4, 5, 6])
    receiver.on_run(1, 4, ends_message=False)
    assert receiver.marks == 2


def test_a_lost_acknowledgement_takes_no_mark_with_it() -> None:
    """The next one has them all."""
    seen: list[tuple[int, ...]] = []

    class Noting(DctcpWindow):
        def on_ack(self, *args: int) -> None:
            seen.append(args)

    sender = DctcpSender(PAYLOAD, None, 1_000, Noting(RFC8257, 10))
    sender.enqueue(0, 100 * PAYLOAD)
    sender.take(10, 0)
    sender.on_ack(1, 1, aeth=2)
    sender.on_ack(6, 2, aeth=3)
    sender.on_ack(6, 3, aeth=3)
    assert seen == [(2, 10, 2, 2), (7, 10, 5, 1)]


def test_every_mark_of_the_switch_reaches_the_sender() -> None:
    """Without losses the totals are equal, and so is what the flows' rows say."""
    rig, _ = incast(3, 400, 10)
    marks = sum(one.receiver.marks for one in rig.plan.connections)
    assert marks == rig.switch[1].marked > 0
    assert sum(row.message.marked for row in rig.seen.flows) == marks
    assert sum(one.sender._marks for one in rig.plan.connections) == marks


@pytest.mark.parametrize("params", [RFC8257, LINUX], ids=lambda params: params.name)
def test_the_queue_stays_at_k_and_the_line_busy(params: DctcpParams) -> None:
    """K of one bandwidth-delay product: at most N more, less an amplitude of about six."""
    k = round(BDP)
    rig, lengths = incast(2, 3_000, k, params)
    steady = lengths[len(lengths) // 4 : 3 * len(lengths) // 4]
    assert 0.7 * k < fmean(steady) < k
    assert max(steady) <= k + 4
    first, last = sorted(row.done_ns for row in rig.seen.flows)
    assert 6_000 * PACKET_NS / last > 0.98
    assert first / last > 0.9, "they share the line"


def test_without_marks_the_window_is_not_limited_by_slow_start() -> None:
    """A flow that has the network for itself reaches the line rate."""
    rig, _ = incast(1, 2_000, 20)
    assert rig.switch[1].marked == 0
    assert rig.seen.flows[0].goodput_bps > 0.95 * RATE_BPS


def test_a_loss_halves_the_window_and_goes_back() -> None:
    """As RoCEv2 does: one NAK, everything from the lost packet on again."""
    rig = Rig([flow(0, 600 * PAYLOAD)], parameters=DCTCP, lose=drop_numbers({300}))
    assert rig.run()
    assert (rig.counters.naks, rig.counters.timeouts) == (1, 0)
    psns = [frame.psn for frame in rig.medium.sent if frame.is_data]
    again = psns.index(299, psns.index(299) + 1)
    assert psns[again : again + 20] == list(range(299, 319))


def test_a_timeout_begins_with_the_least_window() -> None:
    """Of one packet, which is all that is left to send."""
    last = 40
    rig = Rig([flow(0, last * PAYLOAD)], parameters=DCTCP, lose=drop_numbers({last}))
    assert rig.run()
    assert rig.counters.timeouts == 1
    assert rig.plan.connections[0].sender.control.window == 1


def test_control_frames_are_those_of_rocev2() -> None:
    """Nothing but SENDs and acknowledgements of the usual length; no CNP."""
    rig, _ = incast(2, 200, 5, check_icrc=True)
    answers = [frame for frame in rig.medium.sent if not frame.is_data]
    assert {(frame.opcode, frame.length) for frame in answers} == {(Opcode.ACKNOWLEDGE, 62)}
    assert all(frame.icrc_ok for frame in rig.medium.sent)
    assert rig.counters.cnps == 0


@pytest.mark.parametrize("seed", range(6))
def test_everything_arrives_once_whatever_is_lost(seed: int) -> None:
    """Data and acknowledgements, over a small buffer that marks."""
    tasks = [flow(n, 150 * PAYLOAD + n, src=f"h{n + 2}", dst="h1") for n in range(4)]
    rig = Rig(tasks, parameters=replace(DCTCP, rto_ns=100_000), marking=step(8),
              buffer_bytes=20 * FRAME, lose=drop_randomly(0.02, seed))  # fmt: skip
    assert rig.run()
    assert len(rig.seen.by_id()) == 4
    assert rig.settle()
    for one in rig.plan.connections:
        assert one.receiver.expected == 151 if one.number else 150
        assert one.receiver.marks <= one.receiver.expected
