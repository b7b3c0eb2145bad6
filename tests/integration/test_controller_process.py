"""The controller as a process: real OpenFlow over TCP to fake switches, a fake agent, no root."""

from __future__ import annotations

import contextlib
import signal
import socket
import threading
import time
from collections.abc import Iterator
from itertools import cycle, permutations
from pathlib import Path

import pytest

from controller.core.events import PortState
from controller.core.messages import Command, FlowMod
from tests.fakes.agent import FakeAgent
from tests.fakes.controller_config import config_document
from tests.fakes.controller_process import ControllerProcess, free_port, wait_until
from tests.fakes.fabrics import leaf_spine, link_between
from tests.fakes.frameworks import FRAMEWORKS
from tests.fakes.network import FakeNetwork, Packet
from tests.fakes.of_peer import FakeSwitch
from topologies.addressing import dpid
from topologies.model import Fabric

FABRIC = leaf_spine(3, 2, hosts_per_leaf=2)
INSTALL_LIMIT_S = 3.0
"""8 leaves, 4 spines, 64 hosts: from the first connection to the last confirmation."""


class Lab:
    """Fake switches of a fabric that can be connected to a controller.

    Args:
        fabric: what exists.
    """

    def __init__(self, fabric: Fabric) -> None:
        self.fabric = fabric
        self.network = FakeNetwork(fabric)
        self.switches = {
            node.name: FakeSwitch(
                dpid(node), self.network.ports_as_reported(node.name), self.network.table(node.name)
            )
            for node in fabric.switches
        }
        lock = threading.Lock()
        for switch in self.switches.values():
            switch.lock = lock

    @contextlib.contextmanager
    def connected(self, controller: ControllerProcess) -> Iterator[None]:
        """All switches connected; inside of the block the controller has been ready once."""
        controller.wait_listening()
        with contextlib.ExitStack() as stack:
            for switch in self.switches.values():
                switch.connect(controller.port)
                stack.enter_context(switch)
            controller.wait_ready()
            yield

    def packets(self) -> list[Packet]:
        """One packet for each pair of hosts."""
        hosts = [host.name for host in self.fabric.hosts]
        return [
            Packet(src, dst, source_port=0xC000 + number)
            for number, (src, dst) in enumerate(permutations(hosts, 2))
        ]

    def assert_all_reach(self) -> None:
        """Every pair of hosts can talk."""
        for packet in self.packets():
            self.network.walk(packet)

    def report(self, link: int, up: bool) -> None:
        """Both ends of a link tell that it has failed or works again."""
        (self.network.down.discard if up else self.network.down.add)(link)
        for port in self.fabric.ports:
            if port.link == link and port.node in self.switches:
                state = PortState(port.number, port.name, up)
                self.switches[port.node].report_port(state)


def config(folder: Path, fabric: Fabric = FABRIC, **changes: object) -> dict[str, object]:
    """A configuration without an agent, unless `changes` give one."""
    return config_document(fabric, folder, {"agent_socket": None} | changes)


def assert_log_is_clean(controller: ControllerProcess) -> None:
    """Neither an error nor a traceback in the log."""
    text = controller.log.read_text()
    assert "ERROR" not in text
    assert "CRITICAL" not in text
    assert "Traceback" not in text


@pytest.fixture(params=FRAMEWORKS)
def framework(request: pytest.FixtureRequest) -> str:
    """Each framework that is installed."""
    name: str = request.param
    return name


def test_installs_all_rules(tmp_path: Path, framework: str) -> None:
    """All switches get their rules, all pairs reach, and the state file says so."""
    lab = Lab(FABRIC)
    with ControllerProcess(config(tmp_path), tmp_path, framework) as controller:
        with lab.connected(controller):
            lab.assert_all_reach()
            state = controller.state()
            held = {name: len(lab.network.table(name)) for name in lab.switches}
            assert {name: entry["rules"] for name, entry in state["switches"].items()} == held
            assert state["framework"].startswith(framework.replace("_", "-"))
            assert (state["errors"], state["links_down"], state["connects"]) == ([], [], 5)
        gone = "all switches are noted as gone"
        controller.wait_for_state(
            lambda state: not any(s["connected"] for s in state["switches"].values()), gone
        )
        assert controller.state()["ready"] is False
        assert_log_is_clean(controller)


def test_restart_does_not_interrupt_forwarding(tmp_path: Path, framework: str) -> None:
    """The controller is killed; packets go on, also at each message of its successor."""
    lab = Lab(FABRIC)
    first = ControllerProcess(config(tmp_path), tmp_path, framework)
    with first, lab.connected(first):
        rules_hash = first.state()["rules_hash"]
        first.end(signal.SIGKILL)
    lab.assert_all_reach()
    packets = cycle(lab.packets())
    for switch in lab.switches.values():
        switch.watch = lambda: lab.network.walk(next(packets))
    second = ControllerProcess(config(tmp_path), tmp_path, framework)
    with second, lab.connected(second):
        state = second.state()
        assert (state["restarts"], state["rules_hash"]) == (1, rules_hash)
        lab.assert_all_reach()
    for switch in lab.switches.values():
        assert len({entry.cookie for entry in switch.table.entries}) == 1


