"""Runs an experiment in a guest, with the same outcome as if it ran on this machine."""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from emulator import fidelity
from emulator.caching import cache_folder
from emulator.clock.virtual import guest as inside
from emulator.clock.virtual import kernel, machine, paths
from emulator.clock.virtual.console import ConsoleReader
from emulator.clock.virtual.machine import Guest, GuestSpec
from emulator.clock.virtual.processors import least_busy
from emulator.dataplane.compiling import object_file
from emulator.results.files import json_text, write_atomic
from emulator.results.store import new_folder
from emulator.run.progress import Progress
from emulator.run.session import Identity, Outcome
from emulator.run.supervising import Interrupt
from emulator.spec.dump import to_yaml
from emulator.spec.model import Experiment
from topologies.errors import MachineError

PREFIX = "fabriclab-guest-"
_LOOK_S = 0.02
_STOP_PATIENCE_S = 60.0
_TAIL_LINES = 12


@dataclass
class Heard:
    """What a guest has said.

    Attributes:
        end: its last word; None when it ended without one.
        steps: (step, wall s since the start at which it began).
    """

    end: dict[str, Any] | None = None
    steps: list[tuple[str, float]] = field(default_factory=list)


def run(
    experiment: Experiment, label: str, results: Path, progress: Progress, interrupt: Interrupt
) -> Outcome:
    """Runs one experiment to its end.

    Args:
        experiment: what; its clock is virtual.
        label: how comparisons call it.
        results: folder of all results.
        progress: what the user sees.
        interrupt: whether the user wants it to end.

    Raises:
        MachineError: the kernel is not built, or the guest failed; the run folder, if there is
            one, says what happened.
    """
    built = kernel.require()
    needed = paths.needed(object_file().resolve().parent)
    identity = Identity.new()
    folder = new_folder(results, experiment.name, identity.run_id, identity.started)
    progress.note(f"run {identity.run_id}: {folder}")
    with _control(experiment, label, identity, folder, needed) as control:
        spec = GuestSpec(built.path, control, experiment.seed, paths.packages(), cache_folder())
        heard = _drive(spec, progress, interrupt)
        _keep_console(control, folder)
    return _outcome(folder, heard)


@contextmanager
def _control(
    experiment: Experiment, label: str, identity: Identity, folder: Path, needed: list[str]
) -> Iterator[Path]:
    """The folder through which host and guest know of each other."""
    control = Path(tempfile.mkdtemp(prefix=PREFIX))
    request = {
        "run": identity.run_id, "started": identity.started.isoformat(), "label": label,
        "folder": str(folder.resolve()), "needed": needed,
    }  # fmt: skip
    try:
        (control / "spec.yaml").write_text(to_yaml(experiment))
        (control / "request.json").write_text(json.dumps(request))
        yield control
    finally:
        shutil.rmtree(control, ignore_errors=True)


def _drive(spec: GuestSpec, progress: Progress, interrupt: Interrupt) -> Heard:
    """Starts the guest and listens until it has ended; passes on the user's wish to end."""
    heard, begin = Heard(), time.monotonic()
    reader = ConsoleReader(spec.control / machine.CONSOLE)
    deadline_s = float("inf")
    guest = Guest(spec, machine.command(spec), least_busy(), paths.memory_folder(spec.memory_bytes))
    try:
        while guest.poll() is None:
            _listen(reader, heard, progress, begin)
            if interrupt.asked and deadline_s == float("inf"):
                (spec.control / inside.STOP).write_text(interrupt.asked)
                deadline_s = time.monotonic() + _STOP_PATIENCE_S
            if time.monotonic() > deadline_s:
                break
            time.sleep(_LOOK_S)
        _listen(reader, heard, progress, begin)
    finally:
        guest.kill()
        progress.done()
    heard.steps.append(("end", time.monotonic() - begin))
    return heard


def _listen(reader: ConsoleReader, heard: Heard, progress: Progress, begin: float) -> None:
    for said in reader.read():
        if "note" in said:
            heard.steps.append((said["note"], time.monotonic() - begin))
            progress.note(said["note"])
        elif "at" in said:
            progress.update(*said["at"])
        elif "end" in said:
            heard.end = said["end"]


def _keep_console(control: Path, folder: Path) -> None:
    """The guest's console becomes one of the run's logs."""
    with suppress(OSError):
        (folder / "logs").mkdir(exist_ok=True)
        shutil.copyfile(control / machine.CONSOLE, folder / "logs" / machine.CONSOLE)


def _outcome(folder: Path, heard: Heard) -> Outcome:
    log = folder / "logs" / machine.CONSOLE
    if heard.end is None or "error" in heard.end:
        raise MachineError(_failure(log, heard.end))
    _note_wall_times(folder, heard)
    summary = json.loads((folder / "summary.json").read_text())
    verdict = fidelity.Verdict(heard.end["valid"], tuple(heard.end["reasons"]), slow_only=False)
    return Outcome(folder, summary, verdict, heard.end["interrupted"])


def _failure(log: Path, end: dict[str, Any] | None) -> str:
    if end is not None:
        return f"the run failed in the guest: {end['error']} (see {log})"
    last = log.read_text(errors="replace").splitlines()[-_TAIL_LINES:] if log.exists() else []
    words = " / ".join(line.strip() for line in last if line.strip() and "@fabriclab" not in line)
    return f"the guest ended before the run did: {words or 'it said nothing'} (see {log})"


def _note_wall_times(folder: Path, heard: Heard) -> None:
    """Wall times stand in wall.json, the only file that differs between two equal runs."""
    steps = {name: round(at_s, 3) for name, at_s in heard.steps}
    write_atomic(folder / "wall.json", json_text({"steps_s": steps}).encode())
