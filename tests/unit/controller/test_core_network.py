"""The whole network: events in, messages out, over fake switches."""

from __future__ import annotations

from dataclasses import replace

import pytest

from controller.core.events import (
    BarrierDone,
    PortChanged,
    PortState,
    SwitchConnected,
    SwitchGone,
)
from controller.core.messages import Barrier, FlowMod, Match, Rule
from controller.core.network import Network
from controller.core.pipeline import FORWARD, Pipeline, PipelineError
from controller.policies.registry import build_policy
from tests.fakes.fabrics import leaf_spine, link_between
from tests.fakes.network import BlackHole, FakeNetwork, Packet
from topologies.addressing import dpid
from topologies.model import Fabric
from topologies.registry import build_fabric


def network_of(fabric: Fabric, seed: int = 7, generation: int = 1) -> Network:
    """A network under ecmp."""
    return Network(fabric, build_policy({}, fabric), seed, generation=generation)


def started(fabric: Fabric) -> tuple[Network, FakeNetwork]:
    """A controller and its fake switches, connected and settled."""
    network, fake = network_of(fabric), FakeNetwork(fabric)
    fake.connect_all(network)
    return network, fake


def dpid_of(fabric: Fabric, switch: str) -> int:
    """The datapath id of a switch."""
    return dpid(fabric.by_name[switch])


def test_ready_when_the_last_switch_has_confirmed() -> None:
    """Not before: neither when some are missing nor when a barrier is open."""
    fabric = leaf_spine(2, 1)
    network, fake = network_of(fabric), FakeNetwork(fabric)
    for node in fabric.switches[:-1]:
        fake.connect(network, node.name)
    assert not network.status().ready
    last = fabric.switches[-1].name
    event = SwitchConnected(dpid_of(fabric, last), fake.ports_as_reported(last))
    answers = fake.apply(network.handle(event, 0))
    assert not network.status().ready
    fake.settle(network, answers)
    assert network.status().ready


def test_messages_go_to_the_switch_that_connected_only() -> None:
    """While nothing failed, one switch's arrival concerns no other."""
    fabric = leaf_spine(3, 2)
    network, fake = network_of(fabric), FakeNetwork(fabric)
    for node in fabric.switches:
        event = SwitchConnected(dpid(node), fake.ports_as_reported(node.name))
        assert {number for number, _ in network.handle(event, 0)} == {dpid(node)}


def test_tables_hold_what_the_status_counts() -> None:
    """The rules in the switches are as many as the status says."""
    network, fake = started(leaf_spine(3, 2, hosts_per_leaf=2))
    held = {number: len(table) for number, table in fake.tables.items()}
    status = network.status()
    assert {entry.dpid: entry.rules for entry in status.switches} == held
    assert status.rules == sum(held.values())


def test_rules_hash_depends_on_forwarding_only() -> None:
    """Equal for another generation, different for another seed or while a link is down."""
    fabric = leaf_spine(3, 3)
    network, fake = started(fabric)
    normal = network.status().rules_hash
    assert network_of(fabric, generation=99).status().rules_hash == normal
    assert network_of(fabric, seed=8).status().rules_hash != normal
    link = link_between(fabric, "leaf1", "spine1").id
    fake.set_link(network, link, up=False)
    assert network.status().rules_hash != normal
    fake.set_link(network, link, up=True)
    assert network.status().rules_hash == normal


def test_failed_uplink_is_avoided_at_both_ends() -> None:
    """Neither the leaf's own packets nor those of others towards it take the failed link."""
    fabric = leaf_spine(3, 2)
    network, fake = started(fabric)
    fake.set_link(network, link_between(fabric, "leaf1", "spine1").id, up=False)
    for port in range(64):
        assert fake.walk(Packet("h1", "h3", source_port=port))[2].node == "spine2"
        assert fake.walk(Packet("h3", "h1", source_port=port))[2].node == "spine2"
    others = {fake.walk(Packet("h2", "h3", source_port=port))[2].node for port in range(64)}
    assert others == {"spine1", "spine2"}
    assert network.status().links_down == (("leaf1-eth2", "spine1-eth1"),)