def test_settings_go_to_the_agent_again_and_again(tmp_path: Path, framework: str) -> None:
    """Not ready before the agent has its settings; a restarted agent gets them again."""
    ecn = [{"tc": 3, "kmin_bytes": 1000, "kmax_bytes": 4000, "pmax": 0.2}]
    scheduler = [{"tc": 0, "priority": 1, "weight": 1}, {"tc": 6, "priority": 0, "weight": 1}]
    path = tmp_path / "agent.sock"
    given = config(tmp_path, agent_socket=str(path), ecn=ecn, scheduler=scheduler, buffer=[])
    ports = sum(len(FABRIC.ports_of[node.name]) for node in FABRIC.switches)
    lab = Lab(FABRIC)
    with ControllerProcess(given, tmp_path, framework) as controller, contextlib.ExitStack() as to:
        controller.wait_listening()
        for switch in lab.switches.values():
            switch.connect(controller.port)
            to.enter_context(switch)
        controller.wait_for_state(
            lambda state: all(s["acknowledged"] for s in state["switches"].values()),
            "all rules are in",
        )
        assert controller.state()["ready"] is False
        for times in (1, 2):
            with FakeAgent(path) as agent:
                controller.wait_ready()
                assert len(agent.calls("hello")) == 1
                assert len(agent.calls("set_ecn")) == len(agent.calls("set_scheduler")) == ports
                assert len(agent.calls("set_buffer")) == len(FABRIC.switches)
                assert controller.state()["settings"]["times"] == times
            controller.wait_for_state(lambda state: not state["ready"], "the agent is missed")
        assert controller.state()["errors"] == []


def test_failed_link_is_avoided_and_used_again(tmp_path: Path, framework: str) -> None:
    """Port status from the switches moves the buckets away and back."""
    lab = Lab(FABRIC)
    link = link_between(FABRIC, "leaf1", "spine2").id
    with ControllerProcess(config(tmp_path), tmp_path, framework) as controller:
        with lab.connected(controller):
            normal = controller.state()["rules_hash"]
            lab.report(link, up=False)
            controller.wait_for_state(
                lambda state: state["ready"] and state["links_down"] != [], "the failure is known"
            )
            assert controller.state()["links_down"] == [["leaf1-eth4", "spine2-eth1"]]
            lab.assert_all_reach()
            lab.report(link, up=True)
            controller.wait_for_state(
                lambda state: state["ready"] and state["links_down"] == [], "the repair is known"
            )
            assert controller.state()["rules_hash"] == normal
            lab.assert_all_reach()
        assert_log_is_clean(controller)


def test_refused_rules_are_errors(tmp_path: Path, framework: str) -> None:
    """A switch whose table is full: ERROR in log and state, with type, code and the rule."""
    lab = Lab(FABRIC)
    lab.network.table("leaf2").capacity = 5
    with ControllerProcess(config(tmp_path), tmp_path, framework) as controller:
        with lab.connected(controller):
            controller.wait_for_state(lambda state: state["errors"] != [], "the errors are noted")
        error = controller.state()["errors"][0]
        assert error.startswith("OpenFlow error of leaf2: OFPET_FLOW_MOD_FAILED")
        assert "OFPFMFC_TABLE_FULL" in error
        assert "in answer to ADD table=0,priority=" in error
        assert f"ERROR controller: {error}" in controller.log.read_text()


def test_wrong_switches_are_errors(tmp_path: Path, framework: str) -> None:
    """A switch that the file does not have gets no rules; a wrongly wired one is named."""
    lab = Lab(FABRIC)
    stranger = FakeSwitch(0xBAD, (), lab.network.table("leaf3"))
    wrong = PortState(1, "eth0", True)
    lab.switches["leaf1"].ports = (wrong, *lab.switches["leaf1"].ports[1:])
    with ControllerProcess(config(tmp_path), tmp_path, framework) as controller:
        with lab.connected(controller):
            stranger.connect(controller.port)
            with stranger:
                controller.wait_for_state(lambda state: len(state["errors"]) == 2, "both are noted")
        assert stranger.messages == []
        assert controller.state()["errors"] == [
            "port 1 of leaf1 is eth0, not leaf1-eth1",
            "switch 0xbad is not in the fabric",
        ]


