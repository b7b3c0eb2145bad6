"""How long a fabric of 8 leaves, 4 spines and 64 hosts takes to stand and to go, against Mininet.

Ours is ready when all links are up, all rules are in and one packet has arrived on every ordered
pair of hosts. Stock Mininet starts the same graph with TCLink and Open vSwitch's userspace
datapath by its own calls; it is not asked for rules or neighbours, which would only add to it.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from emulator.assembly import CONTROL_DSCP, entropy, port_of
from emulator.bench.rows import Row, at_least, at_most
from emulator.bench.setting import Setting, loopback_up, new_ledger, scratch_namespace
from emulator.clock.live import LiveClock
from emulator.dataplane.medium import KernelMedium
from emulator.fabric import FabricSettings, LiveFabric
from emulator.kernel.process import spawn
from emulator.ovs import OpenVSwitch
from emulator.run import warmup
from emulator.run.ending import standing
from emulator.waiting import wait_for
from topologies.addressing import host_ip, host_mac
from topologies.errors import MachineError
from topologies.files import fabric_to_dict
from topologies.model import Fabric
from topologies.registry import build_fabric
from traffic.wire import FlowAddress

NAME = "startup"
SUMMARY = "8 leaves x 4 spines x 64 hosts: to stand with all pairs reachable, and to be gone"
LEAVES, SPINES, HOSTS = 8, 4, 64
REPETITIONS = 3
READY_LIMIT_S, GONE_LIMIT_S = 10.0, 5.0
LEAST_RATIO = 3.0
EMULATED_BPS = 100_000_000
_SEED = 1
_AT_ONCE = 256
_MININET_PATIENCE_S = 600.0


def measure(setting: Setting) -> list[Row]:
    """Median of ours, one of Mininet's, and the ratio."""
    fabric = make_fabric()
    ours = []
    for number in range(1, REPETITIONS + 1):
        setting.note(f"startup: fabriclab, {number} of {REPETITIONS}")
        ours.append(ours_s(fabric, setting.datapath))
    setting.note("startup: fabriclab without a controller, once")
    bare = bare_s(fabric, setting.datapath)
    setting.note("startup: stock Mininet, once")
    theirs = mininet_s(fabric, setting.folder)
    ready, gone = (statistics.median(column) for column in zip(*ours, strict=True))
    return rows(bare, ready, gone, *theirs)


def rows(
    bare_s: float, ready_s: float, gone_s: float, mininet_s: float, mininet_gone_s: float
) -> list[Row]:
    """The figures as rows."""
    pairs = f"{HOSTS * (HOSTS - 1):,} pairs proven by a packet each"
    bare = "links and switches only"
    return [
        at_most("fabriclab ready", ready_s, "s", READY_LIMIT_S, pairs),
        at_most("fabriclab gone", gone_s, "s", GONE_LIMIT_S),
        Row("fabriclab, no controller", bare_s, "s", remark=bare),
        Row("stock Mininet started", mininet_s, "s", remark=bare),
        Row("stock Mininet gone", mininet_gone_s, "s"),
        at_least("ratio, ready", mininet_s / ready_s, "x", LEAST_RATIO),
        Row("ratio, no controller", mininet_s / bare_s, "x", remark=bare),
        Row("ratio, gone", mininet_gone_s / gone_s, "x"),
    ]


def make_fabric(leaves: int = LEAVES, spines: int = SPINES, hosts: int = HOSTS) -> Fabric:
    """The graph of both."""
    shape = {"leaves": leaves, "spines": spines, "hosts_per_leaf": hosts // leaves}
    return build_fabric({"kind": "leaf-spine", **shape}, "bench")


def all_ways(fabric: Fabric) -> Iterator[warmup.Way]:
    """Every ordered pair of hosts, each with a source port of its own."""
    names = [host.name for host in fabric.hosts]
    for src in names:
        for dst in names:
            if src != dst:
                address = FlowAddress(
                    host_mac(fabric, src, 1), host_mac(fabric, dst, 1), host_ip(fabric, src, 1),
                    host_ip(fabric, dst, 1), entropy(_SEED, src, dst), 0, CONTROL_DSCP,
                )  # fmt: skip
                yield warmup.Way(port_of(fabric, src, 1).index, address, 0)


def ours_s(fabric: Fabric, datapath: str) -> tuple[float, float]:
    """(seconds until all pairs are reachable, seconds until all is gone)."""
    begin = time.monotonic()
    live = LiveFabric(_settings(fabric, datapath), new_ledger())
    with standing(live):
        prove_all_pairs(live)
        ready = time.monotonic()
    return ready - begin, live.timings_s["down"]


def bare_s(fabric: Fabric, datapath: str) -> float:
    """Seconds until links and switches stand, without a controller, as in Mininet's figure."""
    begin = time.monotonic()
    live = LiveFabric(_settings(fabric, datapath), new_ledger(), with_controller=False)
    with standing(live):
        return time.monotonic() - begin


def _settings(fabric: Fabric, datapath: str) -> FabricSettings:
    rates = [EMULATED_BPS] * len(fabric.links)
    return FabricSettings(fabric, rates, _SEED, datapath=datapath)


def prove_all_pairs(live: LiveFabric) -> None:
    """One packet on every ordered pair; MachineError names the first that did not arrive."""
    clock, ways = LiveClock(1.0), list(all_ways(live.fabric))
    medium = KernelMedium(live.plane, live.senders(), clock)
    for first in range(0, len(ways), _AT_ONCE):
        warmup.teach(medium, clock, ways[first : first + _AT_ONCE])


def mininet_s(fabric: Fabric, folder: Path) -> tuple[float, float]:
    """The same of stock Mininet, in namespaces of ours and on an Open vSwitch of ours."""
    graph, report = folder / "fabric.json", folder / "mininet.json"
    graph.write_text(json.dumps(fabric_to_dict(fabric)))
    report.unlink(missing_ok=True)
    with scratch_namespace(loopback_up) as (ledger, descriptor):
        ovs = OpenVSwitch(ledger.folder / "ovs", descriptor)
        try:
            ovs.start(ledger.add_process)
            _run_mininet(ovs, descriptor, ledger.add_process, graph, report)
        finally:
            ovs.stop()
    times = json.loads(report.read_text())
    return times["ready_s"], times["gone_s"]


def _run_mininet(
    ovs: OpenVSwitch, descriptor: int, started: Callable[[int], None], graph: Path, report: Path
) -> None:
    """Runs the program in a process namespace: whatever it starts ends with it."""
    log = report.with_suffix(".log")
    root = Path(__file__).resolve().parent.parent.parent
    command = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", sys.executable, "-m",
               "emulator.bench.stock_mininet", str(graph), str(report)]  # fmt: skip
    env = {**ovs.env, "PYTHONPATH": str(root)}
    process = spawn(command, netns_fd=descriptor, log=log, env=env)
    started(process.pid)
    try:
        wait_for(
            lambda: process.poll() is not None, _MININET_PATIENCE_S, "Mininet to start and end"
        )
    finally:
        process.kill()
        process.wait()
    if not report.exists():
        raise MachineError(f"Mininet failed: {log.read_text(errors='replace').strip()[-400:]}")
