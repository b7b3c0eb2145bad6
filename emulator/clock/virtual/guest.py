"""Process 1 of the guest: makes its world, runs one experiment, switches the guest off.

``python -m emulator.clock.virtual.guest CONTROL`` where CONTROL is a folder of the host with
``request.json``; the run folder is the only place of the host that this can write to.
"""

from __future__ import annotations

import ctypes
import json
import os
import socket
import sys
import time
import traceback
from datetime import datetime
from pathlib import Path
from typing import Any

from emulator.clock.virtual import paths
from emulator.clock.virtual.console import ConsoleProgress
from emulator.clock.virtual.control import REQUEST, SPEC, STOP

_MS_SYNCHRONOUS = 0x10
_MS_RDONLY = 1
_POWER_OFF = 0x4321FEDC
# Open vSwitch learns how many processors there are from a timer that begins at 0 and runs out
# after 10 s; until then it handles no packets. Waiting for it costs no wall time.
_START_S = 20.0
CONTROL, RESULTS = Path("/run/control"), Path("/run/results")
_RESOURCE_ID = "000000"
_libc = ctypes.CDLL(None, use_errno=True)


def mount(source: str, target: Path, kind: str, flags: int = 0, data: str = "") -> None:
    """Mounts a file system; the target is created."""
    target.mkdir(parents=True, exist_ok=True)
    path = os.fsencode(target)
    if _libc.mount(source.encode(), path, kind.encode(), flags, os.fsencode(data) or None):
        code = ctypes.get_errno()
        raise OSError(code, f"mount {kind} on {target}: {os.strerror(code)}")


def make_world(control: str) -> dict[str, Any]:
    """File systems, loopback, the hour at which Open vSwitch works; returns the request."""
    request: dict[str, Any] = json.loads((Path(control) / REQUEST).read_text())
    mount("proc", Path("/proc"), "proc")
    mount("sysfs", Path("/sys"), "sysfs")
    mount("bpf", Path("/sys/fs/bpf"), "bpf")
    for folder in paths.REPLACED:
        mount("tmpfs", folder, "tmpfs")
    for path in request["needed"]:
        mount("none", Path(path), "hostfs", _MS_RDONLY, path)
    mount("none", CONTROL, "hostfs", _MS_RDONLY, control)
    mount("none", RESULTS, "hostfs", _MS_SYNCHRONOUS, request["folder"])
    _loopback_up()
    time.sleep(max(0.0, _START_S - time.monotonic()))
    return request


def _loopback_up() -> None:
    from emulator.kernel import links, netlink  # noqa: PLC0415 - after /proc is there

    with netlink.Session() as session:
        session.run([links.up(socket.if_nametoindex("lo"), "lo")])


def run(request: dict[str, Any], progress: ConsoleProgress) -> dict[str, Any]:
    """The experiment; returns what the host is told at the end."""
    from emulator.run import session  # noqa: PLC0415 - the world must be made first
    from emulator.run.supervising import Interrupt  # noqa: PLC0415
    from emulator.spec.load import load  # noqa: PLC0415

    class Asked(Interrupt):
        """The user's wish to end, as a file of the host.

        It is there and empty until then, and only its length is looked at: a call that fails takes
        1 us, for which all others in here have to wait.
        """

        found = ""

        @property
        def asked(self) -> str:
            """The signal's name, empty while there was none."""
            if not self.found and (CONTROL / STOP).stat().st_size:
                self.found = (CONTROL / STOP).read_text()
            return self.found

        @asked.setter
        def asked(self, _value: str) -> None:
            """Nobody here sends signals."""

    experiment = load(CONTROL / SPEC)
    identity = session.Identity(request["run"], datetime.fromisoformat(request["started"]))
    outcome = session.run_once(
        session.Request(
            experiment, 0.0, RESULTS, request["label"],
            "system", identity, RESULTS, _RESOURCE_ID, request["installed"],
        ),
        progress, Asked(),
    )  # fmt: skip
    verdict = outcome.verdict
    return {
        "valid": verdict.valid, "reasons": list(verdict.reasons),
        "interrupted": outcome.interrupted,
    }  # fmt: skip


def main(control: str) -> None:
    """Everything; never returns."""
    progress = ConsoleProgress(sys.stdout)
    try:
        progress.note("guest is up")
        end = run(make_world(control), progress)
    except BaseException as error:  # noqa: BLE001 - whatever it is, the host must hear of it
        traceback.print_exc(file=sys.stdout)
        end = {"error": f"{type(error).__name__}: {error}"}
    progress.tell(end=end)
    os.sync()
    _libc.reboot(_POWER_OFF)


if __name__ == "__main__":
    main(sys.argv[1])
