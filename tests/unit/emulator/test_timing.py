"""Unloaded times of paths: the arithmetic of facts that every run is held against."""

from __future__ import annotations

from itertools import product

import pytest

from emulator import timing
from emulator.pairs import pair_classes, pair_times
from emulator.spec.model import CUT_THROUGH, STORE_AND_FORWARD, SwitchSpec
from topologies.model import Link
from topologies.paths import Paths, links_of
from topologies.registry import build_fabric

GBPS = 1_000_000_000
FRAME = 4154
WIRE_BITS = (FRAME + 24) * 8


def _path(*links: tuple[float, int]) -> tuple[Link, ...]:
    return tuple(
        Link(n, "a", "b", int(rate * GBPS), delay) for n, (rate, delay) in enumerate(links)
    )


def test_one_link_is_serialisation_and_delay() -> None:
    """A frame of 1226 B takes 1250 B of line time: 100 ns at 100 Gbit/s, and then its delay."""
    assert timing.one_way_ns(_path((100, 500)), SwitchSpec(), 1226) == pytest.approx(600)


def test_short_frames_are_padded() -> None:
    """Nothing on Ethernet takes less than 84 B of line time."""
    assert timing.serialisation_ns(20, 100 * GBPS) == pytest.approx(6.72)


def test_store_and_forward_serialises_on_every_link() -> None:
    """Four links, three switches: four serialisations, three latencies, all delays."""
    path = _path((100, 500), (100, 1000), (100, 1000), (100, 500))
    expected = 4 * WIRE_BITS / 100 + 3 * 700 + 3000
    assert timing.one_way_ns(path, SwitchSpec(STORE_AND_FORWARD, 700), FRAME) == pytest.approx(
        expected
    )


def test_cut_through_saves_one_frame_less_the_header_per_switch() -> None:
    """The saving is n * (L - H) / C, 328 ns a hop at 100 Gbit/s for 4 KB packets (facts 4.2)."""
    path = _path((100, 500), (100, 1000), (100, 1000), (100, 500))
    slow = timing.one_way_ns(path, SwitchSpec(STORE_AND_FORWARD, 700), FRAME)
    fast = timing.one_way_ns(path, SwitchSpec(CUT_THROUGH, 700), FRAME)
    assert slow - fast == pytest.approx(3 * (FRAME + 24 - 64) * 8 / 100)


def test_cut_through_waits_where_the_egress_is_faster() -> None:
    """A faster egress would run out of bytes, so the switch takes the whole frame first."""
    path = _path((100, 0), (400, 0))
    modes = [
        timing.one_way_ns(path, SwitchSpec(mode), FRAME)
        for mode in (STORE_AND_FORWARD, CUT_THROUGH)
    ]
    assert modes[0] == modes[1] == pytest.approx(WIRE_BITS / 100 + WIRE_BITS / 400)


def test_cut_through_into_a_slower_link_ends_with_that_link() -> None:
    """The slow link is busy from the header's arrival until its own serialisation is over."""
    path = _path((400, 0), (100, 0))
    expected = 64 * 8 / 400 + WIRE_BITS / 100
    assert timing.one_way_ns(path, SwitchSpec(CUT_THROUGH), FRAME) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("rates", "frame"), list(product([(10, 40, 40, 10), (40, 10, 10, 40)], [60, 1500]))
)
def test_cut_through_is_never_slower(rates: tuple[int, ...], frame: int) -> None:
    """Beginning earlier cannot make a lone packet later."""
    path = _path(*((rate, 100) for rate in rates))
    fast = timing.one_way_ns(path, SwitchSpec(CUT_THROUGH, 300), frame)
    assert fast <= timing.one_way_ns(path, SwitchSpec(STORE_AND_FORWARD, 300), frame)


def test_a_round_trip_is_the_frame_there_and_the_reply_back() -> None:
    """The way back goes over the same links the other way round."""
    path, switch = _path((100, 500), (40, 1000)), SwitchSpec(CUT_THROUGH, 200)
    there = timing.one_way_ns(path, switch, FRAME)
    back = timing.one_way_ns(path[::-1], switch, 62)
    assert timing.round_trip_ns(path, switch, FRAME, 62) == pytest.approx(there + back)


def test_bandwidth_delay_product_is_that_of_the_bottleneck() -> None:
    """The slowest link sets the rate, the whole path the round trip."""
    path, switch = _path((100, 500), (40, 1000)), SwitchSpec()
    rtt_ns = timing.round_trip_ns(path, switch, FRAME, 62)
    assert timing.bdp_bytes(path, switch, FRAME) == pytest.approx(40 * rtt_ns / 8)


FABRICS = [
    {"leaves": 1, "spines": 0, "hosts_per_leaf": 4},
    {"leaves": 3, "spines": 2, "hosts_per_leaf": [1, 2, 3]},
    {"leaves": 2, "spines": 2, "hosts_per_leaf": 2, "fabric_link": {"parallel": 2}},
    {"leaves": 3, "spines": 2, "hosts_per_leaf": 2,
     "links": [{"between": ["h1", "leaf1"], "rate": "25 Gbit/s"},
               {"between": ["leaf2", "spine1"], "delay": "5 us"}]},
]  # fmt: skip


@pytest.mark.parametrize("shape", FABRICS)
def test_classes_of_paths_count_every_pair_once(shape: dict[str, object]) -> None:
    """Grouping hosts and leaves that are alike gives the same as looking at every pair."""
    fabric = build_fabric({"kind": "leaf-spine", **shape})
    paths = Paths(fabric)
    counted: dict[tuple[tuple[int, int], ...], int] = {}
    for src, dst in product([host.name for host in fabric.hosts], repeat=2):
        for path in paths.between(src, dst) if src != dst else ():
            links = [fabric.links[link] for link in links_of(fabric, path)]
            key = tuple((link.rate_bps, link.delay_ns) for link in links)
            counted[key] = counted.get(key, 0) + 1
    grouped = {
        tuple((link.rate_bps, link.delay_ns) for link in pair.links): pair.paths
        for pair in pair_classes(fabric)
    }
    assert grouped == counted


def test_classes_of_paths_are_kept_apart_by_plane() -> None:
    """Two fabrics side by side have their own times, even when their links are alike."""
    half = {"leaves": 2, "spines": 1, "hosts_per_leaf": 2}
    fabric = build_fabric({"kind": "front-back", "front": half, "back": half})
    assert [(pair.plane, pair.name) for pair in pair_classes(fabric)] == [
        (1, "below one leaf"), (1, "across a spine"), (2, "below one leaf"), (2, "across a spine"),
    ]  # fmt: skip


def test_times_of_a_class_use_an_acknowledgement_as_reply() -> None:
    """The round trip that senders see ends with a 62-byte ACK frame."""
    fabric = build_fabric({"kind": "leaf-spine", "leaves": 1, "spines": 0, "hosts_per_leaf": 2})
    (pair,) = pair_classes(fabric)
    times = pair_times(pair, SwitchSpec(latency_ns=500), FRAME)
    one_way = 2 * WIRE_BITS / 100 + 500 + 1000
    assert times.one_way_ns == pytest.approx(one_way)
    assert times.round_trip_ns == pytest.approx(one_way + 2 * (62 + 24) * 8 / 100 + 1500)
