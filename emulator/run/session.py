"""One run from start to end: build, prepare, send, watch, judge, write down, take away."""

from __future__ import annotations

import dataclasses
import json
import mmap
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from emulator import fidelity, naming
from emulator.clock.traits import ClockTraits, traits_of
from emulator.fabric import LiveFabric
from emulator.kernel.forking import Forked
from emulator.kernel.priority import normal_priority, raise_priority
from emulator.ownership import Ledger
from emulator.plan import Plan, make_plan
from emulator.results.format import duration_ns
from emulator.results.reader import RunReader
from emulator.results.store import RunFolder
from emulator.results.summary import SummaryParts, assemble
from emulator.run import evidence as collect
from emulator.run import traffic
from emulator.run.building import fabric_settings
from emulator.run.capture import capturing
from emulator.run.depends import installation
from emulator.run.inputs import input_files, self_contained
from emulator.run.manifest import manifest_of
from emulator.run.pauses import PauseTotals, PauseWatch, details
from emulator.run.progress import Progress
from emulator.run.sampling import Sampler
from emulator.run.supervising import Interrupt, Watch, watch
from emulator.spec.model import Experiment
from topologies.units import format_duration
from traffic.tasks import Flow
from traffic.workloads import build_all
from traffic.workloads.base import Workload

PATIENCE = 8.0
"""A run without ``duration:`` ends after this many times its expected model time: where senders do
not react, go-back-N may get next to nothing through."""
_LEAST_EXPECTED_NS = 100_000


@dataclass(frozen=True)
class Identity:
    """What tells a run from all others; nothing that happens in it depends on this.

    Attributes:
        run_id: six hexadecimal digits.
        started: wall time.
    """

    run_id: str
    started: datetime

    @classmethod
    def new(cls) -> Identity:
        """One for a run that starts now."""
        return cls(naming.new_run_id(), datetime.now().astimezone())


@dataclass(frozen=True)
class Request:
    """What to run and how to show it.

    Attributes:
        experiment: what.
        capacity_pps: data packets/s that this machine carries.
        results: folder of all results.
        label: how comparisons call the run; empty = by its profile.
        datapath: of Open vSwitch.
        identity: what the run is called; None = a new one.
        folder: the empty folder that becomes the run folder; None = a new one under `results`.
        resource_id: in the names of namespaces and folders; empty = as the run is called. A guest,
            where nothing else runs, has always the same, so that equal runs leave equal logs.
        installed: as `depends.installation` found it on the host of a guest; None = find it here.
    """

    experiment: Experiment
    capacity_pps: float
    results: Path
    label: str = ""
    datapath: str = "netdev"
    identity: Identity | None = None
    folder: Path | None = None
    resource_id: str = ""
    installed: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Outcome:
    """A run that has ended.

    Attributes:
        folder: its run folder.
        summary: summary.json.
        verdict: with the cause.
        interrupted: the user ended it.
    """

    folder: Path
    summary: Mapping[str, Any]
    verdict: fidelity.Verdict
    interrupted: bool


def run(request: Request, progress: Progress, interrupt: Interrupt) -> Outcome:
    """Runs an experiment; once more at twice the dilation when the machine was too slow."""
    outcome = run_once(request, progress, interrupt)
    auto = request.experiment.dilation is None
    if outcome.verdict.slow_only and auto and not outcome.interrupted:
        dilation = 2 * float(outcome.summary["dilation"])
        progress.note(f"the machine did not keep up: once more at dilation {dilation:g}")
        slower = dataclasses.replace(request.experiment, dilation=dilation)
        outcome = run_once(dataclasses.replace(request, experiment=slower), progress, interrupt)
    return outcome


def run_once(request: Request, progress: Progress, interrupt: Interrupt) -> Outcome:
    """Runs an experiment once, as it is."""
    return _Run(request, progress, interrupt).execute()


