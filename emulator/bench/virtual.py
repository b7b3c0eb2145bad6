"""The virtual clock: data packets per second of wall time, and how soon the first one leaves.

Every host sends to one behind another leaf, over three switches at 100 Gbit/s, with all that a run
has: data plane, shaping, delays, reliable transport, samples, tables. Fabrics of 8, 16 and 64
hosts, about as many packets each, so that the cost per packet can be compared.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from emulator import calibration
from emulator.bench.rows import Row, at_least, at_most
from emulator.bench.setting import Setting
from emulator.clock.virtual import kernel, launch, phases
from emulator.run.progress import Progress
from emulator.run.supervising import Interrupt
from emulator.spec.load import assemble
from emulator.spec.model import Experiment
from emulator.spec.yamlfile import Document

NAME = "virtual"
SUMMARY = "data packets of 4096 B payload over 3 switches per second of wall time in a guest"
SHAPES: Mapping[int, tuple[int, int, int]] = {8: (4, 2, 2), 16: (4, 2, 4), 64: (8, 4, 8)}
"""Hosts -> leaves, spines, hosts per leaf."""
PACKETS = 160_000
PAYLOAD_BYTES = 4096
LEAST_PPS = 50_000.0
FLAT = 1.2
START_LIMITS_S: Mapping[int, float] = {16: 25.0, 64: 40.0}


def experiment(hosts: int, packets: int = PACKETS) -> Experiment:
    """The load on a fabric of so many hosts."""
    leaves, spines, per_leaf = SHAPES[hosts]
    link = {"rate": "100 Gbit/s", "delay": "1 us"}
    data = {
        "name": f"{NAME}-{hosts}",
        "clock": "virtual",
        "shrink": 1,
        "fabric": {"kind": "leaf-spine", "leaves": leaves, "spines": spines,
                   "hosts_per_leaf": per_leaf, "host_link": link,
                   "fabric_link": {"rate": f"{100 * per_leaf // spines} Gbit/s", "delay": "1 us"}},
        "routing": {"policy": "static"},
        "transport": {"payload": f"{PAYLOAD_BYTES} B", "window": "auto"},
        "workloads": [{"kind": "background", "name": "load", "pattern": "permutation",
                       "cross_leaf": True, "class": 3,
                       "bytes": f"{packets // hosts * PAYLOAD_BYTES} B"}],
    }  # fmt: skip
    return assemble(Document(data, {}, NAME), Path(f"{NAME}.yaml"))


def measure(setting: Setting) -> list[Row]:
    """One run for each fabric; a remark when there is no kernel to run a guest with."""
    if kernel.find() is None:
        return [Row("not measured", 0, "", remark="fabriclab kernel build comes first")]
    wall: dict[int, Mapping[str, object]] = {}
    for hosts in SHAPES:
        setting.note(f"virtual: {hosts} hosts")
        wall[hosts] = _run(experiment(hosts), setting.folder)
    return rows(
        {hosts: _number(found["data_packets_per_s"]) for hosts, found in wall.items()},
        {hosts: start_s(found) for hosts, found in wall.items()},
        calibration.cached(),
    )


def _run(chosen: Experiment, folder: Path) -> Mapping[str, object]:
    interrupt = Interrupt()
    with interrupt.armed():
        outcome = launch.run(chosen, "", folder, Progress(quiet=True), interrupt)
    if outcome.interrupted:
        raise KeyboardInterrupt
    found: dict[str, object] = json.loads((outcome.folder / launch.WALL).read_text())
    return found if outcome.verdict.valid else {**found, "data_packets_per_s": 0}


def start_s(wall: Mapping[str, object]) -> float:
    """Wall seconds from the command to the first workload packet, by wall.json."""
    taken = wall["phases_s"]
    assert isinstance(taken, Mapping)
    before = list(taken).index(phases.TRAFFIC)
    return sum(_number(value) for value in list(taken.values())[:before])


def _number(value: object) -> float:
    assert isinstance(value, int | float)
    return float(value)


def rows(
    pps: Mapping[int, float], started_s: Mapping[int, float], live_pps: float | None
) -> list[Row]:
    """The figures as rows.

    Args:
        pps: hosts -> data packets per wall second; 0 = not VALID.
        started_s: hosts -> wall seconds to the first packet.
        live_pps: what the live clock carries on this machine; None = never measured.
    """
    found = [at_least(f"packets, {n} hosts", rate, "packets/s", LEAST_PPS)
             for n, rate in pps.items()]  # fmt: skip
    fastest, slowest = max(pps.values()), min(pps.values())
    ratio = fastest / slowest if slowest else float("inf")
    found.append(at_most("cost per packet, dearest to cheapest", ratio, "times", FLAT))
    if live_pps:
        beside = "three switches, live clock: its greatest load, not a VALID one"
        found.append(Row("live clock, for comparison", live_pps, "packets/s", remark=beside))
    found += [at_most(f"first packet, {n} hosts", started_s[n], "s", limit)
              for n, limit in START_LIMITS_S.items()]  # fmt: skip
    return found
