"""The data plane's tables: what is written for the programs, what is read from their counters."""

from __future__ import annotations

import pytest

from emulator.dataplane import layout
from tests.fakes.fabrics import leaf_spine
from tests.fakes.plane import LENGTH, FakePlane
from topologies.errors import SpecError
from topologies.pause import settle, settled
from topologies.settings import BufferRule, EcnRule, PfcRule, TrimRule

FABRIC = leaf_spine(2, 2, 2)
WAY = ("h1-eth1", "leaf1-eth3", "spine1-eth2", "leaf2-eth1")
"""Egress ports of a packet from h1 to h3 over spine1."""


def plane() -> FakePlane:
    """An idle data plane."""
    return FakePlane(FABRIC)


def test_every_port_knows_its_peer_its_switch_and_its_rate() -> None:
    """What the programs read for each packet."""
    one = plane()
    for port in FABRIC.ports:
        config = one.configs[port.index]
        assert config["peer"] == port.peer
        is_switch = FABRIC.by_name[port.node].is_switch
        assert config["flags"] == (layout.FLAG_SWITCH if is_switch else 0)
        if is_switch:
            assert config["switch_id"] == one.switch_ids[port.node]
        rate_bps = one.emulated_bps[port.link]
        assert int(config["ns_per_kib"]) == pytest.approx(1024 * 8e9 / rate_bps, abs=0.5)
    assert set(one.switches["buffer_bytes"].tolist()) == {FABRIC.buffer_bytes}


def test_pause_is_written_per_ingress_port_and_reserved_per_switch() -> None:
    """Alpha in 1/256, sizes in bytes; the headroom of all ports adds up; every port writes tags."""
    one = plane()
    one.apply_pfc(settled([PfcRule(3, 1 / 8, None, 5_000, 40_000)], FABRIC))
    entry = one.pauses["classes"][2, 3]
    assert [int(entry[name]) for name in ("alpha", "xoff", "xon_offset", "headroom")] == [
        32, 0, 5_000, 40_000,
    ]  # fmt: skip
    assert one.switches["reserved_bytes"].tolist() == [160_000, 160_000, 80_000, 80_000]
    assert one.lossless == (3,)
    assert all(one.configs["flags"][1:] & layout.FLAG_TAGS)
    assert not one.pauses["classes"]["headroom"][1].any()


def test_a_pause_rule_can_be_replaced_and_taken_away() -> None:
    """The reservation follows; thresholds of a class that is lossy now do not matter."""
    one = plane()
    one.set_pause(2, 3, settle(PfcRule(3, headroom_bytes=40_000), FABRIC, 2))
    one.set_pause(2, 3, settle(PfcRule(3, None, 9_000, headroom_bytes=50_000), FABRIC, 2))
    entry = one.pauses["classes"][2, 3]
    assert (entry["alpha"], entry["xoff"], entry["xon_offset"]) == (0, 9_000, 8_436)
    assert one.switches["reserved_bytes"][0] == 50_000
    one.set_pause(2, 3, None)
    assert one.switches["reserved_bytes"][0] == 0
    assert one.lossless == ()


def test_what_is_paused_is_no_backlog() -> None:
    """The NICs share this memory: a paused class waits, and the others' backlog counts."""
    one, index = plane(), FABRIC.port_named("h1-eth1").index
    one.enter("h1-eth1", 3)
    one.enter("h1-eth1", 2, tc=5)
    one.set_gate(index, 3, closed=True)
    assert int(one.backlog_wire_bytes()[index]) == 2 * (LENGTH + 24)
    assert one.paused_classes()[index] == 1 << 3
    one.set_gate(index, 5, closed=True)
    assert int(one.backlog_wire_bytes()[index]) == 0
    one.states["run"][index] = 9
    one.set_gate(index, 3, closed=False)
    assert int(one.backlog_wire_bytes()[index]) == 3 * (LENGTH + 24)
    assert one.states["run"][index] == 0


def test_a_discard_is_for_one_class_of_one_port() -> None:
    """Set by the watchdog, and taken back."""
    one = plane()
    one.set_discard(4, 3, on=True)
    assert one.pauses["classes"]["discard"].sum() == one.pauses["classes"]["discard"][4, 3] == 1
    one.set_discard(4, 3, on=False)
    assert not one.pauses["classes"]["discard"].any()


def test_a_reset_forgets_what_was_counted_about_pauses_and_not_what_is_paused() -> None:
    """The number of changes says who is paused."""
    one = plane()
    entry = one.held["classes"][2:3, 3]
    entry["changes"], entry["peak_headroom"], entry["drop_packets"] = 4, 900, 2
    one.reset()
    assert entry["changes"][0] == 4
    assert entry["peak_headroom"][0] == entry["drop_packets"][0] == 0


def test_each_port_has_a_lottery_of_its_own_that_repeats() -> None:
    """Seeds differ between ports and seeds of the run, and are the same again."""
    first, again, other = plane(), plane(), FakePlane(FABRIC, seed=8)
    seeds = first.configs["seed"][1:].tolist()
    assert seeds == again.configs["seed"][1:].tolist()
    assert len(set(seeds)) == len(seeds)
    assert set(seeds).isdisjoint(other.configs["seed"][1:].tolist())


def test_marking_is_written_in_fixed_point() -> None:
    """Thresholds in bytes, the probability in 1/65536, for one class of one port."""
    one = plane()
    one.set_ecn(5, 3, 400_000, 1_600_000, 0.25)
    entry = one.configs["classes"][5, 3]
    assert (int(entry["kmin"]), int(entry["kmax"]), int(entry["pmax"])) == (
        400_000,
        1_600_000,
        16_384,
    )
    assert one.configs["classes"]["kmax"].sum() == 1_600_000
    one.set_ecn(5, 3, 0, 0, 1.0)
    assert not one.configs["classes"]["kmax"].any()


