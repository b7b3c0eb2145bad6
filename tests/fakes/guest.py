"""A program that plays the virtual clock's kernel, so that launching needs none."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import pytest

from emulator.clock.virtual import kernel, launch, machine
from emulator.clock.virtual.kernel import BuiltKernel
from emulator.kernel.process import is_alive, start_time

ROOT = Path(__file__).resolve().parents[2]
_PROLOGUE = f"""#!{sys.executable}
import json, os, signal, sys
from datetime import datetime
from pathlib import Path
sys.path.insert(0, {str(ROOT)!r})
from emulator.clock.virtual.console import ConsoleProgress
from emulator.results.store import RunFolder
from emulator.waiting import wait_for

control = Path(sys.argv[-1])
request = json.loads((control / "request.json").read_text())
(control / "guest").mkdir()
progress = ConsoleProgress(sys.stdout)


def start():
    progress.note("guest is up")
    started = datetime.fromisoformat(request["started"])
    folder = RunFolder.adopt(Path(request["folder"]), "fake", request["run"], started)
    folder.write_spec((control / "spec.yaml").read_text())
    progress.note("sending")
    return folder


def finish(folder, valid=True, reasons=(), interrupted=False):
    progress.update(1.0, "2 of 2 flows")
    progress.note("taking the fabric down")
    folder.write_json("engine.json", {{"counters": {{"data_sent": 1000}}}})
    folder.write_summary({{"verdict": "VALID" if valid else "INVALID", "reasons": reasons}})
    folder.close()
    progress.tell(end={{"valid": valid, "reasons": reasons, "interrupted": interrupted}})


"""


class FakeGuest:
    """Stands in for a built kernel and the folders around a guest.

    Attributes:
        program: what is started in the kernel's place.
        temporary: where control folders are made.
        family: file to which a script may write numbers of its processes, one a line.
    """

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.program, self.temporary = root / "linux", root / "tmp"
        self.family = root / "family"
        compiled = root / "mmu.o"
        compiled.write_bytes(b"")
        self.temporary.mkdir()
        built = BuiltKernel(self.program, "6", "0", "0", "here", "gcc", "0", "now", 1.0, 1)
        monkeypatch.setattr(kernel, "require", lambda: built)
        monkeypatch.setattr(launch, "object_file", lambda: compiled)
        monkeypatch.setattr(launch, "least_busy", lambda: 0)
        monkeypatch.setattr(machine.os, "sched_setaffinity", lambda _pid, _processors: None)
        monkeypatch.setattr(tempfile, "tempdir", str(self.temporary))
        monkeypatch.setenv("FABRICLAB_CACHE", str(root / "cache"))
        monkeypatch.setenv("FAMILY", str(self.family))

    def does(self, script: str) -> None:
        """Sets what the guest does: Python, with `start` and `finish` at hand."""
        self.program.write_text(_PROLOGUE + script)
        self.program.chmod(0o755)

    def living(self) -> list[int]:
        """Processes of the guest that run still."""
        words = self.family.read_text().split() if self.family.exists() else []
        numbers = [int(word) for word in words]
        return [number for number in numbers if is_alive(number, start_time(number) or "")]

    def left(self) -> list[Path]:
        """What is left in the folder for temporary things."""
        return list(self.temporary.iterdir())
