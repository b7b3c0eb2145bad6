"""A machine's folders of run state and namespaces, somewhere else, and processes to put there."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import pytest

from emulator import naming
from emulator.kernel import netns
from emulator.kernel.process import start_time
from emulator.ownership import FILE, Owned

GONE = (2**22 + 1, "1")
"""A process that cannot be: the number is above what the kernel hands out."""


class FakeMachine:
    """Folders below a temporary one in place of /run/fabriclab and /run/netns."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.state, self.namespaces = root / "state", root / "netns"
        self.namespaces.mkdir(parents=True)
        monkeypatch.setattr(naming, "STATE_FOLDER", self.state)
        monkeypatch.setattr(netns, "FOLDER", self.namespaces)

    def add(self, owned: Owned) -> Path:
        """Write down what a run owns; make its namespaces; return its folder."""
        folder = self.state / owned.run_id
        folder.mkdir(parents=True)
        (folder / FILE).write_text(json.dumps(asdict(owned)))
        for name in owned.namespaces:
            (self.namespaces / name).touch()
        return folder


@contextmanager
def child(stubborn: bool = False) -> Iterator[tuple[int, str]]:
    """(number, start time) of a process that waits for the end of the block.

    Args:
        stubborn: it does not listen when it is asked to end.
    """
    script = "trap '' TERM; " * stubborn + "echo; exec cat"
    pipe = subprocess.PIPE
    with subprocess.Popen(["sh", "-c", script], stdin=pipe, stdout=pipe) as process:
        assert process.stdout is not None
        process.stdout.readline()
        started = start_time(process.pid)
        assert started is not None
        yield process.pid, started
        process.kill()