class _Run:
    """The state of one run."""

    def __init__(self, request: Request, progress: Progress, interrupt: Interrupt) -> None:
        self.request, self.progress, self.interrupt = request, progress, interrupt
        self.experiment = request.experiment
        self.plan: Plan = make_plan(self.experiment, request.capacity_pps)
        scale = self.plan.scaling.scale
        self.dilation, self.shrink = scale.dilation, scale.shrink
        self.workloads: tuple[Workload, ...] = build_all(
            self.experiment.workloads, self.experiment.fabric, self.experiment.seed, self.shrink
        )
        self.tasks = [task for workload in self.workloads for task in workload.tasks]
        self.settings = fabric_settings(self.plan, request.datapath)
        self.emulated_bps = self.settings.emulated_bps
        expected_ns = max(self.plan.expected_model_ns, _LEAST_EXPECTED_NS)
        self.limit_ns = self.experiment.duration_ns or round(PATIENCE * expected_ns)
        self.traits: ClockTraits = traits_of(self.experiment.clock)
        self.identity = request.identity or Identity.new()
        self.inputs = input_files(self.experiment)
        self.installed = request.installed or installation()

    def execute(self) -> Outcome:
        """Does it all."""
        run_id = self.identity.run_id
        with self._new_folder() as folder:
            folder.write_spec(self_contained(self.experiment, self.inputs, folder.copy_in))
            if self.request.folder is None:
                self.progress.note(f"run {run_id}: {folder.path}")
            self.progress.note(
                f"dilation {self.dilation:g}, shrink {self.shrink:g}: the traffic takes about "
                f"{duration_ns(self.plan.expected_wall_ns)} of wall time"
            )
            ledger = Ledger(self.request.resource_id or run_id, folder.path)
            live = LiveFabric(self.settings, ledger, self.progress.note)
            return self._in_fabric(live, folder)

    def _new_folder(self) -> RunFolder:
        name, identity = self.experiment.name, self.identity
        if self.request.folder is not None:
            return RunFolder.adopt(self.request.folder, name, identity.run_id, identity.started)
        return RunFolder.create(self.request.results, name, identity.run_id, identity.started)

    def _in_fabric(self, live: LiveFabric, folder: RunFolder) -> Outcome:
        with live:
            folder.write_manifest(self._manifest(live, None, None))
            if self.traits.real_time:
                raise_priority()
            try:
                prepared = traffic.prepare(
                    live, self.experiment, self.plan, self.tasks, self.progress.note, self.traits
                )
                with capturing(live, self.experiment.pcap, folder.path):
                    watched, outcome, pauses = self._send(live, prepared, folder)
            finally:
                if self.traits.real_time:
                    normal_priority()
            _keep_logs(live, folder)
            folder.write_json("ports.json", collect.port_records(live.plane))
            if self.settings.pfc:
                folder.write_json("pfc.json", details(live.plane, pauses))
            found = collect.gather(
                live.plane, self.experiment, self.emulated_bps, outcome, watched.idle_least,
                prepared, self.plan, [*watched.troubles, *self._left_over(outcome)],
                pauses,
            )  # fmt: skip
        if self.progress.verbose and self.traits.real_time:
            for phase, seconds in live.timings_s.items():
                self.progress.note(f"{phase:<12} {seconds:6.2f} s")
        return self._conclude(folder, live, prepared, watched, outcome, found, pauses)

    def _send(
        self, live: LiveFabric, prepared: traffic.Traffic, folder: RunFolder
    ) -> tuple[Watch, dict[str, Any], PauseTotals]:
        """Starts the engine and looks after it; returns what it said at its end."""
        self.progress.note("sending")
        report, board = live.folder / "engine.json", _new_board()
        live.plane.reset()
        start_wall_ns = time.monotonic_ns() + self.traits.lead_ns
        prepared.clock.start_wall_ns = start_wall_ns
        live.plane.receivers.begin(start_wall_ns, self.dilation)
        work = traffic.engine_work(
            prepared, RunFolder.attach(folder.path), report, self.limit_ns,
            lambda done, now: board.put([0, 1], [done, now]),
        )  # fmt: skip
        engine = Forked("engine", work, live.folder / "engine.log")
        live.ledger.add_process(engine.pid)
        pauses = None
        if self.settings.pfc:
            pauses = PauseWatch(live.plane, live.pause_log, prepared.clock, folder)
        sampler = Sampler(live.plane, folder, pauses)
        expected = max(self.plan.expected_model_ns, 1.0)
        every = max(expected / self.traits.samples, self.traits.least_sample_ns / self.dilation)
        try:
            watched = watch(
                engine, prepared.clock, self.traits, sampler, int(every), self.progress,
                self.interrupt, lambda: self._describe(board), lambda: self._death(live),
            )  # fmt: skip
        finally:
            engine.kill()
        outcome = json.loads(report.read_text()) if report.exists() else {}
        folder.write_json("engine.json", outcome)
        ended_ns = outcome.get("ended_ns", prepared.clock.now_ns())
        return watched, outcome, pauses.finish(ended_ns) if pauses else PauseTotals()

    def _describe(self, board: npt.NDArray[np.int64]) -> tuple[float, str]:
        """How far the run is, for progress."""
        done, now_ns = board.tolist()
        flows = sum(isinstance(task, Flow) for task in self.tasks)
        fraction = done / flows if flows else now_ns / max(1, self.experiment.duration_ns or 1)
        return fraction, f"{done} of {flows} flows, {now_ns / 1e6:.2f} ms of target time"

    def _death(self, live: LiveFabric) -> str | None:
        """A sentence when Open vSwitch died. A dead controller does not stop forwarding."""
        for process in live.ovs.processes:
            if process.poll() is not None:
                return "Open vSwitch ended in the middle of the run"
        if self.settings.pfc and live.agent_died:
            return "the agent, which pauses, ended in the middle of the run"
        return None

    def _left_over(self, outcome: Mapping[str, Any]) -> list[str]:
        """Sentences about what did not finish."""
        unfinished = outcome.get("unfinished", 0)
        limited = self.experiment.duration_ns is not None
        if unfinished and not limited and not self.interrupt.asked:
            limit = format_duration(self.limit_ns, digits=2)
            return [
                f"{unfinished} tasks did not finish within {limit}, {PATIENCE:g} times what was "
                "expected; duration: sets another end"
            ]
        return []

    def _manifest(
        self, live: LiveFabric, prepared: traffic.Traffic | None, wall_s: float | None
    ) -> dict[str, Any]:
        identity = self.identity
        return manifest_of(
            self.experiment, self.plan, live, identity.run_id, identity.started,
            self.emulated_bps, self.request.label, prepared, wall_s,
            [workload.meta for workload in self.workloads], self.inputs, self.installed,
        )  # fmt: skip

    def _conclude(
        self,
        folder: RunFolder,
        live: LiveFabric,
        prepared: traffic.Traffic,
        watched: Watch,
        outcome: Mapping[str, Any],
        found: fidelity.Evidence,
        pauses: PauseTotals,
    ) -> Outcome:
        """Verdict, summary, manifest."""
        reader = RunReader.open(folder.path, allow_incomplete=True)
        times = collect.times_of(reader)
        folder.extend("requests", collect.requests(self.workloads, times))
        lost = [reason for reason in (outcome.get("degraded"), folder.degraded) if reason]
        found = dataclasses.replace(found, troubles=(*found.troubles, *lost))
        if live.controller_died:
            self.progress.note("the controller died during the run; forwarding went on without it")
        verdict = fidelity.judge(found)
        folder.write_manifest(self._manifest(live, prepared, watched.wall_s))
        folder.finish_queues()
        sections = collect.workload_sections(self.workloads, times)
        parts = SummaryParts(
            identity={
                "name": self.experiment.name, "policy": self.experiment.routing.policy,
                "profile": self.experiment.profile, "seed": self.experiment.seed,
                "clock": self.experiment.clock, "dilation": self.dilation, "shrink": self.shrink,
            },
            verdict="VALID" if verdict.valid else "INVALID",
            reasons=verdict.reasons,
            fidelity=collect.fidelity_section(found),
            packets=collect.packet_totals(found, outcome),
            training=sections["training"],
            inference=sections["inference"],
            background=sections["background"],
            probes=collect.probe_section(reader),
            pfc=pauses.section,
            classes=[{**row, "lossless": row["tc"] in found.lossless} for row in live.by_class],
            hashes={
                "schedule": collect.schedule_hash(self.tasks),
                "results": collect.results_hash(reader),
            },
        )  # fmt: skip
        summary = assemble(parts)
        folder.write_summary(summary)
        return Outcome(folder.path, summary, verdict, bool(self.interrupt.asked))


def _new_board() -> npt.NDArray[np.int64]:
    """Memory that a fork shares, where the engine says how far it is: flows done, model ns.

    It is read with every queue sample, so without a call: calls, and most of all those that fail,
    take time that others in a guest with a virtual clock would have to wait for.
    """
    return np.frombuffer(mmap.mmap(-1, mmap.PAGESIZE), np.int64, 2)


def _keep_logs(live: LiveFabric, folder: RunFolder) -> None:
    """Copies the logs of all processes into the run folder."""
    (folder.path / "logs").mkdir(exist_ok=True)
    for path in (*live.folder.glob("*.log"), *live.folder.glob("ovs/*.log")):
        folder.write_text(f"logs/{path.name}", path.read_text(errors="replace"))
    folder.write_text("logs/controller-state.json", json.dumps(live.controller_state()))
