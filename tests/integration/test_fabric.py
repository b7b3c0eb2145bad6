"""A fabric that is up carries ordinary traffic, forwards without its controller, and goes."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from emulator import naming
from emulator.fabric import FabricSettings, LiveFabric
from emulator.kernel import netns
from emulator.ownership import Ledger
from emulator.waiting import wait_for
from topologies.registry import build_fabric
from topologies.settings import EcnRule

pytestmark = pytest.mark.root

RATE_BPS = 50_000_000


@pytest.fixture(scope="module")
def live() -> Iterator[LiveFabric]:
    """Two leaves, two spines, four hosts, 50 Mbit/s links."""
    fabric = build_fabric({"kind": "leaf-spine", "leaves": 2, "spines": 2, "hosts_per_leaf": 2})
    rates = [RATE_BPS] * len(fabric.links)
    rules = [EcnRule(3, 400_000, 1_600_000, 0.2)]
    settings = FabricSettings(fabric, rates, 7, ecn=rules)
    with LiveFabric(settings, Ledger(naming.new_run_id())) as built:
        yield built


def test_all_hosts_ping_each_other(live: LiveFabric) -> None:
    """Mininet's own pingAll loses nothing."""
    assert live.net.pingAll(timeout="1") == 0


def test_tcp_fills_the_link(live: LiveFabric) -> None:
    """A megabyte arrives, and iperf3 reaches nine tenths of the shaped rate across the spines."""
    server = live.net["h3"].popen(["iperf3", "-s", "-1"])
    wait_for(lambda: "LISTEN" in live.net["h3"].cmd("ss -tln sport = :5201"), 5, "iperf3")
    done = live.net["h1"].cmd("iperf3 -J -t 3 -O 1 -c 10.1.2.1")
    server.communicate(timeout=10)
    report = json.loads(done)
    achieved = report["end"]["sum_received"]["bits_per_second"]
    assert 0.9 * RATE_BPS < achieved <= RATE_BPS


def test_no_switch_port_floods(live: LiveFabric) -> None:
    """There is no rule that floods, and the table-miss drops."""
    for switch in live.fabric.switches:
        flows = live.ovs.ofctl("dump-flows", switch.name)
        assert "FLOOD" not in flows
        assert "CONTROLLER" not in flows
        assert re.search(r"priority=0\b.*actions=drop", flows)


def test_the_controller_may_die_and_come_back(live: LiveFabric) -> None:
    """Forwarding goes on without it; a new one takes over without a lost packet."""
    before = live.controller_state()["rules_hash"]
    ping = live.net["h1"].popen(["ping", "-i", "0.02", "-c", "200", "-q", "10.1.2.1"])
    live.stop_controller()
    assert "0% packet loss" in live.net["h1"].cmd("ping -c 3 -i 0.05 -W 1 10.1.2.2")
    live.start_controller()
    live.await_controller()
    output, _ = ping.communicate(timeout=30)
    assert b" 0% packet loss" in output
    assert live.controller_state()["rules_hash"] == before
    assert live.controller_state()["errors"] == []


def test_settings_arrived_through_the_agent(live: LiveFabric) -> None:
    """The controller set the marking thresholds of every switch port."""
    for port in live.fabric.ports:
        if live.fabric.by_name[port.node].is_switch:
            entry = live.plane.configs["classes"][port.index, 3]
            assert (entry["kmin"], entry["kmax"]) == (400_000, 1_600_000)


def test_an_idle_fabric_is_silent(live: LiveFabric) -> None:
    """No ARP, IPv6 or discovery chatter: under a packet per second and port."""
    seconds = 3
    before = live.plane.states["classes"]["in_packets"].sum(axis=1).astype(int)
    live.net["h1"].cmd(f"sleep {seconds}")
    after = live.plane.states["classes"]["in_packets"].sum(axis=1).astype(int)
    assert (after - before).max() < seconds


def test_nothing_is_left(tmp_path: Path) -> None:
    """After a fabric is gone: no namespace, no state, no process, settings as before."""
    fabric = build_fabric({"kind": "leaf-spine", "leaves": 1, "spines": 1, "hosts_per_leaf": 2})
    buffers = [Path(f"/proc/sys/net/core/{name}_default") for name in ("wmem", "rmem")]
    before = [path.read_text() for path in buffers]
    run_id = naming.new_run_id()
    with LiveFabric(FabricSettings(fabric, [RATE_BPS] * 3, 1), Ledger(run_id)) as built:
        pids = [entry[0] for entry in built.ledger.owned.processes]
        assert len(pids) >= 3
    assert [path.read_text() for path in buffers] == before
    assert not list(netns.FOLDER.glob(f"*{run_id}*"))
    assert not naming.state_folder(run_id).exists()
    assert not [pid for pid in pids if _runs(pid, run_id)]


def _runs(pid: int, run_id: str) -> bool:
    try:
        return run_id in Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return False


def test_foreign_things_stay(tmp_path: Path, run_id: str) -> None:
    """A namespace and a bridge of somebody else survive a fabric's life and a clean."""
    foreign = f"other-{run_id}"
    subprocess.run(["ip", "netns", "add", foreign], check=True)
    try:
        _ip(foreign, "link", "add", "br0", "type", "bridge")
        fabric = build_fabric({"kind": "leaf-spine", "leaves": 1, "spines": 1, "hosts_per_leaf": 1})
        with LiveFabric(FabricSettings(fabric, [RATE_BPS] * 2, 1), Ledger(naming.new_run_id())):
            pass
        assert "br0" in _ip(foreign, "-br", "link").stdout
    finally:
        subprocess.run(["ip", "netns", "del", foreign], check=True)


def _ip(name: str, *arguments: str) -> Any:
    command = ["ip", "-n", name, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True)
