"""How many data packets per second this machine carries, measured once and kept.

A small fabric is driven as hard as it goes: four hosts and four others send to each other through
three switches each, on paths that do not meet, with everything on that a run has on. What arrives
end to end is the capacity; runs stay below half of it (`emulator.scale.CAPACITY_SHARE`).
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import time
from collections.abc import Callable
from pathlib import Path

from emulator import __version__, naming
from emulator.caching import cache_folder
from emulator.dataplane.compiling import SOURCE
from emulator.fabric import FabricSettings, LiveFabric
from emulator.kernel.forking import Forked, Stop
from emulator.kernel.priority import normal_priority, raise_priority
from emulator.ownership import Ledger, living
from emulator.plan import make_plan
from emulator.run import traffic
from emulator.run.machine import processor
from emulator.spec.load import assemble
from emulator.spec.model import Experiment
from emulator.spec.yamlfile import Document
from emulator.waiting import wait_for
from topologies.errors import MachineError
from traffic.nic.engine import NicEngine
from traffic.tasks import Flow

DILATION = 600.0
MEASURE_WALL_S = 3.0
_PATIENCE_S = 60.0
_HOSTS = 4
_BYTES = 1 << 34


class Silent:
    """A recorder that keeps nothing."""

    def flow_done(self, *_: object) -> None:
        """Nothing."""

    def compute_done(self, *_: object) -> None:
        """Nothing."""

    def probe(self, *_: object) -> None:
        """Nothing."""

    def tick(self, *_: object) -> None:
        """Nothing."""


def experiment() -> Experiment:
    """What is driven."""
    link = {"rate": "100 Gbit/s", "delay": "1 us"}
    pairs = [[f"h{n}", f"h{n + _HOSTS}"] for n in range(1, _HOSTS + 1)]
    pairs += [[dst, src] for src, dst in pairs]
    data = {
        "name": "calibration",
        "fabric": {"kind": "leaf-spine", "leaves": 2, "spines": _HOSTS, "hosts_per_leaf": _HOSTS,
                   "host_link": link, "fabric_link": link},
        "workloads": [{"kind": "background", "name": "load", "pattern": "pairs", "pairs": pairs,
                       "bytes": "1 GB"}],
        "routing": {"policy": "static"},
        "dilation": DILATION,
        "shrink": 1,
    }  # fmt: skip
    return assemble(Document(data, {}, "calibration"), Path("calibration.yaml"))


def measure(note: Callable[[str], None] = lambda _text: None) -> float:
    """Data packets/s delivered end to end over three switches, both processors busy."""
    chosen = experiment()
    plan = make_plan(chosen, 1e9)
    fabric = chosen.fabric
    bps = [round(link.rate_bps / DILATION) for link in fabric.links]
    tasks = [
        Flow(n, "load", f"h{n + 1}", f"h{(n + _HOSTS) % (2 * _HOSTS) + 1}", _BYTES, 26, "load")
        for n in range(2 * _HOSTS)
    ]
    settings = FabricSettings(fabric, bps, 1, (), chosen.scheduler, chosen.buffers,
                              chosen.routing.section, dilation=DILATION)  # fmt: skip
    with LiveFabric(settings, Ledger(naming.new_run_id()), note) as live:
        raise_priority()
        try:
            ready = traffic.prepare(live, chosen, plan, tasks, note)
            report = live.folder / "capacity"
            engine = Forked("engine", _work(ready, report), live.folder / "engine.log")
            live.ledger.add_process(engine.pid)
        finally:
            normal_priority()
        wait_for(lambda: engine.poll() is not None, _PATIENCE_S, "the calibration to end")
        if not report.exists():
            log = (live.folder / "engine.log").read_text(errors="replace")
            raise MachineError(f"the calibration failed: {log.strip()[-400:]}")
        return float(report.read_text())


def _work(ready: traffic.Traffic, report: Path) -> Callable[[Stop], None]:
    def work(_should_stop: Stop) -> None:
        engine = NicEngine(ready.plan, ready.medium, ready.clock, Silent())
        ready.clock.start_wall_ns = time.monotonic_ns()
        settle = time.monotonic() + MEASURE_WALL_S / 3
        engine.run(lambda: time.monotonic() >= settle)
        before, begin = engine.counters.delivered, time.monotonic()
        while time.monotonic() - begin < MEASURE_WALL_S:
            now = ready.clock.now_ns()
            engine.tick(now)
            ready.clock.sleep_until(now + ready.plan.parameters.tick_ns)
        rate = (engine.counters.delivered - before) / (time.monotonic() - begin)
        report.write_text(f"{rate}")

    return work


def _key() -> str:
    """What the measurement depends on: machine, kernel, version, data plane."""
    parts = [processor(), str(os.cpu_count()), platform.release(), __version__]
    parts.append(hashlib.sha256(SOURCE.read_bytes()).hexdigest())
    return hashlib.sha256("/".join(parts).encode()).hexdigest()[:16]


def cached() -> float | None:
    """The capacity as it was measured on this machine; None when it was not."""
    path = cache_folder() / f"capacity-{_key()}.json"
    try:
        return float(json.loads(path.read_text())["data_packets_per_s"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def capacity_pps(note: Callable[[str], None] = lambda _text: None) -> float:
    """The capacity, measured now when it is not known yet."""
    known = cached()
    if known is not None:
        return known
    note("measuring what this machine carries (once, about 6 s)")
    rate = round(measure())
    _keep(rate, note)
    note(f"this machine carries {rate:,.0f} data packets/s over three switches")
    return rate


def _keep(rate: int, note: Callable[[str], None]) -> None:
    """Keeps what was measured, unless something else disturbed it; a full disk is no obstacle."""
    if living(but=os.getpid()):
        note("measured beside something else of ours, so it is not kept")
        return
    path = cache_folder() / f"capacity-{_key()}.json"
    try:
        path.write_text(json.dumps({"data_packets_per_s": rate}))
    except OSError as error:
        path.unlink(missing_ok=True)
        note(f"{path} cannot be written ({error.strerror}); it will be measured again")
