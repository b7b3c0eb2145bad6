"""Runs an experiment in a guest, with the same outcome as if it ran on this machine."""

from __future__ import annotations

import json
import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from emulator import fidelity
from emulator.caching import cache_folder
from emulator.clock.virtual import kernel, machine, paths, phases
from emulator.clock.virtual.console import ConsoleReader
from emulator.clock.virtual.control import SPEC, STOP, control_folder, remove_stale
from emulator.clock.virtual.guest import RESULTS
from emulator.clock.virtual.machine import Guest, GuestSpec
from emulator.clock.virtual.processors import least_busy
from emulator.dataplane.compiling import object_file
from emulator.results.files import json_text, write_atomic
from emulator.results.store import new_folder
from emulator.run.depends import installation
from emulator.run.inputs import copier, input_files, self_contained
from emulator.run.progress import Progress
from emulator.run.session import Identity, Outcome
from emulator.run.supervising import Interrupt
from emulator.spec.dump import to_yaml
from emulator.spec.model import Experiment
from topologies.errors import MachineError

WALL = "wall.json"
_LOOK_S = 0.02
_STOP_PATIENCE_S = 60.0
SILENCE_S = 600.0
"""A guest that says nothing for so long is stuck: it tells how far it is a hundred times a run."""
_TAIL_LINES = 12


@dataclass
class Heard:
    """What a guest has said.

    Attributes:
        end: its last word; None when it ended without one.
        steps: (step, wall s since the start at which it began), the last one its end.
        exit_code: of the kernel's process; negative = ended by that signal.
        stuck: it had to be ended because it did not answer.
    """

    end: dict[str, Any] | None = None
    steps: list[tuple[str, float]] = field(default_factory=list)
    exit_code: int | None = None
    stuck: bool = False


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
    request = {
        "run": identity.run_id, "started": identity.started.isoformat(), "label": label,
        "folder": str(folder.resolve()), "needed": needed, "installed": installation(built.hash),
    }  # fmt: skip
    remove_stale()
    with _unless_empty(folder), control_folder(to_yaml(experiment), request) as control:
        # Input files come along: a guest has folders of its own in the place of some of the host's.
        text = self_contained(experiment, input_files(experiment), copier(control))
        (control / SPEC).write_text(text)
        spec = GuestSpec(built.path, control, experiment.seed, paths.packages(), cache_folder())
        heard = _drive(spec, progress, interrupt)
        _keep_console(control, folder)
    _note_wall_times(folder, heard)
    if progress.verbose:
        for line in phases.lines(phases.durations_s(heard.steps)):
            progress.note(line)
    return _outcome(folder, heard)


@contextmanager
def _unless_empty(folder: Path) -> Iterator[None]:
    """A run that could not even begin leaves no folder."""
    try:
        yield
    finally:
        if not any(folder.iterdir()):
            folder.rmdir()


def _drive(spec: GuestSpec, progress: Progress, interrupt: Interrupt) -> Heard:
    """Starts the guest and listens until it has ended; passes on the user's wish to end."""
    heard, begin = Heard(), time.monotonic()
    reader = ConsoleReader(spec.control / machine.CONSOLE)
    deadline_s, silent_since_s = float("inf"), begin
    guest = _start(spec)
    try:
        while guest.poll() is None:
            now_s = time.monotonic()
            if _listen(reader, heard, progress, begin):
                silent_since_s = now_s
            if interrupt.asked and deadline_s == float("inf"):
                (spec.control / STOP).write_text(interrupt.asked)
                deadline_s = now_s + _STOP_PATIENCE_S
            if now_s > min(deadline_s, silent_since_s + SILENCE_S):
                heard.stuck = True
                break
            time.sleep(_LOOK_S)
        heard.exit_code = guest.poll()
        _listen(reader, heard, progress, begin)
    finally:
        guest.kill()
        progress.done()
    heard.steps.append(("end", time.monotonic() - begin))
    return heard


def _start(spec: GuestSpec) -> Guest:
    environment = paths.memory_folder(spec.memory_bytes)
    try:
        return Guest(spec, machine.command(spec), least_busy(), environment)
    except OSError as error:
        raise MachineError(f"{spec.kernel} cannot be started: {error.strerror}") from error


def _listen(reader: ConsoleReader, heard: Heard, progress: Progress, begin: float) -> bool:
    """Takes in what the guest has said; whether it has said anything."""
    anything = False
    for said in reader.read():
        anything = True
        if "note" in said:
            heard.steps.append((said["note"], time.monotonic() - begin))
            progress.note(said["note"])
        elif "at" in said:
            progress.update(*said["at"])
        elif "end" in said:
            heard.end = said["end"]
    return anything


def _keep_console(control: Path, folder: Path) -> None:
    """The guest's console becomes one of the run's logs."""
    with suppress(OSError):
        (folder / "logs").mkdir(exist_ok=True)
        shutil.copyfile(control / machine.CONSOLE, folder / "logs" / machine.CONSOLE)


def _outcome(folder: Path, heard: Heard) -> Outcome:
    log = folder / "logs" / machine.CONSOLE
    if heard.end is None or "error" in heard.end:
        raise MachineError(_failure(log, heard).replace(str(RESULTS), str(folder)))
    summary = _summary(folder / "summary.json")
    verdict = fidelity.Verdict(heard.end["valid"], tuple(heard.end["reasons"]), slow_only=False)
    return Outcome(folder, summary, verdict, heard.end["interrupted"])


def _summary(path: Path) -> dict[str, Any]:
    try:
        summary = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise MachineError(
            f"the run ended, but {path} is not whole; disk full? ({error})"
        ) from error
    if not isinstance(summary, dict):
        raise MachineError(f"the run ended, but {path} is not whole")
    return summary


def _failure(log: Path, heard: Heard) -> str:
    if heard.end is not None:
        return f"the run failed in the guest: {heard.end['error']} (see {log})"
    if heard.stuck:
        return f"the guest did not answer any more and was ended, short of memory? (see {log})"
    last = log.read_text(errors="replace").splitlines()[-_TAIL_LINES:] if log.exists() else []
    words = " / ".join(line.strip() for line in last if line.strip() and "@fabriclab" not in line)
    how = f"it ended with code {heard.exit_code}"
    if (heard.exit_code or 0) < 0:
        how = f"it was ended by {signal.Signals(-(heard.exit_code or 0)).name}"
    return f"the guest was gone before the run was done: {how}; {words or 'no message'} (see {log})"


def _note_wall_times(folder: Path, heard: Heard) -> None:
    """Wall times stand in wall.json, the only file that differs between two equal runs."""
    taken = phases.durations_s(heard.steps)
    content = {"phases_s": {name: round(value, 3) for name, value in taken.items()}}
    with suppress(OSError, ValueError, KeyError, ZeroDivisionError):
        sent = json.loads((folder / "engine.json").read_text())["counters"]["data_sent"]
        content["data_packets_per_s"] = round(sent / taken[phases.TRAFFIC])
    with suppress(OSError):
        write_atomic(folder / WALL, json_text(content).encode())
