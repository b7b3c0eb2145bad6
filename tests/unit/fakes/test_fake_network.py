"""The fake network walks packets along rules, and notices when they do not arrive."""

from __future__ import annotations

from itertools import pairwise

import pytest

from controller.core.messages import Command, FlowMod, Match, Output
from tests.fakes.fabrics import leaf_spine, link_between
from tests.fakes.network import BlackHole, FakeNetwork, Loop, Packet, WrongHost

PACKET = Packet("h1", "h2")


@pytest.fixture
def network() -> FakeNetwork:
    """Two leaves with a host each, two spines; no rules."""
    return FakeNetwork(leaf_spine(2, 2, 1))


def send_all(network: FakeNetwork, switch: str, interface: str) -> None:
    """Make a switch send everything out of one interface."""
    number = network.fabric.port_named(interface).number
    rule = FlowMod(Command.ADD, Match(), 1, (Output(number),))
    network.table(switch).apply(rule)


def towards(network: FakeNetwork, switch: str, neighbour: str) -> str:
    """The interface of a switch that leads to a neighbour."""
    for port in network.fabric.ports_of[switch]:
        if network.fabric.port(port.peer).node == neighbour:
            return port.name
    raise KeyError(neighbour)


def lay(network: FakeNetwork, *hops: str) -> None:
    """Rules along a path of nodes; the last one needs none."""
    for here, there in pairwise(hops):
        send_all(network, here, towards(network, here, there))


def test_walk_gives_the_ports_of_the_path(network: FakeNetwork) -> None:
    """The ports that the packet leaves by, from its host on."""
    lay(network, "leaf1", "spine2", "leaf2", "h2")
    names = [port.name for port in network.walk(PACKET)]
    assert names == ["h1-eth1", towards(network, "leaf1", "spine2"),
                     towards(network, "spine2", "leaf2"), "leaf2-eth1"]  # fmt: skip


def test_no_rule_is_a_black_hole(network: FakeNetwork) -> None:
    """A switch without a rule for the packet is named."""
    lay(network, "leaf1", "spine1")
    with pytest.raises(BlackHole, match="dropped at spine1"):
        network.walk(PACKET)


def test_link_down_is_a_black_hole(network: FakeNetwork) -> None:
    """A rule that sends into a link that is down loses the packet."""
    lay(network, "leaf1", "spine1", "leaf2", "h2")
    network.down.add(link_between(network.fabric, "leaf2", "spine1").id)
    with pytest.raises(BlackHole, match="is down"):
        network.walk(PACKET)


def test_loop_is_found(network: FakeNetwork) -> None:
    """A packet that comes to a switch for the second time goes round."""
    lay(network, "leaf1", "spine1", "leaf2", "spine2", "leaf1")
    with pytest.raises(Loop, match="leaf1 spine1 leaf2 spine2 leaf1"):
        network.walk(PACKET)


def test_wrong_host_is_found() -> None:
    """Arriving at another host is not arriving."""
    network = FakeNetwork(leaf_spine(1, 0, 3))
    send_all(network, "leaf1", "leaf1-eth3")
    with pytest.raises(WrongHost, match="arrived at h3"):
        network.walk(PACKET)
