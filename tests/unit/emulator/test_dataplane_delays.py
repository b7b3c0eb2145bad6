"""What the data plane is told about links and switches that delay packets."""

from __future__ import annotations

import numpy as np
import pytest

from emulator.dataplane.delays import NUMBERS, LinkDelay, link_delays
from emulator.spec.model import CUT_THROUGH, STORE_AND_FORWARD, SwitchSpec
from tests.fakes.fabrics import leaf_spine
from tests.fakes.plane import FakePlane
from topologies.errors import SpecError
from topologies.model import Fabric

MIXED = leaf_spine(
    3, 2, 2, links=[
        {"between": ["h1", "leaf1"], "rate": "25 Gbit/s"},
        {"between": ["leaf3", "spine1"], "rate": "400 Gbit/s"},
    ],
)  # fmt: skip
"""Links of 100 Gbit/s but for h1's and one of leaf3."""


def delays(
    fabric: Fabric, mode: str = CUT_THROUGH, latency_ns: int = 0, dilation: float = 1.0
) -> dict[str, LinkDelay]:
    """Delays of all ports, by interface name."""
    emulated = [round(link.rate_bps / dilation) for link in fabric.links]
    found = link_delays(fabric, emulated, SwitchSpec(mode, latency_ns), dilation)
    return {fabric.port(index).name: delay for index, delay in found.items()}


@pytest.mark.parametrize(("gbps", "ps"), [(400, 20), (100, 80), (10, 800), (30, 267)])
def test_a_byte_takes_picoseconds(gbps: int, ps: int) -> None:
    """Exact for the usual rates, rounded to half a picosecond for others."""
    fabric = leaf_spine(1, 0, 2, host_link={"rate": f"{gbps} Gbit/s", "delay": "500 ns"})
    assert {delay.ps_per_byte for delay in delays(fabric).values()} == {ps}


def test_a_link_ends_with_the_latency_of_the_switch_behind_it() -> None:
    """A host has none."""
    fabric = leaf_spine(2, 1, 1, host_link={"rate": "100 Gbit/s", "delay": "500 ns"})
    found = delays(fabric, latency_ns=300)
    assert found["leaf1-eth1"].link_ns == 500 + 300
    assert found["spine1-eth1"].link_ns == found["leaf1-eth2"].link_ns == 1_000 + 300
    assert found["h1-eth1"].link_ns == 500


def test_dilation_stretches_all_parts() -> None:
    """Delays are multiplied, and rates are the emulated ones."""
    fabric = leaf_spine(1, 0, 2, host_link={"rate": "100 Gbit/s", "delay": "500 ns"})
    one = delays(fabric, latency_ns=300, dilation=10)["leaf1-eth1"]
    assert (one.link_ns, one.header_ns, one.ps_per_byte) == (8_000, 51, 800)


def test_store_and_forward_waits_for_whole_frames_everywhere() -> None:
    """Whatever the destination, and so do hosts with cut-through switches."""
    for name, delay in delays(MIXED, STORE_AND_FORWARD).items():
        assert delay.whole_hosts == delay.whole_leaves == NUMBERS, name
    assert delays(MIXED)["h2-eth1"].whole_hosts == NUMBERS
    assert delays(MIXED)["h2-eth1"].whole_leaves == NUMBERS


def test_cut_through_waits_where_the_egress_is_faster() -> None:
    """By destination: the leaf's own hosts by number, hosts of other leaves by their leaf."""
    found = delays(MIXED)
    slow, usual = found["leaf1-eth1"], found["leaf1-eth2"]
    assert (slow.leaf, slow.whole_hosts, slow.whole_leaves) == (1, {2}, {2, 3})
    assert (usual.leaf, usual.whole_hosts, usual.whole_leaves) == (1, frozenset(), frozenset())
    assert found["leaf3-eth1"].whole_leaves == {1, 2}
    spine = found["spine1-eth1"]
    assert (spine.leaf, spine.whole_hosts, spine.whole_leaves) == (0, frozenset(), {3})
    assert found["spine2-eth1"].whole_leaves == frozenset()


def test_a_frame_takes_its_line_time_or_that_of_its_header() -> None:
    """4154 B are 4178 on the line, 334.24 ns at 100 Gbit/s; 64 B are 5.12 ns; padding counts."""
    usual = delays(MIXED)["leaf1-eth2"]
    assert usual.of(4_154, leaf=1, host=1) == usual.link_ns + 5
    whole = delays(MIXED, STORE_AND_FORWARD)["leaf1-eth2"]
    assert whole.of(4_154, leaf=1, host=1) == whole.link_ns + 334
    assert whole.of(42, leaf=1, host=1) == whole.of(60, leaf=1, host=1) == whole.link_ns + 7


def test_a_delay_that_cannot_be_counted_is_refused() -> None:
    """32 bits of nanoseconds; the way out is a smaller dilation."""
    fabric = leaf_spine(1, 0, 2, host_link={"rate": "100 Gbit/s", "delay": "5 us"})
    with pytest.raises(SpecError, match="dilation"):
        delays(fabric, dilation=1e6)


def members(words: np.ndarray[tuple[int], np.dtype[np.uint32]]) -> set[int]:
    """Numbers in a set of bits."""
    return {n for n in range(256) if words[n // 32] >> np.uint32(n % 32) & np.uint32(1)}


def test_delays_are_written_for_the_programs() -> None:
    """Field by field, sets as bits."""
    plane = FakePlane(MIXED)
    assert not plane.delays_in_path
    assert not plane.configs["ps_per_byte"].any()
    found = delays(MIXED, latency_ns=7)
    plane.set_delays({MIXED.port_named(name).index: delay for name, delay in found.items()})
    assert plane.delays_in_path
    for name, delay in found.items():
        config = plane.configs[MIXED.port_named(name).index]
        for field in ("link_ns", "header_ns", "ps_per_byte", "leaf"):
            assert config[field] == getattr(delay, field)
        assert members(config["whole_hosts"]) == delay.whole_hosts
        assert members(config["whole_leaves"]) == delay.whole_leaves


def test_packets_on_a_link_are_not_inside_a_switch() -> None:
    """Between two queues they are where they belong, so no time of the switches is counted."""
    plane = FakePlane(MIXED)
    plane.carry(["h1-eth1"], 3)
    assert plane.inside_switches() == 3
    plane.set_delays({})
    assert plane.inside_switches() == 0
