"""DCTCP's window: the rules one by one, closed forms, and a slotted model of a shared queue."""

from __future__ import annotations

import math
from statistics import fmean

import pytest

from tests.fakes.slotted import Sender, Slotted
from traffic.dctcp import HPCC, LINUX, PARAMETER_SETS, RFC8257, DctcpParams, DctcpWindow


class Flow:
    """A window with a sender that always uses all of it."""

    def __init__(self, params: DctcpParams = RFC8257, bdp_packets: int = 16) -> None:
        self.control = DctcpWindow(params, bdp_packets)
        self.oldest = 0
        self.next_psn = 0
        self.send()

    def send(self) -> None:
        """As much as the window allows."""
        self.next_psn = max(self.next_psn, self.oldest + int(self.control.window))
        self.control.on_sent(self.next_psn - self.oldest)

    def ack(self, acked: int, marked: int = 0) -> float:
        """Packets are acknowledged; the window then."""
        self.oldest += acked
        self.control.on_ack(self.oldest, self.next_psn, acked, marked)
        self.send()
        return self.control.window

    def window_of_data(self, share: float = 0.0) -> float:
        """All that is in flight is acknowledged at once, a share of it marked."""
        acked = self.next_psn - self.oldest
        return self.ack(acked, round(share * acked))


def congested(params: DctcpParams, window: float = 64.0) -> Flow:
    """A flow that has left slow start, with alpha at 1/2."""
    flow = Flow(params)
    flow.control.window = flow.control._threshold = window
    flow.control.alpha = 0.5
    flow.send()
    flow.window_of_data()
    flow.control.alpha = 0.5
    return flow


def test_slow_start_doubles_the_window_each_round_trip() -> None:
    """From the ten packets of RFC 6928 on."""
    flow = Flow()
    assert [flow.window_of_data() for _ in range(4)] == [20, 40, 80, 160]


def test_without_slow_start_it_begins_with_a_bandwidth_delay_product() -> None:
    """And adds one packet per round trip (HPCC's simulations)."""
    flow = Flow(HPCC, bdp_packets=33)
    assert flow.control.window == 33
    assert flow.window_of_data() == 34


@pytest.mark.parametrize("share", [0.0, 0.25, 1.0])
def test_alpha_goes_to_the_share_of_marks_by_one_sixteenth_of_the_way(share: float) -> None:
    """After n windows: F + (1 - F) (15/16)^n."""
    flow = Flow(HPCC, bdp_packets=64)
    for n in range(1, 30):
        flow.control.window = 64.0
        flow.next_psn = flow.oldest + 64
        flow.window_of_data(share)
        assert flow.control.alpha == pytest.approx(share + (1 - share) * (15 / 16) ** n)


@pytest.mark.parametrize("params", [RFC8257, LINUX])
def test_a_marked_window_cuts_by_half_of_alpha(params: DctcpParams) -> None:
    """All of 64 packets marked: alpha goes from 1/2 to 17/32 first, then the window is cut."""
    flow = congested(params)
    assert flow.control.window == pytest.approx(65)
    assert flow.window_of_data(1.0) == pytest.approx(65 * (1 - 17 / 64))


def test_the_first_mark_cuts_once_for_each_window_of_data() -> None:
    """More marks of packets that were sent before the cut change nothing (Linux)."""
    flow = congested(LINUX)
    flow.ack(1)
    flow.control.alpha = 0.5
    window = flow.ack(1, marked=1)
    assert window == pytest.approx((65 + 1 / 65) * 0.75)
    in_flight = flow.next_psn - flow.oldest
    assert flow.ack(in_flight - 5, marked=in_flight - 5) == window
    assert flow.ack(10, marked=5) == window, "five of them may be the last ones from before the cut"
    assert flow.ack(1, marked=1) < window


def test_the_window_does_not_grow_in_the_round_trip_of_a_cut() -> None:
    """Only when what was sent before the cut is acknowledged (Linux)."""
    flow = congested(LINUX)
    window = flow.ack(1, marked=1)
    sent_before = flow.next_psn - flow.oldest
    assert flow.ack(sent_before) == window
    assert flow.ack(1) == pytest.approx(window + 1 / window)


def test_rfc_8257_cuts_at_the_end_of_the_window() -> None:
    """A mark in the middle waits until all of the window's data is acknowledged."""
    flow = congested(RFC8257)
    window = flow.control.window
    assert flow.ack(1, marked=1) < window, "the first acknowledgement ends the window before"
    window, left = flow.control.window, flow.control._window_end - flow.oldest
    assert flow.ack(left, marked=1) == window
    assert flow.ack(1) < window


