"""What dead runs left on this machine, what living ones hold, and removing either.

Only what an owned.json file lists is removed. A file that cannot be read lists nothing: its run's
folder goes only when the user names it, and what else may be left is told, not touched.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from emulator import naming, sysctls
from emulator.kernel import netns
from emulator.kernel.inhabitants import inhabitants
from emulator.kernel.process import is_alive, kill_and_wait
from emulator.ownership import FILE, Owned, is_running, parse, release
from emulator.waiting import wait_for
from topologies.errors import MachineError, UnknownNameError

END_PATIENCE_S = 60.0


@dataclass(frozen=True)
class Found:
    """The folder of something that runs or ran.

    Attributes:
        run_id: whose.
        folder: its folder below /run/fabriclab.
        owned: what it owns; None when that cannot be read.
        problem: why it cannot be read.
    """

    run_id: str
    folder: Path
    owned: Owned | None
    problem: str = ""

    @property
    def running(self) -> bool:
        """True while the process that owns it lives."""
        return self.owned is not None and is_running(self.owned)


@dataclass(frozen=True)
class Swept:
    """What became of one of them.

    Attributes:
        found: which.
        removed: what was removed, or would be.
        kept: why it was kept, a sentence; empty when it was removed.
    """

    found: Found
    removed: tuple[str, ...] = ()
    kept: str = ""


def survey() -> list[Found]:
    """Everything below /run/fabriclab, by run id."""
    if not naming.STATE_FOLDER.is_dir():
        return []
    folders = sorted(path for path in naming.STATE_FOLDER.iterdir() if path.is_dir())
    return [_look(path) for path in folders if naming.is_run_id(path.name)]


def _look(folder: Path) -> Found:
    try:
        owned = parse((folder / FILE).read_text())
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "damaged"
        return Found(folder.name, folder, None, f"{folder / FILE} cannot be read ({reason})")
    if owned.run_id != folder.name:
        problem = f"{folder / FILE} speaks of another run, {owned.run_id!r}"
        return Found(folder.name, folder, None, problem)
    return Found(folder.name, folder, owned)


def inventory(owned: Owned) -> tuple[str, ...]:
    """What `release` would remove now, in the same words."""
    processes = [pid for pid, started in reversed(owned.processes) if is_alive(pid, started)]
    processes += [pid for pid, _ in inhabitants(owned.namespaces) if pid not in processes]
    namespaces = [name for name in owned.namespaces if (netns.FOLDER / name).exists()]
    changed = [(name, to) for name, to in owned.sysctls.items() if sysctls.read(name) != to]
    return (
        *(f"process {pid}" for pid in processes),
        *(f"namespace {name}" for name in namespaces),
        *(f"setting {name} (back to {value})" for name, value in changed),
    )


def sweep(force: Collection[str] = (), dry_run: bool = False) -> list[Swept]:
    """Removes what dead runs left, and the runs that are named in `force`.

    Args:
        force: run ids to end and remove although they live, or although their file is damaged.
        dry_run: only say what would be removed.

    Raises:
        UnknownNameError: `force` names a run that is not there; then nothing was removed.
    """
    found = survey()
    _check(force, found)
    return [_sweep(entry, entry.run_id in force, dry_run) for entry in found]


def _check(force: Iterable[str], found: Iterable[Found]) -> None:
    known = {entry.run_id for entry in found}
    for run_id in force:
        if run_id not in known:
            raise UnknownNameError("--force", "run on this machine", run_id, known)


def _sweep(found: Found, forced: bool, dry_run: bool) -> Swept:
    owned = found.owned
    if owned is None:
        return _sweep_damaged(found, forced, dry_run)
    if found.running and not forced:
        owner = f"{owned.what} {owned.run_id} is under way (process {owned.owner[0]})"
        return Swept(found, kept=f"{owner}; --force {owned.run_id} ends and removes it")
    ending = (f"process {owned.owner[0]} (its owner)",) if found.running else ()
    state = f"folder {found.folder}"
    if dry_run:
        return Swept(found, (*ending, *inventory(owned), state))
    if found.running:
        end_owner(owned)
    return Swept(found, (*ending, *release(owned), state))


def _sweep_damaged(found: Found, forced: bool, dry_run: bool) -> Swept:
    if not forced:
        hint = f"--force {found.run_id} removes its folder"
        return Swept(found, kept=f"{found.problem}; {hint}{_strays(found.run_id)}")
    if not dry_run:
        shutil.rmtree(found.folder, ignore_errors=True)
    return Swept(found, (f"folder {found.folder}{_strays(found.run_id)}",))


def _strays(run_id: str) -> str:
    """A remark on namespaces that carry a run's id but that no readable file lists."""
    own = naming.switches_namespace(run_id)
    paths = sorted(netns.FOLDER.glob(f"{own}*")) if netns.FOLDER.is_dir() else []
    names = [path.name for path in paths if path.name == own or path.name.startswith(f"{own}-")]
    if not names:
        return ""
    return f" (by hand, if they are yours: ip netns delete {names[0]}, {len(names)} in all)"


def end_owner(owned: Owned, patience_s: float = END_PATIENCE_S) -> None:
    """Ends the process that owns a run: asks it, so that it can write its results, then insists."""
    pid, started = owned.owner
    if is_alive(pid, started):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
    with contextlib.suppress(MachineError):
        wait_for(lambda: not is_alive(pid, started), patience_s, f"process {pid} to end")
    kill_and_wait(pid, started)
