"""Starts ``python -m controller`` for a test and follows it by its state file and its log."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 30.0
POLL_S = 0.01


def wait_until(condition: Callable[[], bool], what: str) -> None:
    """Look until a condition holds; fails the test when it never does."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, f"waited {PATIENCE_S} s in vain until {what}"
        time.sleep(POLL_S)


def free_port() -> int:
    """A TCP port on 127.0.0.1 that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class ControllerProcess:
    """One controller; leaving the ``with`` block ends it.

    Args:
        config: its configuration; the OpenFlow port is chosen here.
        folder: where its files are.
        framework: ``ryu`` or ``os_ken``.
        port: the OpenFlow port, or None for a free one.
    """

    def __init__(
        self,
        config: dict[str, object],
        folder: Path,
        framework: str,
        port: int | None = None,
    ) -> None:
        self.port = port or free_port()
        self.log = folder / "controller.log"
        self._state_file = Path(str(config["state_file"]))
        path = folder / "controller.json"
        path.write_text(json.dumps(config | {"openflow_port": self.port}))
        environment = os.environ | {"FABRICLAB_SDN": framework, "PYTHONPATH": str(ROOT)}
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "controller", str(path)], env=environment, stderr=log,
                stdin=subprocess.DEVNULL, stdout=log, cwd=folder,
            )  # fmt: skip

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        self.process.wait(PATIENCE_S)

    def state(self) -> dict[str, Any]:
        """What it has last said of itself; empty when that was not this process."""
        try:
            state: dict[str, Any] = json.loads(self._state_file.read_text())
        except OSError:
            return {}
        return state if state["pid"] == self.process.pid else {}

    def wait_for_state(self, condition: Callable[[dict[str, Any]], bool], what: str) -> None:
        """Wait until its state is as wanted; fails with the log when it has ended instead."""

        def holds() -> bool:
            state = self.state()
            if state and condition(state):
                return True
            assert self.process.poll() is None, self.log.read_text()
            return False

        wait_until(holds, what)

    def wait_ready(self) -> None:
        """Wait until it is ready."""
        self.wait_for_state(lambda state: bool(state["ready"]), "the controller is ready")

    def wait_listening(self) -> None:
        """Wait until it accepts connections."""
        wait_until(self._accepts, "the controller listens")

    def _accepts(self) -> bool:
        assert self.process.poll() is None, self.log.read_text()
        try:
            socket.create_connection(("127.0.0.1", self.port), PATIENCE_S).close()
        except OSError:
            return False
        return True

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Send a signal and wait for the exit code."""
        self.process.send_signal(number)
        return self.process.wait(PATIENCE_S)