def test_a_window_that_is_not_used_does_not_grow() -> None:
    """Neither in slow start nor after it."""
    for params in PARAMETER_SETS.values():
        control = DctcpWindow(params, 40)
        control.on_sent(3)
        for n in range(3, 60, 3):
            control.on_ack(n, n + 3, 3, 0)
        assert control.window == (40 if params.initial_packets is None else 10)


def test_a_loss_halves_once_for_each_window_of_data() -> None:
    """And ends slow start."""
    flow = Flow()
    flow.window_of_data()
    flow.control.on_loss(flow.oldest, flow.next_psn)
    flow.control.on_loss(flow.oldest + 1, flow.next_psn)
    assert flow.control.window == 10
    flow.window_of_data()
    assert flow.window_of_data() == pytest.approx(11)


def test_a_timeout_starts_again_from_the_least_window() -> None:
    """In slow start, up to half of what the window was."""
    flow = Flow()
    flow.window_of_data()
    flow.control.on_timeout()
    assert flow.control.window == 1
    flow.oldest = flow.next_psn
    flow.send()
    assert [flow.window_of_data() for _ in range(5)] == [2, 4, 8, 10, pytest.approx(11)]


def test_the_window_never_falls_below_the_least() -> None:
    """However many marks there are."""
    for params in PARAMETER_SETS.values():
        flow = Flow(params)
        for _ in range(200):
            flow.window_of_data(1.0)
        assert flow.control.window == params.min_packets


def steady(params: DctcpParams, flows: int, bdp: int, k: int) -> tuple[float, list[int]]:
    """(utilisation, queue lengths) after the beginning."""
    model = Slotted([Sender(DctcpWindow(params, bdp)) for _ in range(flows)], bdp, k)
    model.run(100 * bdp)
    begin, served = len(model.lengths), model.served
    model.run(30_000)
    return (model.served - served) / 30_000, model.lengths[begin:]


REFERENCE = [
    (20, 5, 0.992, 4.1), (20, 10, 1.0, 9.5), (20, 20, 1.0, 17.8),
    (67, 4, 0.962, 2.6), (67, 9, 0.991, 5.4), (67, 16, 1.0, 11.6), (67, 34, 1.0, 28.7),
    (67, 67, 1.0, 60.2), (140, 10, 0.983, 4.7), (140, 20, 0.999, 12.3), (140, 35, 1.0, 26.5),
    (140, 70, 1.0, 61.3), (140, 140, 1.0, 125.9),
]  # fmt: skip
"""(bandwidth-delay product, K, utilisation, mean queue) of two flows, an independent model's."""


@pytest.mark.parametrize(("bdp", "k", "utilisation", "queue"), REFERENCE)
def test_throughput_and_queue_against_k(bdp: int, k: int, utilisation: float, queue: float) -> None:
    """Two flows: within 2 % of the link and 20 % of the queue of an independent model."""
    used, lengths = steady(RFC8257, 2, bdp, k)
    assert used == pytest.approx(utilisation, abs=0.02)
    assert fmean(lengths) == pytest.approx(queue, rel=0.2)


@pytest.mark.parametrize(("flows", "bdp", "k"), [(2, 67, 67), (2, 140, 140), (2, 67, 34)])
def test_the_sawtooth_is_that_of_the_analysis(flows: int, bdp: int, k: int) -> None:
    """Its top is K + N, its amplitude sqrt(2 N (C RTT + K)) / 2 (SIGCOMM 2010, section 3.3)."""
    _, lengths = steady(LINUX, flows, bdp, k)
    ordered = sorted(lengths)
    top, bottom = ordered[-1], ordered[len(ordered) // 50]
    assert top == pytest.approx(k + flows, abs=1)
    assert top - bottom == pytest.approx(math.sqrt(2 * flows * (bdp + k)) / 2, rel=0.3)


def test_a_link_stays_busy_above_a_seventh_of_the_bandwidth_delay_product() -> None:
    """K > C RTT / 7 suffices when the flows react to the first mark; far below it does not."""
    assert steady(LINUX, 2, 140, 20)[0] > 0.995
    assert steady(LINUX, 2, 20, 1)[0] < 0.9


def test_every_set_says_where_it_comes_from() -> None:
    """And can be found by its name."""
    for name, params in PARAMETER_SETS.items():
        assert params.name == name
        assert params.source
