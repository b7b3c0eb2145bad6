"""Waiting times of random arrivals at a queue of constant service: M/D/1, table V14."""

from __future__ import annotations

import math
import statistics
from pathlib import Path

import pytest

from emulator import naming
from emulator.doctor import datapath
from emulator.fabric import FabricSettings, LiveFabric
from emulator.kernel.forking import Forked
from emulator.kernel.priority import normal_priority, raise_priority
from emulator.ownership import Ledger
from emulator.plan import make_plan
from emulator.results.store import RunFolder
from emulator.run import traffic
from emulator.spec.load import assemble
from emulator.spec.yamlfile import Document
from emulator.waiting import wait_for
from tests.integration.harness import CAPACITY_PPS, leaf_spine
from traffic.wire import wire_bytes

pytestmark = pytest.mark.root

LOADS = (0.5, 0.7, 0.8)
STREAMS = 4
FRAME_BYTES = 4154
DILATION = 8000.0
SECONDS = 45


def test_mean_wait_is_that_of_m_d_1(tmp_path: Path) -> None:
    """Probes of full size at random times wait rho / (2 (1 - rho)) service times, within 10 %."""
    hosts = len(LOADS) * STREAMS
    document = {
        "name": "md1", "fabric": leaf_spine(2, 1, hosts), "dilation": DILATION, "shrink": 1,
        "duration": "1 s",
        "probes": {"pairs": [[f"h{n + 1}", f"h{n + 1 + hosts}"] for n in range(hosts)],
                   "rate": "1000 /s", "classes": [3], "size": f"{FRAME_BYTES} B"},
    }  # fmt: skip
    document["fabric"]["fabric_link"] = {"rate": "3200 Gbit/s", "delay": "1 us"}
    waits = measure(document, tmp_path)
    service_ns = wire_bytes(FRAME_BYTES) * 8 / 100
    for load, samples in waits.items():
        measured = statistics.fmean(samples) / service_ns
        expected = load / (2 * (1 - load))
        assert measured == pytest.approx(expected, rel=0.10), f"load {load}, {len(samples)} packets"


def measure(document: dict[str, object], folder: Path) -> dict[float, list[float]]:
    """Waiting times (ns) by load: latency less that of an idle fabric."""
    experiment = assemble(Document(document, {}, "md1"), folder / "md1.yaml")
    plan = make_plan(experiment, CAPACITY_PPS)
    scale = plan.scaling.scale
    rates = [scale.emulated_bps(link.rate_bps) for link in experiment.fabric.links]
    settings = FabricSettings(
        experiment.fabric, rates, 1, (), experiment.scheduler, experiment.buffers,
        experiment.routing.section, datapath(), DILATION,
    )  # fmt: skip
    service_ns = wire_bytes(FRAME_BYTES) * 8 / 100
    with LiveFabric(settings, Ledger(naming.new_run_id())) as live:
        raise_priority()
        try:
            ready = traffic.prepare(live, experiment, plan, [], lambda _text: None)
            for number, stream in enumerate(ready.plan.probes):
                stream.interval_ns = service_ns / LOADS[number % len(LOADS)]
                stream.poisson = True
                stream.next_ns = stream.rng.expovariate(1 / stream.interval_ns)
            results = RunFolder.attach(folder)
            limit_ns = int(SECONDS * 1e9 / DILATION)
            work = traffic.engine_work(ready, results, folder / "engine.json", limit_ns,
                                       lambda _done, _now: None)  # fmt: skip
            engine = Forked("engine", work, folder / "engine.log")
        finally:
            normal_priority()
        wait_for(lambda: engine.poll() is not None, SECONDS + 30, "the probes")
    idle = [stream.path.hold_ns(FRAME_BYTES) for stream in ready.plan.probes]
    return waits_by_load(folder, ready.software_hop_us * 1000 / DILATION * 3, idle)


def waits_by_load(folder: Path, software_ns: float, idle: list[int]) -> dict[float, list[float]]:
    """Latencies of probes.csv, less the hold and the emulation's own time."""
    waits: dict[float, list[float]] = {load: [] for load in LOADS}
    for line in (folder / "probes.csv").read_text().splitlines()[1:]:
        fields = line.split(",")
        number = int(fields[1][1:]) - 1
        if fields[5]:
            wait = float(fields[5]) - idle[number] - software_ns
            assert math.isfinite(wait)
            waits[LOADS[number % len(LOADS)]].append(wait)
    return waits
