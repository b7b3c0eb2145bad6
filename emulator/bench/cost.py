"""What the NIC engine itself costs: processor time per packet sent and per packet received.

The same load as `throughput`, run by an engine whose phases note the processor time of its thread
(`CLOCK_THREAD_CPUTIME_ID`, about 0.3 us a reading, a dozen readings a tick). Sending includes what
the kernel does within the call: the eBPF program, the queue, and the way to the switch's socket
when the wire is free.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from emulator.bench import load
from emulator.bench.rows import Row
from emulator.bench.setting import Setting, new_ledger
from emulator.calibration import Silent
from emulator.clock.live import LiveClock
from emulator.fabric import LiveFabric
from emulator.kernel.forking import Forked, Stop
from emulator.kernel.priority import normal_priority, raise_priority
from emulator.plan import Plan, make_plan
from emulator.run import traffic
from emulator.run.building import fabric_settings
from emulator.run.ending import standing
from emulator.spec.model import Experiment
from emulator.waiting import wait_for
from topologies.errors import MachineError
from traffic.nic.engine import NicEngine
from traffic.workloads import build_all

NAME = "cost"
SUMMARY = "processor time of the NIC engine per packet, at the load of `throughput`"
PATIENCE_S = 120.0
SEND, RECEIVE, OTHER = "send", "receive", "other"
PHASES: Mapping[str, tuple[str, str]] = {
    "_take": (RECEIVE, "take what arrived"),
    "_deliver": (RECEIVE, "hand it to its connection"),
    "_answer": (RECEIVE, "acknowledge"),
    "_start_flows": (SEND, "start flows"),
    "_fill": (SEND, "choose packets"),
    "_check_timeouts": (OTHER, "timers"),
    "_send_probes": (OTHER, "probes"),
}
"""Method of a tick -> the side that it belongs to, and its name for people."""
FLUSH, KERNEL = "patch frames", "hand frames to the kernel"
_US = 1000.0
_SENT = ("data_sent", "control_sent", "probes_sent")


def measure(setting: Setting) -> list[Row]:
    """Microseconds per packet of both sides, and the share of each phase."""
    experiment = load.experiment(NAME)
    plan = make_plan(experiment, load.OFFERED_PPS)
    setting.note(f"cost: an instrumented run of {load.WALL_S:g} s")
    live = LiveFabric(fabric_settings(plan, setting.datapath), new_ledger())
    with standing(live):
        report = live.folder / "cost.json"
        raise_priority()
        try:
            engine = _start(live, experiment, plan, report)
        finally:
            normal_priority()
        try:
            wait_for(lambda: engine.poll() is not None, PATIENCE_S, "the engine to end")
        finally:
            engine.kill()
        if not report.exists():
            log = (live.folder / "engine.log").read_text(errors="replace")
            raise MachineError(f"the engine failed: {log.strip()[-400:]}")
        found = json.loads(report.read_text())
    return rows(found["spent_ns"], found["counters"], found["total_ns"])


def _start(live: LiveFabric, experiment: Experiment, plan: Plan, report: Path) -> Forked:
    """Prepares the load and starts the instrumented engine."""
    workloads = build_all(experiment.workloads, experiment.fabric, experiment.seed, 1)
    tasks = [task for workload in workloads for task in workload.tasks]
    ready = traffic.prepare(live, experiment, plan, tasks, lambda _text: None)
    live.plane.reset()
    engine = Forked("engine", _work(ready, report), live.folder / "engine.log")
    live.ledger.add_process(engine.pid)
    return engine


def _work(ready: traffic.Traffic, report: Path) -> Callable[[Stop], None]:
    def work(should_stop: Stop) -> None:
        LiveClock.sharpen()
        engine = TimedEngine(ready.plan, ready.medium, ready.clock, Silent())
        ready.clock.start_wall_ns = time.monotonic_ns()
        begin = time.thread_time_ns()
        engine.run(should_stop)
        total_ns = time.thread_time_ns() - begin
        report.write_text(json.dumps({
            "spent_ns": engine.spent_ns, "counters": asdict(engine.counters),
            "total_ns": total_ns,
        }))  # fmt: skip

    return work


def rows(spent_ns: Mapping[str, int], counters: Mapping[str, float], total_ns: int) -> list[Row]:
    """The figures as rows.

    Args:
        spent_ns: processor time of each phase; that of `FLUSH` includes that of `KERNEL`.
        counters: of the engine.
        total_ns: processor time of the engine's thread.
    """
    own = {**spent_ns, FLUSH: spent_ns[FLUSH] - spent_ns[KERNEL]}
    sides = {side: 0 for side, _ in PHASES.values()}
    for phase, (side, _) in PHASES.items():
        sides[side] += own[phase]
    sides[SEND] += own[FLUSH] + own[KERNEL]
    sent = max(1, sum(counters[name] for name in _SENT))
    received, ticks = max(1, counters["received"]), max(1, counters["ticks"])
    per_data_ns = total_ns / max(1, counters["delivered"])
    return [
        Row("send", sides[SEND] / sent / _US, "us/packet", remark=f"{sent / ticks:.1f} per tick"),
        Row("of which in the kernel", own[KERNEL] / sent / _US, "us/packet"),
        Row("receive", sides[RECEIVE] / received / _US, "us/packet",
            remark=f"{received / ticks:.1f} per tick"),
        Row("all of the engine", per_data_ns / _US, "us/data packet"),
        *_shares(own, total_ns),
    ]  # fmt: skip


def _shares(own: Mapping[str, int], total_ns: int) -> list[Row]:
    """Share of each phase in the engine's processor time, the largest first."""
    named = {name: own[phase] for phase, (_, name) in PHASES.items()}
    named |= {FLUSH: own[FLUSH], KERNEL: own[KERNEL]}
    named["read queues, sleep, the loop"] = total_ns - sum(own.values())
    largest_first = sorted(named.items(), key=lambda item: -item[1])
    return [Row(f"share: {name}", 100 * ns / max(1, total_ns), "%") for name, ns in largest_first]


class TimedEngine(NicEngine):
    """An engine that notes the processor time of its phases, `spent_ns` by method."""

    def __post_init__(self) -> None:
        """As the engine's; then each phase is wrapped."""
        NicEngine.__post_init__(self)
        self.spent_ns = dict.fromkeys((*PHASES, FLUSH, KERNEL), 0)
        for phase in PHASES:
            time_calls(self, phase, self.spent_ns, phase)
        time_calls(self._outbox, "flush", self.spent_ns, FLUSH)
        time_calls(self.medium, "send", self.spent_ns, KERNEL)


def time_calls(target: object, method: str, spent_ns: dict[str, int], key: str) -> None:
    """Adds the processor time of all calls of an object's method to an entry."""
    original = getattr(target, method)

    def timed(*arguments: Any) -> Any:
        begin = time.thread_time_ns()
        try:
            return original(*arguments)
        finally:
            spent_ns[key] += time.thread_time_ns() - begin

    setattr(target, method, timed)
