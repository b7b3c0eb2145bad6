"""The fabric as it is drawn, out of the manifest's port list."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from emulator.report.charts_map import label_plan
from emulator.report.fabricmap import (
    build_map,
    hosts_of,
    manifest_ports,
    natural,
    node_tiers,
    plane_of,
    port_loads,
    port_words,
)
from emulator.results.queues import QueueSeries
from tests.fakes.run_folder import FakeRun, make_fabric


def manifest(run: FakeRun) -> dict[str, Any]:
    """The port list of a synthetic fabric."""
    fabric = make_fabric(run)
    return {
        "ports": [
            {"name": p.name, "node": p.node, "peer": fabric.port(p.peer).name, "rate_bps": 10**11}
            for p in fabric.ports
        ]
    }


def sent(ports: list[str], columns: dict[str, list[int]], times: list[int]) -> QueueSeries:
    """Samples with given byte counters; ports that are not named sent nothing."""
    shape = (len(times), len(ports))
    counters = np.zeros(shape, dtype=np.int64)
    for name, values in columns.items():
        counters[:, ports.index(name)] = values
    zero = np.zeros(shape, dtype=np.int64)
    arrays = {
        "time_ns": np.array(times), "bytes": zero, "bytes_tc": np.zeros((*shape, 8), dtype=int),
        "tx_bytes": counters, "dropped": zero, "trimmed": zero, "marked": zero,
        "buffer_used": np.zeros((len(times), 0), dtype=int),
    }  # fmt: skip
    return QueueSeries(tuple(ports), (), arrays)


def test_tiers_are_distances_from_the_hosts() -> None:
    """Hosts are 0, leaves 1, spines 2."""
    tiers = node_tiers(manifest_ports(manifest(FakeRun(leaves=3, spines=2, hosts_per_leaf=2))))
    assert {name for name, tier in tiers.items() if tier == 0} == {f"h{n}" for n in range(1, 7)}
    assert {name for name, tier in tiers.items() if tier == 1} == {"leaf1", "leaf2", "leaf3"}
    assert {name for name, tier in tiers.items() if tier == 2} == {"spine1", "spine2"}


def test_peers_may_be_ports_or_nodes() -> None:
    """Both spellings of the peer give the same map."""
    by_port = manifest(FakeRun())
    node_of = {port["name"]: port["node"] for port in by_port["ports"]}
    by_node = {"ports": [port | {"peer": node_of[port["peer"]]} for port in by_port["ports"]]}
    assert manifest_ports(by_port) == manifest_ports(by_node)


def test_hosts_without_the_usual_names_are_the_ends() -> None:
    """In a foreign fabric the nodes with one port are the hosts."""
    raw = [
        {"name": "a-0", "node": "a", "peer": "s", "rate_bps": 1},
        {"name": "s-0", "node": "s", "peer": "a", "rate_bps": 1},
        {"name": "s-1", "node": "s", "peer": "b", "rate_bps": 1},
        {"name": "b-0", "node": "b", "peer": "s", "rate_bps": 1},
    ]
    assert hosts_of(manifest_ports({"ports": raw})) == {"a", "b"}


def test_every_cable_is_drawn_once_with_its_lanes() -> None:
    """Parallel cables are told apart."""
    raw = manifest(FakeRun(leaves=1, spines=1, hosts_per_leaf=1))
    raw["ports"] += [
        {"name": "leaf1-eth3", "node": "leaf1", "peer": "spine1-eth2", "rate_bps": 10**11},
        {"name": "spine1-eth2", "node": "spine1", "peer": "leaf1-eth3", "rate_bps": 10**11},
    ]
    fabric = build_map(raw, None)
    assert fabric is not None
    found = [(c.lower, c.upper, c.lane, c.lanes) for c in fabric.cables]
    assert found == [("h1", "leaf1", 0, 1), ("leaf1", "spine1", 0, 2), ("leaf1", "spine1", 1, 2)]
    assert all(np.isnan(cable.load) for cable in fabric.cables)


@pytest.mark.parametrize("planes", [1, 2])
def test_positions_do_not_collide(planes: int) -> None:
    """No two nodes stand in the same place, in one plane or two."""
    fabric = build_map(manifest(FakeRun(leaves=8, spines=4, hosts_per_leaf=8, planes=planes)), None)
    assert fabric is not None
    assert len(set(fabric.positions.values())) == len(fabric.positions)
    assert all(0 <= x <= 1 for x, _ in fabric.positions.values())
    below = [name for name, (_, y) in fabric.positions.items() if y < 0]
    assert all(plane_of(name) == 2 for name in below)
    assert bool(below) == (planes == 2)


def test_hosts_stand_below_their_leaf() -> None:
    """A leaf is in the middle of its hosts, which stand in their order."""
    fabric = build_map(manifest(FakeRun(leaves=3, hosts_per_leaf=4)), None)
    assert fabric is not None
    x = {name: place[0] for name, place in fabric.positions.items()}
    assert x["leaf2"] == pytest.approx(np.mean([x[f"h{n}"] for n in (5, 6, 7, 8)]))
    assert sorted(range(1, 13), key=lambda n: x[f"h{n}"]) == list(range(1, 13))


def test_load_is_that_of_the_busier_direction() -> None:
    """A cable has the mean load of its busier direction, over the time in which traffic flowed."""
    raw = manifest(FakeRun(leaves=1, spines=1, hosts_per_leaf=2))
    names = [port["name"] for port in raw["ports"]]
    full_ns, rate_bytes_per_ns = 1000, 12.5
    up = [0, 0, int(full_ns * rate_bytes_per_ns), int(full_ns * rate_bytes_per_ns)]
    down = [0, 0, 0, int(0.25 * full_ns * rate_bytes_per_ns)]
    samples = sent(names, {"h1-eth1": up, "leaf1-eth1": down}, [0, 5000, 6000, 7000])
    fabric = build_map(raw, samples)
    assert fabric is not None
    cable = next(cable for cable in fabric.cables if cable.lower == "h1")
    assert cable.busy_port == "h1-eth1"
    assert cable.load == pytest.approx(0.5)
    assert cable.peak == pytest.approx(1.0)
    idle = next(cable for cable in fabric.cables if cable.lower == "h2")
    assert idle.load == 0


def test_load_of_a_silent_run_is_zero_and_of_unsampled_ports_unknown() -> None:
    """Nothing sent is 0, not measured is NaN."""
    ports = manifest_ports(manifest(FakeRun(leaves=1, spines=1, hosts_per_leaf=2)))
    silent = port_loads(ports, sent([port.name for port in ports], {}, [0, 10]))
    assert set(silent.values()) == {(0.0, 0.0)}
    partly = port_loads(ports, sent(["h1-eth1"], {"h1-eth1": [0, 10]}, [0, 10]))
    assert np.isnan(partly["h2-eth1"][0])
    assert partly["h1-eth1"][0] > 0
    assert all(np.isnan(load) for load, _ in port_loads(ports, None).values())


def test_names_sort_as_people_count() -> None:
    """h2 stands before h10, also with planes."""
    names = ["h10", "h2", "p2leaf1", "leaf10", "leaf9"]
    assert sorted(names, key=natural) == ["h2", "h10", "leaf9", "leaf10", "p2leaf1"]


def test_ports_say_where_they_send() -> None:
    """A port is called by its two ends."""
    words = port_words(manifest_ports(manifest(FakeRun(leaves=1, spines=1, hosts_per_leaf=1))))
    assert words["leaf1-eth2"] == "leaf1 to spine1 (leaf1-eth2)"


def test_no_ports_no_map() -> None:
    """A manifest without ports has no map."""
    assert build_map({}, None) is None


@pytest.mark.parametrize("count", [1, 8, 16, 40, 300])
def test_labels_of_a_row_fit(count: int) -> None:
    """The labels that are shown take no more room than the map has."""
    labels = [f"leaf{n}" for n in range(1, count + 1)]
    size, step = label_plan(labels, padding=2)
    shown = labels[::step]
    assert sum(len(text) + 1 for text in shown) * size * 0.62 <= 600
    assert 6 <= size <= 8.5