def test_second_end_of_a_failed_link_changes_nothing_more() -> None:
    """The first report re-routes; the other end's report of the same failure sends nothing."""
    fabric = leaf_spine(2, 2)
    network, _ = started(fabric)
    first = PortChanged(dpid_of(fabric, "leaf1"), PortState(2, "leaf1-eth2", False))
    second = PortChanged(dpid_of(fabric, "spine1"), PortState(1, "spine1-eth1", False))
    assert network.handle(first, 0)
    assert network.handle(second, 0) == []
    up = replace(first, port=PortState(2, "leaf1-eth2", True))
    assert network.handle(up, 0) == []
    assert network.handle(replace(second, port=PortState(1, "spine1-eth1", True)), 0)


def test_other_plane_is_left_alone() -> None:
    """A failure concerns the switches of its plane only."""
    plane = {"leaves": 2, "spines": 2, "hosts_per_leaf": 1}
    fabric = build_fabric({"kind": "front-back", "front": plane, "back": plane})
    network, _ = started(fabric)
    port = fabric.port_named("p2leaf1-eth2")
    event = PortChanged(dpid_of(fabric, "p2leaf1"), PortState(port.number, port.name, False))
    names = {dpid(node): node.name for node in fabric.switches}
    touched = {names[number] for number, _ in network.handle(event, 0)}
    assert touched == {"p2leaf1", "p2leaf2", "p2spine1"}


def test_host_link_down_is_reported_and_changes_no_rule() -> None:
    """There is no other way to a host; its packets are lost at its port."""
    fabric = leaf_spine(2, 2)
    network, fake = started(fabric)
    before = network.status().rules_hash
    fake.set_link(network, link_between(fabric, "h1", "leaf1").id, up=False)
    assert network.status().links_down == (("h1-eth1", "leaf1-eth1"),)
    assert network.status().rules_hash == before
    with pytest.raises(BlackHole):
        fake.walk(Packet("h2", "h1"))


def test_switch_that_was_away_learns_what_it_missed() -> None:
    """A link fails while a leaf is disconnected: it gets the new rules when it comes back."""
    fabric = leaf_spine(3, 2)
    network, fake = started(fabric)
    network.handle(SwitchGone(dpid_of(fabric, "leaf2")), 0)
    assert not network.status().ready
    fake.down.add(link := link_between(fabric, "leaf1", "spine1").id)
    for name in ("leaf1", "spine1"):
        port = next(p for p in fabric.ports_of[name] if p.link == link)
        event = PortChanged(dpid_of(fabric, name), PortState(port.number, port.name, False))
        sent = network.handle(event, 0)
        assert dpid_of(fabric, "leaf2") not in {number for number, _ in sent}
        fake.settle(network, fake.apply(sent))
    fake.connect(network, "leaf2")
    assert network.status().ready
    for port_number in range(64):
        packet = Packet("h2", "h1", source_port=port_number)
        assert fake.walk(packet)[2].node == "spine2"


def test_port_that_is_missing_at_connect_is_down() -> None:
    """A switch that does not report a port of the fabric has not got it."""
    fabric = leaf_spine(2, 2)
    network, fake = network_of(fabric), FakeNetwork(fabric)
    ports = tuple(p for p in fake.ports_as_reported("leaf1") if p.name != "leaf1-eth3")
    network.handle(SwitchConnected(dpid_of(fabric, "leaf1"), ports), 0)
    assert network.status().links_down == (("leaf1-eth3", "spine2-eth1"),)


@pytest.mark.parametrize(
    ("port", "problem"),
    [
        (PortState(2, "eth7", True), "port 2 of leaf1 is eth7, not leaf1-eth2"),
        (PortState(9, "leaf1-eth9", True), "port 9 of leaf1 is leaf1-eth9, no port of the fabric"),
    ],
)
def test_wiring_that_contradicts_the_file_is_a_problem(port: PortState, problem: str) -> None:
    """Each contradiction is noted once, at connect and later."""
    fabric = leaf_spine(2, 2)
    network, _ = started(fabric)
    for _ in range(2):
        network.handle(PortChanged(dpid_of(fabric, "leaf1"), port), 0)
    assert network.status().problems == (problem,)


def test_own_port_of_the_bridge_is_no_problem() -> None:
    """Every switch reports its local port too."""
    fabric = leaf_spine(2, 2)
    network, fake = network_of(fabric), FakeNetwork(fabric)
    local = PortState(0xFFFFFFFE, "leaf1", False)
    event = SwitchConnected(dpid_of(fabric, "leaf1"), (*fake.ports_as_reported("leaf1"), local))
    network.handle(event, 0)
    assert network.status().problems == ()


