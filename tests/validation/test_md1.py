"""Waiting times of random arrivals at a queue of constant service: M/D/1, table V14."""

from __future__ import annotations

import math
import statistics
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from emulator import naming
from emulator.doctor import datapath
from emulator.fabric import FabricSettings, LiveFabric
from emulator.kernel.forking import Forked
from emulator.kernel.priority import normal_priority, raise_priority
from emulator.ownership import Ledger
from emulator.plan import make_plan
from emulator.results.reader import RunReader
from emulator.results.store import RunFolder
from emulator.run import traffic
from emulator.spec.load import assemble
from emulator.spec.yamlfile import Document
from emulator.waiting import wait_for
from tests.integration.harness import CAPACITY_PPS, leaf_spine, run
from traffic.wire import wire_bytes

LOADS = (0.5, 0.7, 0.8)
STREAMS = 4
FRAME_BYTES = 4154
DILATION = 8000.0
SECONDS = 45

EXACT_LOADS = (0.5, 0.7, 0.9)
PACKETS = 100_000
"""At least so many at each load."""
GAP_NS = 4_000
"""Mean time between two; a service takes 2 to 3.6 us, of which a shaper cuts the fraction of a
nanosecond: up to 0.05 %, and ten times that of the mean wait at load 0.9."""
BATCHES = 20
DELAY_NS, LATENCY_NS = 1000, 500

Floats = npt.NDArray[np.float64]


@pytest.mark.root
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


@pytest.mark.guest
@pytest.mark.timeout(600)
def test_queues_of_the_virtual_clock_are_those_of_m_d_1(tmp_path: Path) -> None:
    """V14 up to load 0.9 with more than 100,000 packets at each: within 3 %.

    A sample of that size has a mean of its own: its standard error, by the means of 20 batches, is
    1 % at load 0.5 and 4 % at 0.9. Lindley's recursion over the times at which the probes were sent
    has the same, so the waits are compared with it (within 1 %), and the formula with the mean that
    is left when the recursion's own deviation is taken off.
    """
    reader = send_probes(tmp_path)
    for host, load in enumerate(EXACT_LOADS, 1):
        sent_ns, latency_ns = probes_of(reader, f"h{host}")
        assert len(sent_ns) > PACKETS
        service_ns = wire_bytes(FRAME_BYTES) * 8e9 / rate_bps(load)
        waits = (latency_ns - idle_ns(service_ns)) / service_ns
        exact = lindley(sent_ns / service_ns)
        expected, error = load / (2 * (1 - load)), standard_error(waits)
        stated = f"load {load}: {waits.mean():.4f} services, {exact.mean():.4f} by recursion, "
        stated += f"{expected:.4f} in theory, standard error {error:.4f}"
        assert waits.mean() == pytest.approx(exact.mean(), rel=0.01), stated
        corrected = waits.mean() - (exact.mean() - expected)
        assert corrected == pytest.approx(expected, rel=0.03), stated
        assert abs(waits.mean() - expected) < 3 * error, stated


def rate_bps(load: float) -> int:
    """Rate at which packets with the mean gap make a load."""
    return round(wire_bytes(FRAME_BYTES) * 8e9 / (load * GAP_NS))


def idle_ns(service_ns: float) -> float:
    """Over two links of one rate, with a switch that forwards whole packets."""
    return 2 * (service_ns + DELAY_NS) + LATENCY_NS


def send_probes(folder: Path) -> RunReader:
    """Each host sends to a partner of its own: its port queues, the partner's then has no need."""
    hosts = len(EXACT_LOADS)
    partners = [(f"h{n + 1}", f"h{n + 1 + hosts}") for n in range(hosts)]
    links = [
        {"between": [host, "leaf1"], "rate": f"{rate_bps(load)} bit/s"}
        for load, pair in zip(EXACT_LOADS, partners, strict=True)
        for host in pair
    ]
    link = {"rate": "1 Gbit/s", "delay": f"{DELAY_NS} ns"}
    ran = run(
        {"name": "md1", "shrink": 1, "duration": f"{1.01 * PACKETS * GAP_NS / 1e6:.3f} ms",
         "fabric": {"kind": "leaf-spine", "leaves": 1, "spines": 0, "hosts_per_leaf": 2 * hosts,
                    "host_link": link, "links": links},
         "switch": {"mode": "store-and-forward", "latency": f"{LATENCY_NS} ns"},
         "probes": {"pairs": [list(pair) for pair in partners], "arrivals": "poisson",
                    "rate": f"{1e9 / GAP_NS} /s", "classes": [3], "size": f"{FRAME_BYTES} B"}},
        folder, "virtual",
    )  # fmt: skip
    assert ran.summary["verdict"] == "VALID", ran.summary["reasons"]
    assert sum(entry["lost"] for entry in ran.summary["probes"]) == 0
    return ran.reader


def probes_of(reader: RunReader, host: str) -> tuple[Floats, Floats]:
    """(when sent, latency) of all probes of a host, in the order of sending, ns."""
    table = reader.table("probes")
    mine = np.array(table.text("src")) == host
    sent_ns, latency_ns = table.numbers("sent_ns")[mine], table.numbers("latency_ns")[mine]
    order = np.lexsort((latency_ns, sent_ns))
    return sent_ns[order], latency_ns[order]


def lindley(arrivals: Floats) -> Floats:
    """Waiting times at a queue whose service takes 1, empty at first: W' = max(0, W + 1 - gap)."""
    drift = np.concatenate(([0.0], np.cumsum(1 - np.diff(arrivals))))
    waits: Floats = drift - np.minimum.accumulate(drift)
    return waits


def standard_error(values: Floats) -> float:
    """Of the mean of values that depend on their neighbours, by the means of batches."""
    means = [batch.mean() for batch in np.array_split(values, BATCHES)]
    return float(np.std(means, ddof=1) / math.sqrt(BATCHES))
