"""manifest.json: everything that a result depends on."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import emulator
from emulator.plan import make_plan
from emulator.run.depends import installation, versions
from emulator.run.manifest import manifest_of
from tests.unit.emulator.spec_samples import experiment

CHOSEN = experiment(
    ecn={"kmin": "100 KB", "kmax": "400 KB", "pmax": 0.2},
    probes={"pairs": "all-leaves", "rate": "1000 /s", "classes": [3]},
    dilation=500,
)
PLAN = make_plan(CHOSEN, 20_000)
STARTED = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def manifest(
    prepared: Any = None, wall_s: float | None = None, installed: Any = None
) -> dict[str, Any]:
    """The manifest of a run on a made-up fabric."""
    live: Any = SimpleNamespace(
        controller_state=lambda: {"framework": "ryu 4.34", "rules": 12, "ready": True},
        sysctls_before={"net.core.wmem_default": "212992"},
        ovs_version="3.1.0",
        settings=SimpleNamespace(datapath="netdev", burst_ns=64),
        priority="real-time",
        timings_s={"up": 1.5},
    )
    bps = [link.rate_bps // 500 for link in CHOSEN.fabric.links]
    return manifest_of(
        CHOSEN, PLAN, live, "abc123", STARTED, bps, "label", prepared, wall_s,
        [{"name": "flow", "kind": "background", "tasks": 3}], (), installed,
    )  # fmt: skip


def test_it_says_what_ran_and_under_what() -> None:
    """Identity, scale with its reasons, versions, machine, what was changed."""
    found = manifest(SimpleNamespace(software_hop_us=31.5), 12.5)
    assert (found["run"], found["name"], found["seed"]) == ("abc123", "small", CHOSEN.seed)
    assert (found["started"], found["wall_s"], found["idle_hop_us"]) == (
        "2026-01-02T03:04:05+00:00", 12.5, 31.5,
    )  # fmt: skip
    assert (found["dilation"], found["capacity_pps"]) == (500, 20_000)
    assert set(found["scale_reasons"]) == {"dilation", "shrink"}
    assert found["versions"]["fabriclab"] == emulator.__version__
    assert found["versions"]["open-vswitch"] == "3.1.0"
    assert found["controller"] == {"framework": "ryu 4.34", "rules": 12, "rules_hash": None}
    assert found["sysctls"] == {"changed": {"net.core.wmem_default": {"before": "212992"}}}
    assert (found["datapath"], found["priority"]) == ("netdev", "real-time")
    assert found["shaper_burst_ns"] == 64
    assert found["workloads"] == [{"name": "flow", "kind": "background"}]


def test_every_port_is_listed_in_target_and_emulated_units() -> None:
    """Name, node, peer, rates, delay: what a reader of queues needs."""
    ports = {port["name"]: port for port in manifest()["ports"]}
    assert len(ports) == len(CHOSEN.fabric.ports)
    link = CHOSEN.fabric.links[0]
    assert ports["h1-eth1"] == {
        "name": "h1-eth1", "node": "h1", "peer": "leaf1-eth1", "rate_bps": link.rate_bps,
        "emulated_bps": link.rate_bps // 500, "delay_ns": link.delay_ns,
    }  # fmt: skip
    assert all(ports[port["peer"]]["peer"] == name for name, port in ports.items())


def test_unloaded_times_are_those_of_the_plan() -> None:
    """Of probes and of full packets, by class of path."""
    found = manifest()
    assert [entry["latency_ns"] for entry in found["unloaded"]] == [
        entry.one_way_ns for entry in PLAN.probe_pairs
    ]
    assert {entry["hops"] for entry in found["unloaded_full"]} == {1, 3}


def test_what_is_not_known_yet_is_null() -> None:
    """The first manifest is written before anything was sent; all of it is JSON."""
    found = json.loads(json.dumps(manifest()))
    assert found["wall_s"] is found["idle_hop_us"] is None
    assert found["ecn"][0]["kmax_bytes"] == 400_000


def test_what_results_depend_on_is_in_it() -> None:
    """Of this installation, or of the host that a guest was told about."""
    found = manifest()["depends_on"]
    assert found["sources"] == installation()["sources"]
    assert (found["controller"], found["datapath"]) == ("ryu 4.34", "netdev")
    assert found["versions"]["open-vswitch"] == "3.1.0"
    given = {**installation("guest"), "versions": {"python": "3.99"}}
    found = manifest(installed=given)
    assert found["depends_on"]["kernel"] == "guest"
    assert found["versions"] == {"python": "3.99", "open-vswitch": "3.1.0"}


def test_versions_of_what_is_not_installed_are_left_out() -> None:
    """Ryu or os-ken, whichever there is."""
    found = versions()
    assert {"fabriclab", "python", "numpy", "scapy"} <= set(found)
    assert all(found.values())
