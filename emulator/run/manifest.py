"""manifest.json: everything that a result depends on, and where it came from."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from emulator.fabric import LiveFabric
from emulator.plan import Plan
from emulator.results import columns
from emulator.run.depends import depends_on, installation
from emulator.run.inputs import InputFile
from emulator.run.machine import description
from emulator.run.traffic import Traffic
from emulator.spec.model import Experiment
from topologies.files import rule_to_dict
from topologies.model import Fabric


def manifest_of(
    experiment: Experiment,
    plan: Plan,
    live: LiveFabric,
    run_id: str,
    started: datetime,
    emulated_bps: Sequence[int],
    label: str,
    prepared: Traffic | None,
    wall_s: float | None,
    workloads: Sequence[Mapping[str, Any]],
    inputs: Sequence[InputFile] = (),
    installed: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The manifest's content; what is not known yet is null.

    `inputs` are the experiment's input files, `installed` is what `depends.installation` found.
    """
    installed = installation() if installed is None else installed
    fabric = _fabric_facts(live)
    return {
        "run": run_id,
        "name": experiment.name,
        "label": label,
        "seed": experiment.seed,
        "profile": experiment.profile,
        "clock": experiment.clock,
        "started": started.isoformat(),
        "wall_s": wall_s,
        **_scale(plan),
        columns.DEPENDS_ON: depends_on(experiment, plan.scaling.scale, inputs, installed, fabric),
        "versions": {**installed["versions"], "open-vswitch": live.ovs_version},
        **_machine(live),
        "shaper_burst_ns": live.settings.burst_ns,
        "idle_hop_us": None if prepared is None else prepared.software_hop_us,
        **_unloaded(plan),
        "ecn": [rule_to_dict(rule) for rule in experiment.ecn],
        "ports": _ports(experiment.fabric, emulated_bps),
        "workloads": [{key: meta.get(key) for key in ("name", "kind")} for meta in workloads],
    }


def _scale(plan: Plan) -> dict[str, Any]:
    dilation, shrink = plan.scaling.dilation, plan.scaling.shrink
    return {
        "dilation": dilation.value,
        "shrink": shrink.value,
        "scale_reasons": {"dilation": dilation.reason, "shrink": shrink.reason},
        "capacity_pps": plan.scaling.capacity_pps,
    }


def _fabric_facts(live: LiveFabric) -> dict[str, str | None]:
    """What results depend on and only a running fabric knows."""
    return {
        "open-vswitch": live.ovs_version,
        "controller": live.controller_state().get("framework"),
        "datapath": live.settings.datapath,
    }


def _machine(live: LiveFabric) -> dict[str, Any]:
    """What the run was made of, and what it changed."""
    state = live.controller_state()
    changed = {name: {"before": value} for name, value in live.sysctls_before.items()}
    return {
        "kernel": platform.release(),
        "controller": {key: state.get(key) for key in ("framework", "rules", "rules_hash")},
        "datapath": live.settings.datapath,
        "priority": live.priority,
        "machine": description(),
        "sysctls": {"changed": changed},
        "timings_s": dict(live.timings_s),
    }


def _unloaded(plan: Plan) -> dict[str, Any]:
    """One-way times of the idle fabric: of probes, and of full data packets."""
    return {
        "unloaded": [
            {"class": None, "latency_ns": entry.one_way_ns, "pair": entry.pair.name}
            for entry in plan.probe_pairs
        ],
        "unloaded_full": [
            {"hops": entry.pair.switches, "latency_ns": entry.one_way_ns, "pair": entry.pair.name}
            for entry in plan.pairs
        ],
    }


def _ports(fabric: Fabric, emulated_bps: Sequence[int]) -> list[dict[str, Any]]:
    return [
        {
            "name": port.name,
            "node": port.node,
            "peer": fabric.port(port.peer).name,
            "rate_bps": fabric.link_of(port).rate_bps,
            "emulated_bps": emulated_bps[port.link],
            "delay_ns": fabric.link_of(port).delay_ns,
        }
        for port in fabric.ports
    ]
