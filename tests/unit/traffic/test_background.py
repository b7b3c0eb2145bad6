"""Background traffic: patterns, closed rounds, random arrivals at a given load."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.ideal_network import IdealNetwork, leaf_spine
from topologies.errors import SpecError, UnknownNameError
from traffic import wire
from traffic.tasks import Flow
from traffic.workloads import build, parse_workload
from traffic.workloads.pairs import cross_leaf_permutation, permutation
from traffic.workloads.sizes import BUILT_IN
from traffic.workloads.volume import message_wire_bytes

FABRIC = leaf_spine()
LINE_BPS = 100_000_000_000


def built(shrink: float = 1.0, seed: int = 7, folder: Path = Path(), **keys: Any) -> list[Flow]:
    """The flows of background traffic; keys given as None are left out."""
    raw = {"kind": "background", "name": "noise", "bytes": "64 KiB", **keys}
    given = {key: value for key, value in raw.items() if value is not None}
    spec = parse_workload(given, "workloads[2]", folder)
    tasks = build(spec, FABRIC, seed, shrink, 10).tasks
    return [task for task in tasks if isinstance(task, Flow)]


def pairs(flows: list[Flow]) -> list[tuple[str, str]]:
    """Sender and receiver of each flow."""
    return [(flow.src, flow.dst) for flow in flows]


def leaf(host: str) -> int:
    """The leaf that a host hangs on."""
    return FABRIC.attachment[host, 1][0]


def test_permutation_is_the_default() -> None:
    """All hosts send to one other and receive from one other, in class 0."""
    flows = built()
    everyone = {f"h{n}" for n in range(1, 17)}
    assert {flow.src for flow in flows} == {flow.dst for flow in flows} == everyone
    assert len(flows) == 16
    assert {(flow.dscp, flow.size_bytes, flow.start_ns) for flow in flows} == {(0, 65536, 0)}


def test_permutation_across_leaves() -> None:
    """With `cross_leaf` no pair stays below a leaf."""
    for seed in range(20):
        assert all(leaf(src) != leaf(dst) for src, dst in pairs(built(seed=seed, cross_leaf=True)))


def test_incast_rounds_wait_for_all_senders() -> None:
    """5:1 incast: a round begins `gap` after every message of the round before has come."""
    flows = built(pattern="incast", hosts=6, count=3, gap="2 us")
    assert pairs(flows)[:5] == [(f"h{n}", "h1") for n in range(2, 7)]
    assert {flow.after for flow in flows[5:10]} == {(10, 11, 12, 13, 14)}
    assert [flow.delay_ns for flow in flows[4:6]] == [0, 2000]
    network = IdealNetwork(rate_bps=8_000_000_000, extra_ns=lambda flow: 500 * (flow.id == 12))
    network.run(flows)
    begun = sorted({now_ns for now_ns, _ in network.started})
    assert begun == [0, 65_536 + 500 + 2000, 2 * (65_536 + 2000) + 500]


def test_pairs_go_on_for_themselves() -> None:
    """Without incast each pair's next message waits for its own last one only."""
    flows = built(pattern="pairs", hosts=4, count=2)
    assert pairs(flows) == [("h1", "h3"), ("h2", "h4")] * 2
    assert [flow.after for flow in flows] == [(), (), (10,), (11,)]
    assert [flow.id for flow in flows] == [10, 11, 12, 13]


def test_named_pairs() -> None:
    """Pairs are taken as they are written."""
    assert pairs(built(pattern="pairs", pairs=[["h9", "h2"], ["h2", "h9"]])) == [
        ("h9", "h2"),
        ("h2", "h9"),
    ]


def test_all_to_all() -> None:
    """Every ordered pair once."""
    flows = built(pattern="all-to-all", hosts=["h1", "h2", "h5"])
    assert len(set(pairs(flows))) == len(flows) == 6


@pytest.mark.parametrize(
    ("keys", "senders"),
    [
        ({"pattern": "poisson"}, 16),
        ({"pattern": "permutation"}, 16),
        ({"pattern": "poisson", "bytes": None, "sizes": "websearch", "duration": "200 ms"}, 16),
        ({"pattern": "poisson", "bytes": None, "sizes": "fb-hadoop"}, 16),
        ({"pattern": "poisson", "bytes": None, "sizes": 300, "duration": "1 ms"}, 16),
        ({"pattern": "incast", "duration": "100 ms"}, 1),
    ],
)
@pytest.mark.parametrize("shrink", [1.0, 8.0])
def test_offered_load(keys: dict[str, Any], senders: int, shrink: float) -> None:
    """Line time with headers over the duration is the wanted share of each sender's link.

    For an incast it is the share of the receiver's link.
    """
    keys = {"load": 0.4, "duration": "20 ms", **keys}
    flows = built(shrink=shrink, **keys)
    duration_s = {"20 ms": 0.02, "200 ms": 0.2, "100 ms": 0.1, "1 ms": 0.001}[keys["duration"]]
    payload_bytes = wire.max_payload_bytes(FABRIC.mtu_bytes)
    offered = sum(message_wire_bytes(flow.size_bytes, payload_bytes) * 8 for flow in flows)
    share = offered / (senders * LINE_BPS * duration_s / shrink)
    assert share == pytest.approx(0.4, rel=0.1)
    assert max(flow.start_ns for flow in flows) < duration_s * 1e9 / shrink