def test_unknown_switch_gets_nothing() -> None:
    """A switch that the file does not have is a problem, not a crash, and is sent no rules."""
    network, _ = started(leaf_spine(2, 2))
    assert network.handle(SwitchConnected(0x99, ()), 0) == []
    assert network.status().problems == ("switch 0x99 is not in the fabric",)
    assert network.status().ready


def test_reconnect_gets_a_new_generation() -> None:
    """Each connection has a cookie of its own, and the table ends with that one only."""
    fabric = leaf_spine(2, 1)
    network, fake = started(fabric)
    before = {entry.cookie for entry in fake.table("leaf1").entries}
    fake.connect(network, "leaf1")
    after = {entry.cookie for entry in fake.table("leaf1").entries}
    assert len(before) == len(after) == 1
    assert before != after
    assert [s.connects for s in network.status().switches if s.name == "leaf1"] == [2]


def test_reconnect_with_a_failed_port_is_told_once() -> None:
    """The switch gets each rule once, already without the failed link; others get the change."""
    fabric = leaf_spine(3, 2)
    network, fake = started(fabric)
    fake.down.add(link_between(fabric, "leaf1", "spine1").id)
    number = dpid_of(fabric, "leaf1")
    sent = network.handle(SwitchConnected(number, fake.ports_as_reported("leaf1")), 0)
    added = [m for to, m in sent if to == number and isinstance(m, FlowMod) and m.actions]
    keys = {(message.priority, message.match) for message in added}
    assert len(added) == len(keys) == network.status().switches[0].rules - 1
    assert {to for to, _ in sent} > {number}


def test_paths_of_a_seed_never_change() -> None:
    """A run of another version, machine or day takes the same paths: the rules are these."""
    assert network_of(leaf_spine(4, 2, hosts_per_leaf=4)).status().rules_hash == "65aa846ed1c98334"


def test_reconnect_removes_foreign_rules() -> None:
    """What someone else put into the table is gone after a connection."""
    fabric = leaf_spine(2, 1)
    network, fake = started(fabric)
    fake.table("leaf1").apply(FlowMod.add(Rule(500, Match()), 0))
    fake.connect(network, "leaf1")
    assert 500 not in {entry.priority for entry in fake.table("leaf1").entries}


def test_tokens_are_unique_among_switches() -> None:
    """No two barriers have the same token."""
    fabric = leaf_spine(3, 2)
    network, fake = network_of(fabric), FakeNetwork(fabric)
    tokens = [
        message.token
        for node in fabric.switches
        for _, message in network.handle(
            SwitchConnected(dpid(node), fake.ports_as_reported(node.name)), 0
        )
        if isinstance(message, Barrier)
    ]
    assert len(tokens) == len(set(tokens)) == 10


def test_install_time_is_measured() -> None:
    """From the connection to the answer of the last barrier."""
    fabric = leaf_spine(1, 0)
    network, fake = network_of(fabric), FakeNetwork(fabric)
    number = dpid_of(fabric, "leaf1")
    sent = network.handle(SwitchConnected(number, fake.ports_as_reported("leaf1")), 1_000)
    for answer in fake.apply(sent):
        assert isinstance(answer, BarrierDone)
        network.handle(answer, 31_000)
    assert network.status().switches[0].install_ns == 30_000


def test_path_of_follows_failures() -> None:
    """The path that is reported is the one that packets take now."""
    fabric = leaf_spine(3, 3, hosts_per_leaf=2)
    network, fake = started(fabric)
    for down in ("spine1", "spine3"):
        fake.set_link(network, link_between(fabric, "leaf2", down).id, up=False)
        for port in range(64):
            packet = Packet("h1", "h4", source_port=port)
            assert network.path_of("h1", "h4", port) == fake.walk(packet)


def test_undeclared_message_is_refused() -> None:
    """The network checks all that it sends against its pipeline."""
    fabric = leaf_spine(2, 2)
    bands = tuple(band for band in FORWARD.bands if band.name != "bucket")
    pipeline = Pipeline((replace(FORWARD, bands=bands),))
    network = Network(fabric, build_policy({}, fabric), 7, pipeline=pipeline)
    event = SwitchConnected(
        dpid_of(fabric, "leaf1"), FakeNetwork(fabric).ports_as_reported("leaf1")
    )
    with pytest.raises(PipelineError, match="priority 2000"):
        network.handle(event, 0)
