"""NSCC's four reactions, quick adapt and the mean delay, against their formulas."""

from __future__ import annotations

from dataclasses import replace

import pytest

from traffic.nscc import Nscc
from traffic.uet_params import PARAMETER_SETS, UEC, UetParams

PACKET = 4_000
RATE_BPS = 100_000_000_000
ROUND_TRIP_NS = 12_000
BDP = 150_000
"""At 100 Gbit/s and 12 us the source's constants hold as they are."""
MS = 1_000_000


def control(params: UetParams = UEC, trimming: bool = False, **keys: int) -> Nscc:
    """A window of the reference network."""
    rate_bps = keys.get("rate_bps", RATE_BPS)
    return Nscc(params, PACKET, rate_bps, keys.get("round_trip_ns", ROUND_TRIP_NS), trimming)


def with_window(packets: float, mean_delay_ns: float = 0.0, **keys: bool) -> Nscc:
    """A window of so many packets, long after its beginning."""
    one = control(**keys)
    one.window, one.mean_delay_ns = packets * PACKET, mean_delay_ns
    one._fulfilled_at_ns = one._adapt_at_ns = 10 * MS
    return one


def ack(one: Nscc, packets: int, delay_ns: float, marked: int = 0, now_ns: int = 10 * MS) -> float:
    """An acknowledgement of so many packets; the window after it, packets."""
    clean = (packets - marked) * PACKET
    one.on_ack(now_ns, clean, marked * PACKET, one.base_ns + delay_ns, int(one.window))
    return one.window / PACKET


def round_trip(one: Nscc, delay_ns: float) -> float:
    """A whole window is acknowledged, in parts that growth is applied after; what it grew by."""
    before, left = one.window / PACKET, one.window / PACKET
    while left > 0:
        part = min(left, 9)
        clean = round(part * PACKET)
        one.on_ack(10 * MS, clean, 0, one.base_ns + delay_ns, int(one.window))
        left -= part
    return one.window / PACKET - before


def test_it_begins_with_its_largest_window() -> None:
    """One and a half bandwidth-delay products."""
    one = control()
    assert one.window == one.max_window == 1.5 * BDP


@pytest.mark.parametrize(("trimming", "target_ns"), [(True, 9_000), (False, 12_000)])
def test_the_target_is_a_part_of_the_round_trip(trimming: bool, target_ns: int) -> None:
    """Three quarters of it where switches trim, all of it where they drop."""
    assert control(trimming=trimming).target_ns == target_ns
    assert control(replace(UEC, target_times=0.5)).target_ns == 6_000


@pytest.mark.parametrize("share", [0.25, 0.5, 0.75])
def test_growth_is_in_proportion_to_the_room_below_the_target(share: float) -> None:
    """Four packets per round trip, scaled by target over 12 us, less as the delay grows."""
    one = with_window(18)
    assert round_trip(one, share * one.target_ns) == pytest.approx(4 * (1 - share), rel=0.1)


def test_growth_above_the_target_is_fair() -> None:
    """Five packets per round trip for each connection, whatever its window, without marks."""
    for packets in (9, 18):
        assert round_trip(with_window(packets), 20_000) == pytest.approx(5, rel=0.2)


def test_steps_grow_with_the_bandwidth_delay_product() -> None:
    """At 400 Gbit/s a round trip holds four times the packets, and so does each step."""
    one = control(rate_bps=4 * RATE_BPS)
    assert one.max_window == 6 * BDP
    one.window, one._fulfilled_at_ns = 36.0 * PACKET, 10 * MS
    one._adapt_at_ns = 10 * MS
    assert round_trip(one, 20_000) == pytest.approx(20, rel=0.3)


def test_without_any_delay_for_a_whole_window_growth_is_fast() -> None:
    """A quarter of what is acknowledged, at once."""
    one = with_window(8)
    ack(one, 8, 0)
    assert ack(one, 4, 0) == pytest.approx(8 + 1 + 4 * 8 / 9), "and what was gained before"
    ack(one, 1, 2_000)
    assert not one._fast


def test_a_mark_without_delay_leaves_the_window() -> None:
    """Another path is the answer."""
    one = with_window(20)
    assert ack(one, 5, 3_000, marked=5) == 20


