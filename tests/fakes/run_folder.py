"""Synthetic run folders, written through `RunFolder` itself, with plausible data and edge cases."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from emulator.results import summary as summaries
from emulator.results.queues import QueueRecorder
from emulator.results.store import RunFolder
from topologies.model import Fabric, Link, Node, Role

STARTED = datetime(2026, 3, 4, 12, 0, 0, tzinfo=UTC)
MS = 1_000_000
KMIN, KMAX = 400_000, 1_600_000


@dataclass(frozen=True)
class FakeRun:
    """What to pretend.

    Attributes:
        ecn: marking with a reacting sender (short queues, marks) instead of tail drop (drops).
        iterations: of the training job; 0 for none.
        requests: of the inference service; 0 for none.
        probes: per class; 0 for none.
        background: flows of the background workload ``bulk``, one after the other; 0 for none.
        clock: ``live`` (at dilation 1000) or ``virtual``.
        failing: fraction of requests that stay unfinished.
        reasons: of an INVALID verdict; empty for VALID.
        scale: factor on all counters, for huge counts.
        finished: write queues.npz and summary.json at the end.
    """

    name: str = "training-beside-inference"
    run_id: str = "a1b2c3"
    profile: str = "rocev2"
    seed: int = 7
    leaves: int = 4
    spines: int = 2
    hosts_per_leaf: int = 2
    planes: int = 1
    ecn: bool = True
    iterations: int = 3
    requests: int = 60
    probes: int = 1500
    background: int = 0
    clock: str = "live"
    failing: float = 0.05
    reasons: tuple[str, ...] = ()
    scale: int = 1
    samples: int = 600
    shrink: float = 16.0
    finished: bool = True
    extra_manifest: dict[str, Any] = field(default_factory=dict)

    @property
    def dilation(self) -> float:
        """What the clock needs."""
        return 1000.0 if self.clock == "live" else 1.0


def make_fabric(run: FakeRun) -> Fabric:
    """A leaf-spine fabric of one or two planes with the names of the address plan."""
    hosts = [Node(f"h{i + 1}", Role.HOST, 0, i + 1) for i in range(run.leaves * run.hosts_per_leaf)]
    nodes, host_links, fabric_links = list(hosts), [], []
    for plane in range(1, run.planes + 1):
        prefix = "" if plane == 1 else f"p{plane}"
        for leaf in range(1, run.leaves + 1):
            name = f"{prefix}leaf{leaf}"
            nodes.append(Node(name, Role.LEAF, plane, leaf))
            mine = hosts[(leaf - 1) * run.hosts_per_leaf : leaf * run.hosts_per_leaf]
            host_links += [(host.name, name, 500, plane) for host in mine]
            fabric_links += [
                (name, f"{prefix}spine{s + 1}", 1000, plane) for s in range(run.spines)
            ]
        nodes += [
            Node(f"{prefix}spine{s + 1}", Role.SPINE, plane, s + 1) for s in range(run.spines)
        ]
    links = tuple(
        Link(at, a, b, 100_000_000_000, delay, plane)
        for at, (a, b, delay, plane) in enumerate(host_links + fabric_links)
    )
    return Fabric("leaf-spine", tuple(nodes), links, 16_000_000, 4096)


def write_run(root: Path, run: FakeRun) -> Path:
    """Write one run folder below `root` and return it."""
    fabric, rng = make_fabric(run), np.random.default_rng(run.seed)
    folder = RunFolder.create(root, run.name, run.run_id, STARTED)
    folder.write_spec(yaml.safe_dump(_spec(run), sort_keys=False))
    folder.write_manifest(_manifest(run, fabric))
    facts = {
        "training": _write_training(folder, run, fabric, rng),
        "inference": _write_inference(folder, run, fabric, rng),
        "probes": _write_probes(folder, run, rng),
        "background": _write_background(folder, run),
    }
    drops, marks = _write_queues(folder, run, fabric, rng)
    _write_events(folder, run, fabric, drops, marks)
    if run.finished:
        folder.finish_queues()
        folder.write_summary(_summary(run, facts, drops, marks))
    folder.close()
    return folder.path


def _spec(run: FakeRun) -> dict[str, Any]:
    link = {"rate": "100 Gbit/s", "delay": "1 us"}
    spec: dict[str, Any] = {"name": run.name, "seed": run.seed, "clock": run.clock}
    spec["fabric"] = {"kind": "leaf-spine", "leaves": run.leaves, "spines": run.spines}
    spec["fabric"] |= {"host_link": link, "fabric_link": link, "buffer": "16 MB", "mtu": "4096 B"}
    spec["profile"] = run.profile
    if run.ecn:
        spec["ecn"] = {"kmin": "400 KB", "kmax": "1600 KB", "pmax": 0.2}
    spec["workloads"] = []
    if run.iterations:
        spec["workloads"].append({"kind": "training", "name": "job-a", "ranks": 8})
    if run.requests:
        slo = {"ttft": "20 ms", "tpot": "2 ms"}
        spec["workloads"].append({"kind": "inference", "name": "chat", "slo": slo})
    if run.background:
        spec["workloads"].append({"kind": "background", "name": "bulk"})
    return spec


def _manifest(run: FakeRun, fabric: Fabric) -> dict[str, Any]:
    ports = [
        {
            "name": port.name,
            "node": port.node,
            "peer": fabric.port(port.peer).name,
            "rate_bps": fabric.link_of(port).rate_bps,
            "emulated_bps": fabric.link_of(port).rate_bps // 1000,
            "delay_ns": fabric.link_of(port).delay_ns,
        }
        for port in fabric.ports
    ]
    return {
        "run": run.run_id,
        "name": run.name,
        "seed": run.seed,
        "profile": run.profile,
        "policy": "ecmp",
        "clock": run.clock,
        "dilation": run.dilation,
        "shrink": run.shrink,
        "started": STARTED.isoformat(),
        "wall_s": 61.5,
        "versions": {"fabriclab": "0.1.0", "python": "3.11.2", "ovs": "3.1.0", "scapy": "2.6.1"},
        "kernel": "Linux 6.1.0",
        "machine": {"cpus": 2, "memory_gb": 8},
        "sysctls": {"changed": [{"name": "net.core.wmem_default", "from": 212992, "to": 8388608}]},
        "ports": ports,
        "unloaded": [
            {"class": tc, "src": "h1", "dst": dst, "latency_ns": latency}
            for tc in (0, 3)
            for dst, latency in (("h2", 1_750), ("h3", 4_100))
        ],
        **run.extra_manifest,
    }


def iteration_starts(run: FakeRun) -> list[tuple[int, int]]:
    """(start, end) of each training iteration, ns of model time."""
    length = (16 if run.ecn else 18) * MS
    return [(i * length, (i + 1) * length) for i in range(run.iterations)]


def _write_training(
    folder: RunFolder, run: FakeRun, fabric: Fabric, rng: np.random.Generator
) -> list[dict[str, Any]]:
    if not run.iterations:
        return []
    ranks = [host.name for host in fabric.hosts[:8]]
    flows: list[tuple[Any, ...]] = []
    computes: list[tuple[Any, ...]] = []
    for number, (start, end) in enumerate(iteration_starts(run)):
        compute_end = start + 4 * MS
        for rank, host in enumerate(ranks):
            computes.append((len(computes), "job-a", f"i{number}.c.r{rank}", host, start,
                             compute_end + int(rng.integers(0, MS // 5))))  # fmt: skip
        flows += _ring(ranks, number, compute_end + MS // 4, end, len(flows), rng)
    folder.extend("computes", computes)
    folder.extend("flows", flows)
    lengths = [(end - start) / MS * run.shrink for start, end in iteration_starts(run)]
    times = {"mean": float(np.mean(lengths)), "p50": lengths[0], "p99": max(lengths)}
    return [
        {
            "name": "job-a",
            "iterations": run.iterations,
            "iteration_ms": times,
            "algbw_gbps": 51.2,
            "busbw_gbps": 89.6 if run.ecn else 76.8,
            "busbw_fraction": 0.896 if run.ecn else 0.768,
            "comm_fraction": 0.75,
            "gpu_busy_fraction": 0.25,
        }
    ]


def _ring(
    ranks: list[str], number: int, start: int, end: int, first: int, rng: np.random.Generator
) -> list[tuple[Any, ...]]:
    steps = 2 * (len(ranks) - 1)
    length = (end - start) // steps
    rows: list[tuple[Any, ...]] = []
    for step in range(steps):
        for rank, host in enumerate(ranks):
            ready = start + step * length
            done = ready + int(length * rng.uniform(0.75, 0.98))
            rows.append((first + len(rows), "job-a", f"i{number}.s{step}.r{rank}", "training",
                         host, ranks[(rank + 1) % len(ranks)], 1, 524_288, 26, ready,
                         ready + 2_000, done, 128, 0, 3, "done"))  # fmt: skip
    return rows


def _write_inference(
    folder: RunFolder, run: FakeRun, fabric: Fabric, rng: np.random.Generator
) -> list[dict[str, Any]]:
    if not run.requests:
        return []
    rows = list(_requests(run, fabric, rng))
    folder.extend("requests", rows)
    done = [row for row in rows if row[-1] == "done"]
    ttft = np.array([row[10] - row[7] for row in done] or [np.nan]) / MS * run.shrink
    tpot = np.array([(row[11] - row[10]) / (row[6] - 1) for row in done] or [np.nan])
    kv = np.array([row[9] - row[8] for row in done] or [np.nan]) / MS * run.shrink
    tpot = tpot / MS * run.shrink
    return [
        {
            "name": "chat",
            "requests": len(rows),
            "completed": len(done),
            "failed": len(rows) - len(done),
            "ttft_ms": {f"p{q}": np.percentile(ttft, q) for q in (50, 90, 99)},
            "tpot_ms": {f"p{q}": np.percentile(tpot, q) for q in (50, 99)},
            "kv_transfer_ms": {f"p{q}": np.percentile(kv, q) for q in (50, 99)},
            "slo_met_fraction": float(np.mean(ttft <= 20)) * len(done) / len(rows),
            "goodput_rps": 61.0,
        }
    ]


def _requests(run: FakeRun, fabric: Fabric, rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    arrivals = np.sort(rng.uniform(0, 45 * MS, run.requests)).astype(int)
    hosts = [host.name for host in fabric.hosts]
    tail = 0.35 if run.ecn else 0.7
    for number, arrival in enumerate(arrivals.tolist()):
        kv_start = arrival + int(rng.uniform(0.1, 0.3) * MS)
        kv_done = kv_start + int(rng.lognormal(-0.8, tail) * MS)
        first = kv_done + int(0.1 * MS)
        generated = int(rng.integers(20, 200))
        last = first + int(generated * rng.lognormal(-3.0, tail / 2) * MS)
        client = hosts[number % len(hosts)]
        head = ("chat", number, client, hosts[-2], hosts[-1], 1024, generated, arrival)
        if rng.random() < run.failing:
            yield (*head, kv_start, None, None, None, "unfinished")
        else:
            yield (*head, kv_start, kv_done, first, last, "done")


def _write_probes(
    folder: RunFolder, run: FakeRun, rng: np.random.Generator
) -> list[dict[str, Any]]:
    rows: list[tuple[Any, ...]] = []
    found: list[dict[str, Any]] = []
    for tc in (0, 3) if run.probes else ():
        base = np.where(rng.random(run.probes) < 0.3, 1_750, 4_100)
        wait = rng.exponential((3_000 if tc == 0 else 30_000) * (1 if run.ecn else 4), run.probes)
        latency = (base + wait * (rng.random(run.probes) < 0.6)).astype(int)
        lost = rng.random(run.probes) < (0.0 if run.ecn or tc == 0 else 0.01)
        sent = np.linspace(0, 48 * MS, run.probes).astype(int)
        rows += [
            (tc, f"h{1 + i % 2}", f"h{3 + i % 4}", i, int(sent[i]),
             None if lost[i] else int(latency[i]), bool(lost[i]))
            for i in range(run.probes)
        ]  # fmt: skip
        points = {"p50": 50, "p90": 90, "p99": 99, "p999": 99.9, "max": 100}
        quantiles = {key: np.percentile(latency[~lost], q) / 1e3 for key, q in points.items()}
        counts = {"class": tc, "pairs": 8, "sent": run.probes, "lost": int(lost.sum())}
        found.append({**counts, "latency_us": quantiles})
    folder.extend("probes", rows)
    return found


def _write_background(folder: RunFolder, run: FakeRun) -> list[dict[str, Any]]:
    """Flows of 1 MB, each of which takes 100 us: 80 Gbit/s."""
    if not run.background:
        return []
    folder.extend(
        "flows",
        [
            (100_000 + at, "bulk", f"n{at}", "flow", "h1", "h3", 1, 1_000_000, 26, at * MS // 10,
             at * MS // 10 + 500, (at + 1) * MS // 10, 250, 0, 0, "done")
            for at in range(run.background)
        ],
    )  # fmt: skip
    times = {"p50": 0.1 * run.shrink, "p99": 0.1 * run.shrink}
    counts = {"flows": run.background, "completed": run.background}
    return [{"name": "bulk", **counts, "goodput_gbps": 80.0, "fct_ms": times}]


def _load(run: FakeRun, at: np.ndarray) -> np.ndarray:
    """Offered share of the line rate over time: high while the job communicates."""
    if not run.iterations:
        return np.full(len(at), 0.15)
    length = iteration_starts(run)[0][1]
    active = (at % length > 4 * MS) & (at < length * run.iterations)
    return np.where(active, 0.9, 0.08)


def _write_queues(
    folder: RunFolder, run: FakeRun, fabric: Fabric, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    at = np.linspace(0, 56 * MS, run.samples).astype(np.int64)
    ports, load = len(fabric.ports), _load(run, at)
    weight = rng.uniform(0.35, 1.0, ports)
    rate = load[:, None] * weight * rng.uniform(0.85, 1.0, (len(at), ports))
    step = np.diff(at, prepend=at[0])
    sent = np.cumsum(rate * step[:, None] * 12.5, axis=0).astype(np.int64) * run.scale
    peak = KMAX * (0.8 if run.ecn else 2.5) * (weight > 0.8)
    depth = np.clip(load - 0.2, 0, 1)[:, None] * peak * rng.uniform(0.2, 1.2, (len(at), ports))
    over = np.cumsum(depth > (KMIN if run.ecn else 3_000_000), axis=0) * run.scale
    marked, dropped = (over, over * 0) if run.ecn else (over * 0, over)
    switches = [node.name for node in fabric.switches]
    recorder = QueueRecorder(folder, [p.name for p in fabric.ports], switches, chunk_samples=200)
    for row, time_ns in enumerate(at.tolist()):
        per_class = np.zeros((ports, 8), dtype=np.int64)
        per_class[:, 3] = depth[row]
        recorder.add(
            time_ns,
            bytes_tc=per_class,
            tx_bytes=sent[row],
            dropped=dropped[row],
            trimmed=np.zeros(ports, dtype=np.int64),
            marked=marked[row],
            buffer_used=np.full(len(switches), depth[row].sum() / len(switches)),
        )
    recorder.flush()
    return dropped[-1], marked[-1]


def _write_events(
    folder: RunFolder, run: FakeRun, fabric: Fabric, drops: np.ndarray, marks: np.ndarray
) -> None:
    for kind, counts in (("drop", drops), ("mark", marks)):
        folder.extend(
            "events",
            [
                (20 * MS + at, kind, port.node, port.name, 3, int(counts[at]), "")
                for at, port in enumerate(fabric.ports)
                if counts[at]
            ],
        )


def _class(tc: int, sent: int, dropped: int, marked: int) -> dict[str, Any]:
    counts = {"sent": sent, "dropped": dropped, "trimmed": 0, "marked": marked}
    return {"tc": tc, "lossless": False, **counts}


def _class(tc: int, sent: int, dropped: int, marked: int) -> dict[str, Any]:
    counts = {"sent": sent, "dropped": dropped, "trimmed": 0, "marked": marked}
    return {"tc": tc, "lossless": False, **counts}


def _summary(
    run: FakeRun, facts: dict[str, Any], drops: np.ndarray, marks: np.ndarray
) -> dict[str, Any]:
    sent = 412_345 * run.scale
    dropped, marked = int(drops.sum()), int(marks.sum())
    identity = {"name": run.name, "policy": "ecmp", "profile": run.profile, "seed": run.seed}
    identity |= {"clock": run.clock, "dilation": run.dilation, "shrink": run.shrink}
    return summaries.assemble(
        summaries.SummaryParts(
            identity=identity,
            verdict=summaries.INVALID if run.reasons else summaries.VALID,
            reasons=run.reasons,
            fidelity={
                "rate_error_max": 0.051 if run.reasons else 0.008,
                "unaccounted_packets": 0,
                "cpu_idle_min": 0.34,
                "send_lateness_us": {"p50": 4.2, "p99": 38.0},
                "rtt_error_max": 0.021,
            },
            packets={
                "sent": sent,
                "delivered": sent - dropped,
                "dropped": dropped,
                "trimmed": 0,
                "marked": marked,
                "retransmitted": dropped * 3,
            },
            training=facts["training"],
            inference=facts["inference"],
            background=facts["background"],
            probes=facts["probes"],
            classes=[_class(0, 3_000, 0, 0), _class(3, sent, dropped, marked)],
            hashes={"schedule": "9f2c41d7", "results": "0be18a55"},
        )
    )