def test_marking_rules_reach_the_ports_that_they_name() -> None:
    """The later rule wins where both fit."""
    one = plane()
    one.apply_ecn([EcnRule(3, 10, 20, 0.5), EcnRule(3, 30, 40, 1.0, "spine1-eth1")])
    for port in FABRIC.ports:
        kmax = int(one.configs["classes"]["kmax"][port.index, 3])
        special = 40 if port.name == "spine1-eth1" else 20
        assert kmax == (special if FABRIC.by_name[port.node].is_switch else 0)
    assert not one.configs["classes"]["kmax"][:, [0, 1, 2, 4, 5, 6, 7]].any()


def test_dynamic_thresholds_are_written_for_all_ports_of_a_switch() -> None:
    """In 1/256; the buffer is that of the switch alone."""
    one = plane()
    one.set_buffer("leaf2", 1_000_000, [1 / 256, 1 / 8, 1, 2, 8, 256, 1, 1])
    for port in FABRIC.ports:
        expected = [1, 32, 256, 512, 2048, 65536, 256, 256] if port.node == "leaf2" else [0] * 8
        assert one.configs["classes"]["alpha"][port.index].tolist() == expected
    assert one.switches["buffer_bytes"][one.switch_ids["leaf2"]] == 1_000_000
    assert one.switches["buffer_bytes"][one.switch_ids["leaf1"]] == FABRIC.buffer_bytes


def test_dynamic_thresholds_by_rules_are_those_of_all_switches() -> None:
    """Classes that no rule names have the default."""
    one = plane()
    one.apply_buffers([BufferRule(3, 1 / 8)])
    alphas = one.configs["classes"]["alpha"]
    for port in FABRIC.ports:
        is_switch = FABRIC.by_name[port.node].is_switch
        assert alphas[port.index, 3] == (32 if is_switch else 0)
        assert alphas[port.index, 0] == (256 if is_switch else 0)


def test_what_is_in_and_not_out_waits() -> None:
    """Frame bytes by class, wire bytes by port."""
    one = plane()
    one.carry(WAY, 10)
    one.enter("leaf1-eth3", 3, tc=3)
    one.enter("leaf1-eth3", 2, tc=6, length=62)
    index = FABRIC.port_named("leaf1-eth3").index
    assert one.queued_bytes()[index].tolist() == [0, 0, 0, 3 * LENGTH, 0, 0, 2 * 62, 0]
    backlog = one.backlog_wire_bytes()
    assert int(backlog[index]) == 3 * (LENGTH + 24) + 2 * (62 + 24)
    assert int(backlog.sum()) == int(backlog[index])


def test_a_packet_between_two_queues_is_inside_a_switch() -> None:
    """Out of the host's queue and not yet in one of the switch's, or dropped by it."""
    one = plane()
    one.carry(WAY, 5)
    assert one.inside_switches() == 0
    one.carry(WAY[:1], 3)
    assert one.inside_switches() == 3
    one.carry(WAY[1:2], 1)
    assert one.inside_switches() == 3
    one.drop(WAY[1])
    one.carry(WAY[2:], 1)
    assert one.inside_switches() == 1


def test_counters_can_be_set_to_zero_and_settings_stay() -> None:
    """A run begins with no counts of the warm-up."""
    one = plane()
    one.set_ecn(5, 3, 10, 20, 1.0)
    one.carry(WAY, 5)
    one.busy("h1-eth1", 300)
    one.switches["in_bytes"] = one.switches["peak_bytes"] = 77
    one.reset()
    assert not one.states.view("u1").any()
    assert not one.switches["in_bytes"].any()
    assert not one.switches["peak_bytes"].any()
    assert one.switches["buffer_bytes"].all()
    assert one.configs["classes"]["kmax"][5, 3] == 20


def test_a_fabric_that_is_too_large_is_refused() -> None:
    """Not cut short: the error says what there is room for."""
    large = leaf_spine(33, 1, 63)
    assert len(large.ports) > layout.MAX_PORTS
    with pytest.raises(SpecError, match="4095"):
        FakePlane(large)


def test_trimming_is_written_per_port_and_class() -> None:
    """Sizes in bytes, the code point as it is; no threshold is 0; the last rule counts."""
    one = plane()
    one.apply_trim([TrimRule(3, 43), TrimRule(2, 50, 128, 90_000, "leaf1-eth3")])
    entry = one.configs["classes"][FABRIC.port_named("leaf1-eth3").index]
    fields = ("trim_bytes", "trim_above", "trim_dscp")
    assert [int(entry[3][name]) for name in fields] == [80, 0, 43]
    assert [int(entry[2][name]) for name in fields] == [128, 90_000, 50]
    assert not one.configs["classes"]["trim_bytes"][FABRIC.port_named("h1-eth1").index].any()
    assert one.trimmable == {2: {6}, 3: {5}}


def test_trimming_can_be_changed_and_switched_off() -> None:
    """With the next packet; a class of which nothing is cut any more is not trimmable."""
    one, index = plane(), FABRIC.port_named("leaf1-eth3").index
    one.set_trim(index, 3, TrimRule(3, 43, threshold_bytes=90_000))
    one.set_trim(index, 3, TrimRule(3, 60))
    assert one.configs["classes"]["trim_above"][index, 3] == 0
    assert one.trimmable == {3: {7}}
    one.set_trim(index, 3, None)
    assert one.configs["classes"]["trim_bytes"][index, 3] == 0
    assert one.trimmable == {}