@pytest.mark.parametrize("mean_ns", [14_000.0, 18_000.0, 24_000.0, 200_000.0])
def test_marks_and_delay_cut_by_the_excess_of_the_mean_delay(mean_ns: float) -> None:
    """gamma (mean - target) / mean, at most half."""
    one = with_window(20, mean_ns)
    window = ack(one, 1, mean_ns, marked=1)
    assert window == pytest.approx(20 * max(1 - 0.8 * (mean_ns - 12_000) / mean_ns, 0.5))


def test_one_cut_per_round_trip() -> None:
    """However many marks there are."""
    one = with_window(20, 24_000.0)
    window = ack(one, 1, 24_000, marked=1)
    assert ack(one, 3, 24_000, marked=3, now_ns=10 * MS + ROUND_TRIP_NS) == window
    one._adapt_at_ns = 20 * MS
    assert ack(one, 1, 24_000, marked=1, now_ns=10 * MS + ROUND_TRIP_NS + 1) < window


def test_the_mean_follows_each_marked_packet_and_every_fourth_other_one() -> None:
    """As the acknowledgements of their own would: 1/80 of the way each."""
    one = with_window(20, 8_000.0)
    ack(one, 12, 10_000, marked=10)
    expected = 10_000 - 2_000 * (1 - 0.0125) ** 11
    assert one.mean_delay_ns == pytest.approx(expected, abs=15)


def test_a_long_delay_without_a_mark_lowers_the_mean() -> None:
    """The queue that it was seen in has emptied since: a quarter of the round trip counts."""
    one = with_window(20, 12_000.0)
    ack(one, 4, 20_000)
    assert one.mean_delay_ns == pytest.approx(12_000 - (12_000 - 3_000) * 0.0125)


def test_a_shorter_round_trip_is_the_new_base() -> None:
    """The network's is that of its longest path."""
    one = with_window(20)
    ack(one, 1, -4_000)
    assert one.base_ns == 8_000
    assert one.max_window == pytest.approx(1.5 * BDP * 2 / 3)


def test_a_trimmed_packet_takes_its_size_off_the_window() -> None:
    """Down to the least window."""
    one = with_window(3)
    one.on_trimmed(10 * MS, PACKET, 3 * PACKET)
    assert one.window == 2 * PACKET
    one.on_trimmed(10 * MS, 2 * PACKET, 3 * PACKET)
    assert one.window == PACKET
    one.on_timeout(PACKET)
    assert one.window == PACKET


def test_losses_make_the_window_what_arrived_in_the_last_round_trip() -> None:
    """Quick adapt, when that was less than an eighth of the largest window."""
    one = with_window(40)
    for achieved, expected in ((2, 2), (20, 39)):
        one = with_window(40)
        ack(one, achieved, 13_000, marked=achieved)
        one._adapt_at_ns = 10 * MS - 1
        one.on_trimmed(10 * MS, PACKET, 30 * PACKET)
        assert one.window == expected * PACKET


def test_what_was_sent_before_the_window_was_adapted_changes_nothing() -> None:
    """Until as much has come back as was in flight."""
    one = with_window(40)
    one._adapt_at_ns = 10 * MS - 1
    one.on_trimmed(10 * MS, PACKET, 3 * PACKET)
    assert one.window == PACKET
    for _ in range(3):
        one.on_trimmed(10 * MS, PACKET, 3 * PACKET)
        assert one.window == PACKET
    one.window = 10.0 * PACKET
    one.on_trimmed(10 * MS, PACKET, 3 * PACKET)
    assert one.window == 9 * PACKET


def test_the_window_stays_between_its_limits() -> None:
    """Whatever comes."""
    one = control()
    for n in range(200):
        ack(one, 30, 0, now_ns=n * 1_000)
    assert one.window == one.max_window
    for n in range(200):
        one.on_trimmed(n * 1_000, 9 * PACKET, 10 * PACKET)
    assert one.window == PACKET


def test_every_set_says_where_it_comes_from() -> None:
    """And can be found by its name."""
    for name, params in PARAMETER_SETS.items():
        assert params.name == name
        assert params.source