def test_random_pairs_spread_over_all_receivers() -> None:
    """With pattern poisson every host receives about as much as any other, never from itself."""
    flows = built(pattern="poisson", load=0.5, duration="20 ms")
    received = Counter(flow.dst for flow in flows)
    assert len(received) == 16
    assert max(received.values()) < 1.5 * min(received.values())
    assert all(flow.src != flow.dst for flow in flows)


def test_random_flows_start_in_order_on_connections_of_their_own() -> None:
    """Ids ascend with time; no two flows share a connection, so none waits for another."""
    flows = built(pattern="poisson", load=0.3, duration="5 ms", start="1 ms")
    times = [flow.start_ns for flow in flows]
    assert times == sorted(times)
    assert times[0] >= 1_000_000
    assert len({flow.connection for flow in flows}) == len(flows)


def test_seeds() -> None:
    """Equal seeds give equal flows, other seeds other ones."""
    keys: dict[str, Any] = {"pattern": "poisson", "load": 0.1, "duration": "2 ms"}
    assert built(**keys) == built(**keys)
    assert built(seed=8, **keys) != built(**keys)


def test_sizes_from_a_file(tmp_path: Path) -> None:
    """A distribution file beside the experiment file is used."""
    (tmp_path / "sizes.txt").write_text("1000 50\n1000 100\n", encoding="utf-8")
    keys = {"bytes": None, "sizes_file": "sizes.txt", "load": 0.1, "duration": "1 ms"}
    assert {flow.size_bytes for flow in built(folder=tmp_path, **keys)} == {1000}


def test_random_sizes_follow_the_distribution() -> None:
    """Half of the flows of a long run are below the distribution's median."""
    keys = {"pattern": "poisson", "bytes": None, "sizes": "websearch", "load": 0.8}
    flows = built(duration="300 ms", **keys)
    median = BUILT_IN["websearch"].quantile(0.5)
    below = sum(flow.size_bytes <= median for flow in flows) / len(flows)
    assert below == pytest.approx(0.5, abs=0.05)


def test_a_permutation_is_one_cycle() -> None:
    """Nobody sends to itself, for any number of hosts."""
    for count in range(2, 12):
        hosts = [f"h{n}" for n in range(count)]
        found = permutation(hosts, random.Random(count))
        assert sorted(dst for _, dst in found) == sorted(hosts)
        assert all(src != dst for src, dst in found)


@pytest.mark.parametrize("per_leaf", [(1, 1), (2, 2), (3, 1, 2), (4, 4, 4), (2, 1, 1), (5, 3, 2)])
def test_cross_leaf_permutations_of_uneven_leaves(per_leaf: tuple[int, ...]) -> None:
    """As long as no leaf has more than half of the hosts there is one, for every seed."""
    leaf_of = {f"l{i}n{n}": i for i, count in enumerate(per_leaf) for n in range(count)}
    for seed in range(20):
        found = cross_leaf_permutation(list(leaf_of), leaf_of, random.Random(seed), "cross_leaf")
        assert sorted(dst for _, dst in found) == sorted(leaf_of)
        assert all(leaf_of[src] != leaf_of[dst] for src, dst in found)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"bytes": None}, "'bytes' is missing"),
        ({"hosts": 17}, r"workloads\[2\].hosts: 17 asks for more hosts than the 16"),
        ({"hosts": 1}, "hosts: 1 must be at least 2"),
        ({"count": 0}, "count: 0 must be at least 1"),
        ({"load": 0, "duration": "1 ms"}, "load: 0 must be above 0"),
        ({"load": 0.5}, "'duration' is missing"),
        ({"load": 0.5, "duration": "1 ms", "count": 2}, "excludes load"),
        ({"load": 0.5, "duration": "1 ms", "sizes": "websearch"}, "excludes bytes"),
        ({"pattern": "poisson"}, "'load' is missing"),
        (
            {"bytes": None, "load": 0.5, "duration": "1 ms", "sizes": "web"},
            "sizes: 'web' is neither a size nor a known distribution; known: ali-storage",
        ),
        ({"load": 0.5, "duration": "1 h"}, "more than 1000000"),
        ({"count": 10_000_000}, "makes about 160000000 flows, more than 1000000"),
        ({"pattern": "pairs", "pairs": [["h1", "h1"]]}, r"pairs\[0\]: .* the same host"),
        ({"pattern": "pairs", "pairs": [["h1"]]}, r"pairs\[0\]: .* at least 2"),
        ({"cross_leaf": True, "hosts": 6}, "cross_leaf: .* 4 of the 6 hosts are on one leaf"),
    ],
)
def test_impossible_background(keys: dict[str, Any], message: str) -> None:
    """Each wrong value is one error with its key path."""
    with pytest.raises(SpecError, match=message):
        built(**keys)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"pattern": "stride"}, "all-to-all, incast, pairs, permutation, poisson"),
        ({"duration": "1 ms"}, "'duration' is not a known key"),
        ({"pattern": "incast", "cross_leaf": True}, "'cross_leaf' is not a known key"),
        ({"pairs": [["h1", "h2"]]}, "'pairs' is not a known key"),
        ({"hosts": ["h1", "h77"]}, "'h77' is not a known host"),
        ({"pattern": "pairs", "pairs": [["h1", "h77"]]}, "'h77' is not a known host"),
    ],
)
def test_unknown_names(keys: dict[str, Any], message: str) -> None:
    """Unknown names list the known ones; keys without effect are unknown."""
    with pytest.raises(UnknownNameError, match=message):
        built(**keys)
