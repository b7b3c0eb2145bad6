"""Estimates before a run: volumes exactly, durations as bounds from below."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fakes.ideal_network import IdealNetwork, leaf_spine
from topologies.errors import SpecError
from topologies.model import Fabric
from topologies.registry import build_fabric
from traffic import wire
from traffic.tasks import Compute, Flow
from traffic.workloads import build_all, parse_workloads
from traffic.workloads.estimate import estimate, estimate_workloads
from traffic.workloads.volume import message_wire_bytes, packets

FABRIC = leaf_spine(mtu="4140 B")  # payload of a packet: 4096 bytes
JOB = {"kind": "training", "ranks": 8, "bytes": "16 MiB", "compute": "2 ms", "iterations": 3}
CHAT = {
    "kind": "inference",
    "clients": 2,
    "servers": 4,
    "offset": 8,
    "arrivals": {"rate": "20 /s", "requests": 10},
}


def test_packets_of_a_message() -> None:
    """Full packets and a rest; an empty message still takes a packet."""
    assert [packets(size, 1000) for size in (0, 1, 1000, 1001, 2000)] == [1, 1, 1, 2, 2]


def test_line_time_of_a_message() -> None:
    """82 bytes go with each packet, payloads are padded to 4 bytes, frames to 60."""
    assert message_wire_bytes(4096, 4096) == 4096 + 82
    assert message_wire_bytes(8193, 4096) == 2 * (4096 + 82) + (4 + 82)
    assert message_wire_bytes(0, 4096) == 84


def test_volumes_of_a_ring() -> None:
    """8 ranks, 16 MiB, 3 iterations: 336 flows, 2(N-1) S bytes each, 42 messages a pair."""
    found = estimate_workloads(parse_workloads([JOB]), FABRIC, 7)
    assert found.flows == 3 * 112
    assert found.payload_bytes == 3 * 14 * 16 * 2**20
    assert found.data_packets == 3 * 112 * 512
    assert found.pair_bytes == {(f"h{n}", f"h{n % 8 + 1}"): 42 * 2 * 2**20 for n in range(1, 9)}


def test_bounds_of_a_ring() -> None:
    """The chain alternates computation and 14 steps; the link bound is the messages alone."""
    found = estimate_workloads(parse_workloads([JOB]), FABRIC, 7, path_delay_ns=1000)
    step_ns = 512 * 4178 * 8 // 100
    assert found.link_bound_ns == 42 * step_ns
    assert found.resource_bound_ns == 3 * 2_000_000
    assert found.chain_bound_ns == 3 * (2_000_000 + 14 * (step_ns + 1000))
    assert found.least_duration_ns == found.chain_bound_ns


def test_shrink_shortens_in_proportion() -> None:
    """Half the bytes and half the computation take half the time; the number of flows stays."""
    specs = parse_workloads([JOB])
    whole, half = (estimate_workloads(specs, FABRIC, 7, shrink) for shrink in (1.0, 2.0))
    assert half.flows == whole.flows
    assert half.payload_bytes * 2 == whole.payload_bytes
    assert half.least_duration_ns * 2 == pytest.approx(whole.least_duration_ns, abs=50)


def test_an_incast_is_bound_by_its_receiver() -> None:
    """Five senders to one host: the receiver's link carries all of it."""
    raw = {"kind": "background", "pattern": "incast", "hosts": 6, "bytes": "4 MiB"}
    found = estimate_workloads(parse_workloads([raw]), FABRIC, 7)
    assert found.link_bound_ns == 5 * (1024 * 4178 * 8 // 100)
    assert found.chain_bound_ns * 5 == found.link_bound_ns


def test_the_slower_end_decides() -> None:
    """A message between hosts of different rates takes the time of the slower link."""
    fabric = slow_h2()
    tasks = [Flow(1, "j", "h1", "h2", 4096, 0, "f"), Flow(2, "j", "h1", "h3", 4096, 0, "f")]
    found = estimate(tasks, fabric)
    assert found.chain_bound_ns == 4178 * 8 // 10
    assert found.link_bound_ns == 4178 * 8 // 10


def slow_h2() -> Fabric:
    """A fabric in which h2 hangs on 10 Gbit/s."""
    shape = {"leaves": 1, "spines": 0, "hosts_per_leaf": 3, "mtu": "4140 B"}
    links = [{"between": ["h2", "leaf1"], "rate": "10 Gbit/s"}]
    return build_fabric({"kind": "leaf-spine", **shape, "links": links})


def test_start_and_delay_are_part_of_a_chain() -> None:
    """A late start and a delay lengthen the chain, not the links' work."""
    first = Compute(1, "j", "", 100, "c", start_ns=5000)
    second = Compute(2, "j", "", 100, "c", after=(1,), delay_ns=40)
    found = estimate([first, second], FABRIC)
    assert found.chain_bound_ns == 5000 + 100 + 40 + 100
    assert (found.link_bound_ns, found.resource_bound_ns, found.flows) == (0, 0, 0)


def test_nothing_takes_no_time() -> None:
    """No tasks: all zero."""
    assert estimate([], FABRIC).least_duration_ns == 0


@pytest.mark.parametrize("raw", [JOB, CHAT], ids=["training", "inference"])
def test_no_run_undercuts_the_bound(raw: dict[str, Any]) -> None:
    """Even an ideal network that is slower only by headers does not beat the least duration."""
    workloads = build_all(parse_workloads([raw]), FABRIC, 7)
    tasks = [task for workload in workloads for task in workload.tasks]
    payload = wire.max_payload_bytes(FABRIC.mtu_bytes)

    def headers_ns(flow: Flow) -> int:
        extra_bytes = message_wire_bytes(flow.size_bytes, payload) - flow.size_bytes
        return -(-extra_bytes * 8 // 100)

    schedule = IdealNetwork(rate_bps=100_000_000_000, extra_ns=headers_ns).run(tasks)
    ended = max(done for _, done in schedule.times().values())
    assert estimate(tasks, FABRIC).least_duration_ns <= ended


def test_names_must_differ() -> None:
    """Two workloads of one name are refused, and so is a second one without a name."""
    with pytest.raises(SpecError, match=r"workloads\[1\].name: 'training' is also the name of w"):
        parse_workloads([JOB, JOB])


def test_ids_are_unique_over_all_workloads() -> None:
    """Ids of the second workload follow those of the first, without gaps."""
    workloads = build_all(parse_workloads([JOB, CHAT]), FABRIC, 7)
    ids = [task.id for workload in workloads for task in workload.tasks]
    assert sorted(ids) == list(range(len(ids)))
    assert [workload.meta["first_id"] for workload in workloads] == [0, 3 * 120]


def test_workloads_must_be_a_list_of_mappings() -> None:
    """Anything else is one clear error."""
    with pytest.raises(SpecError, match=r"workloads\[0\]: 'training' must be a mapping"):
        parse_workloads(["training"])
    with pytest.raises(SpecError, match="'kind' is missing"):
        parse_workloads([{}])
