"""What a run owns, on disk, so that `fabriclab clean` can remove it after any death of the run.

/run/fabriclab/<id>/owned.json lists the owner, child processes (with their start times, so that a
later process of the same number is never touched), namespaces and settings to restore. Only what
such a file names is ever removed, and with a namespace whatever process still lives in it.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from emulator import naming, sysctls
from emulator.kernel import netns
from emulator.kernel.inhabitants import inhabitants
from emulator.kernel.process import is_alive, kill_and_wait, start_time
from topologies.errors import MachineError

FILE = "owned.json"


@dataclass
class Owned:
    """The content of a run's file.

    Attributes:
        run_id: the run.
        owner: (process number, start time) of the emulator.
        processes: the same of its children, newest last.
        namespaces: names in /run/netns.
        sysctls: values to restore.
        results: the run folder.
        what: what it is, for people.
    """

    run_id: str
    owner: tuple[int, str]
    processes: list[tuple[int, str]] = field(default_factory=list)
    namespaces: list[str] = field(default_factory=list)
    sysctls: dict[str, str] = field(default_factory=dict)
    results: str = ""
    what: str = "run"


class Ledger:
    """Writes down what a run is about to own, before it does.

    Args:
        run_id: the run.
        results: its run folder, where there is one.
        what: what it is, for people: ``run``, ``bench`` and so on.

    Raises:
        MachineError: the file cannot be written (no root, a full disk), here and later.
    """

    def __init__(self, run_id: str, results: Path | None = None, what: str = "run") -> None:
        self.folder = naming.state_folder(run_id)
        pid = os.getpid()
        self.owned = Owned(
            run_id, (pid, start_time(pid) or ""), results=str(results or ""), what=what
        )
        try:
            self.folder.mkdir(parents=True)
        except OSError as error:
            raise _cannot_write(self.folder, error) from error
        self._write()

    def _write(self) -> None:
        scratch = self.folder / f"{FILE}.tmp"
        try:
            scratch.write_text(json.dumps(asdict(self.owned)))
            scratch.rename(self.folder / FILE)
        except OSError as error:
            raise _cannot_write(self.folder, error) from error

    def add_namespaces(self, names: Iterable[str]) -> None:
        """These namespaces are about to be created."""
        self.owned.namespaces += names
        self._write()

    def add_process(self, pid: int) -> None:
        """This child was started."""
        started = start_time(pid)
        if started is not None:
            self.owned.processes.append((pid, started))
            self._write()

    def sysctls_changed(self, before: Mapping[str, str]) -> None:
        """These settings are about to change."""
        self.owned.sysctls.update(before)
        self._write()

    def sysctls_restored(self) -> None:
        """All settings are as they were."""
        self.owned.sysctls.clear()
        self._write()

    def close(self) -> None:
        """Removes everything that is left, then the file."""
        release(self.owned)


def _cannot_write(folder: Path, error: OSError) -> MachineError:
    return MachineError(
        f"{folder} cannot be written ({error.strerror}), and nothing starts without"
    )


def parse(text: str) -> Owned:
    """The content of a file; ValueError when it is damaged."""
    try:
        raw = json.loads(text)
        raw["owner"] = tuple(raw["owner"])
        raw["processes"] = [tuple(entry) for entry in raw["processes"]]
        return Owned(**raw)
    except (KeyError, TypeError) as error:
        raise ValueError(f"not the content of {FILE}: {error}") from error


def all_owned() -> list[Owned]:
    """What the files on this machine say, by run id; unreadable files are skipped."""
    found = []
    for path in sorted(naming.STATE_FOLDER.glob(f"*/{FILE}")):
        with contextlib.suppress(OSError, ValueError):
            found.append(parse(path.read_text()))
    return found


def living(but: int | None = None) -> list[Owned]:
    """Everything that is under way on this machine, of other processes than `but`."""
    return [owned for owned in all_owned() if owned.owner[0] != but and is_running(owned)]


def is_running(owned: Owned) -> bool:
    """True while the emulator that owns it lives."""
    return is_alive(*owned.owner)


def release(owned: Owned) -> list[str]:
    """Removes all that a run owned; returns what was removed, for people."""
    removed = []
    for pid, started in [*reversed(owned.processes), *inhabitants(owned.namespaces)]:
        if kill_and_wait(pid, started):
            removed.append(f"process {pid}")
    removed += [f"namespace {name}" for name in owned.namespaces if netns.remove(name)]
    if owned.sysctls:
        with exclusive():
            removed += _restore(owned.sysctls)
    shutil.rmtree(naming.state_folder(owned.run_id), ignore_errors=True)
    return removed


def _restore(settings: Mapping[str, str]) -> list[str]:
    restored = []
    for name, value in settings.items():
        sysctls.write(name, value)
        restored.append(f"setting {name} (back to {value})")
    return restored


@contextlib.contextmanager
def exclusive(name: str = "settings") -> Iterator[None]:
    """One run at a time is in the block: it guards host-wide settings."""
    naming.STATE_FOLDER.mkdir(parents=True, exist_ok=True)
    with (naming.STATE_FOLDER / f"{name}.lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
