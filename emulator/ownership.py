"""What a run owns, on disk, so that `fabriclab clean` can remove it after any death of the run.

/run/fabriclab/<id>/owned.json lists the owner, child processes (with their start times, so that a
later process of the same number is never touched), namespaces and settings to restore. Only what
such a file names is ever removed.
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
from emulator.kernel.process import is_alive, kill_and_wait, start_time

_FILE = "owned.json"


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
    """

    run_id: str
    owner: tuple[int, str]
    processes: list[tuple[int, str]] = field(default_factory=list)
    namespaces: list[str] = field(default_factory=list)
    sysctls: dict[str, str] = field(default_factory=dict)
    results: str = ""


class Ledger:
    """Writes down what a run is about to own, before it does."""

    def __init__(self, run_id: str, results: Path | None = None) -> None:
        self.folder = naming.state_folder(run_id)
        self.folder.mkdir(parents=True)
        pid = os.getpid()
        self.owned = Owned(run_id, (pid, start_time(pid) or ""), results=str(results or ""))
        self._write()

    def _write(self) -> None:
        scratch = self.folder / f"{_FILE}.tmp"
        scratch.write_text(json.dumps(asdict(self.owned)))
        scratch.rename(self.folder / _FILE)

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


def all_owned() -> list[Owned]:
    """What the files on this machine say, by run id; unreadable files are skipped."""
    found = []
    for path in sorted(naming.STATE_FOLDER.glob(f"*/{_FILE}")):
        with contextlib.suppress(OSError, ValueError, TypeError):
            raw = json.loads(path.read_text())
            raw["owner"] = tuple(raw["owner"])
            raw["processes"] = [tuple(entry) for entry in raw["processes"]]
            found.append(Owned(**raw))
    return found


def is_running(owned: Owned) -> bool:
    """True while the emulator that owns it lives."""
    return is_alive(*owned.owner)


def release(owned: Owned) -> list[str]:
    """Removes all that a run owned; returns what was removed, for people."""
    removed = [
        f"process {pid}"
        for pid, started in reversed(owned.processes)
        if kill_and_wait(pid, started)
    ]
    removed += [f"namespace {name}" for name in owned.namespaces if netns.remove(name)]
    for name, value in owned.sysctls.items():
        sysctls.write(name, value)
        removed.append(f"setting {name} (back to {value})")
    shutil.rmtree(naming.state_folder(owned.run_id), ignore_errors=True)
    return removed


@contextlib.contextmanager
def exclusive(name: str = "settings") -> Iterator[None]:
    """One run at a time is in the block: it guards host-wide settings."""
    naming.STATE_FOLDER.mkdir(parents=True, exist_ok=True)
    with open(naming.STATE_FOLDER / f"{name}.lock", "w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