def test_newer_connection_of_a_switch_counts(tmp_path: Path, framework: str) -> None:
    """When a switch connects again before its old connection is known to be dead, it is there."""
    lab = Lab(FABRIC)
    with ControllerProcess(config(tmp_path), tmp_path, framework) as controller:
        with lab.connected(controller):
            leaf = lab.switches["leaf1"]
            again = FakeSwitch(leaf.dpid, leaf.ports, leaf.table)
            again.connect(controller.port)
            with again:
                controller.wait_for_state(
                    lambda state: state["ready"] and state["connects"] == 6, "it is back"
                )
                leaf.close()
                lab.report(link_between(FABRIC, "leaf2", "spine1").id, up=False)
                controller.wait_for_state(lambda state: state["links_down"] != [], "it is told")
                assert controller.state()["switches"]["leaf1"]["connected"] is True
                wait_until(lambda: is_update(again), "the new connection gets the change")
        assert_log_is_clean(controller)


def is_update(switch: FakeSwitch) -> bool:
    """Whether a switch has been sent changes after all its rules."""
    commands = [m.command for m in switch.messages if isinstance(m, FlowMod)]
    last_delete = max((n for n, c in enumerate(commands) if c is Command.DELETE), default=-1)
    return -1 < last_delete < len(commands) - 1


def test_ends_in_order(tmp_path: Path, framework: str) -> None:
    """SIGTERM: exit code 0, the state says why, the rules stay."""
    lab = Lab(FABRIC)
    with ControllerProcess(config(tmp_path), tmp_path, framework) as controller:
        with lab.connected(controller):
            assert controller.end() == 0
            state = controller.state()
            assert (state["stopped"], state["ready"]) == ("SIGTERM", False)
            lab.assert_all_reach()
        assert_log_is_clean(controller)


def test_unhandled_exception_ends_it(tmp_path: Path, framework: str) -> None:
    """When the state can no longer be written: exit code 1 and a traceback in the log."""
    folder = tmp_path / "results"
    given = config(tmp_path, state_file=str(folder / "state.json"))
    with ControllerProcess(given, tmp_path, framework) as controller:
        controller.wait_listening()
        (folder / "state.json").unlink()
        folder.rmdir()
        folder.write_text("not a folder any more")
        node = FABRIC.switches[0]
        switch = FakeSwitch(dpid(node), (), FakeNetwork(FABRIC).table(node.name))
        switch.connect(controller.port)
        with switch:
            assert controller.process.wait(20) == 1
    text = controller.log.read_text()
    assert "CRITICAL controller: unhandled exception" in text
    assert "Traceback" in text


def test_port_that_is_taken(tmp_path: Path, framework: str) -> None:
    """Exit code 2 and one line that names the port and the way out."""
    with socket.socket() as other:
        port = free_port()
        other.bind(("127.0.0.1", port))
        other.listen()
        with ControllerProcess(config(tmp_path), tmp_path, framework, port) as controller:
            assert controller.process.wait(20) == 2
    lines = controller.log.read_text().splitlines()
    assert len(lines) == 1
    assert lines[0].startswith(f"fabriclab controller: cannot listen on 127.0.0.1:{port}: ")


def test_listens_on_loopback_only(tmp_path: Path, framework: str) -> None:
    """No other address of the machine reaches it."""
    with ControllerProcess(config(tmp_path), tmp_path, framework) as controller:
        controller.wait_listening()
        with socket.socket() as other:
            other.bind(("127.0.0.2", controller.port))


def test_wrong_configuration(tmp_path: Path) -> None:
    """Exit code 2 and one line, before any framework is imported."""
    given = config(tmp_path, routing={"policy": "best"})
    with ControllerProcess(given, tmp_path, "none") as controller:
        assert controller.process.wait(20) == 2
    (line,) = controller.log.read_text().splitlines()
    assert "controller.json: routing.policy: 'best' is not a known policy" in line


def test_unknown_framework(tmp_path: Path) -> None:
    """FABRICLAB_SDN names one of the two, or the controller refuses."""
    with ControllerProcess(config(tmp_path), tmp_path, "pox") as controller:
        assert controller.process.wait(20) == 2
    (line,) = controller.log.read_text().splitlines()
    assert "FABRICLAB_SDN: 'pox' is not a known controller framework" in line


def test_large_fabric_is_quick(tmp_path: Path, framework: str) -> None:
    """8 leaves, 4 spines, 64 hosts: 7,332 rules sent, read and confirmed in time."""
    lab = Lab(leaf_spine(8, 4, hosts_per_leaf=8))
    with ControllerProcess(config(tmp_path, lab.fabric), tmp_path, framework) as controller:
        controller.wait_listening()
        begin = time.monotonic()
        with lab.connected(controller):
            took_s = time.monotonic() - begin
            assert controller.state()["rules"] == 7332
    assert took_s < INSTALL_LIMIT_S
