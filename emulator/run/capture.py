"""Captures of ports while a run lasts, one pcap file per port, whole frames."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from emulator.fabric import LiveFabric
from emulator.kernel.process import spawn, stop
from emulator.programs import find_program
from emulator.waiting import wait_for
from topologies.errors import MachineError

FOLDER = "pcap"
_PATIENCE_S = 10.0
_QUIET_S = 0.2
_BUFFER_KIB = 65536


@contextmanager
def capturing(live: LiveFabric, ports: Sequence[str], results: Path) -> Iterator[None]:
    """Captures what passes these ports, both ways, during the block.

    Args:
        live: the fabric.
        ports: interface names.
        results: the run folder; files go to ``pcap/<port>.pcap``.

    Raises:
        MachineError: tcpdump is missing or does not start.
    """
    running: list[subprocess.Popen[bytes]] = []
    try:
        running += [_start(live, name, results / FOLDER) for name in ports]
        yield
        _await_silence([results / FOLDER / f"{name}.pcap" for name in ports])
    finally:
        for process in running:
            stop(process)


def _await_silence(files: Sequence[Path]) -> None:
    """Returns when no capture grows any more: what the kernel still had is written."""
    sizes: list[int] = []
    while sizes != (sizes := [path.stat().st_size for path in files]):
        time.sleep(_QUIET_S)


def _start(live: LiveFabric, name: str, folder: Path) -> subprocess.Popen[bytes]:
    program = find_program("tcpdump")
    if program is None:
        raise MachineError("tcpdump is missing; install it (apt install tcpdump), or drop pcap:")
    folder.mkdir(exist_ok=True)
    target, log = folder / f"{name}.pcap", live.folder / f"tcpdump-{name}.log"
    # As root it would give a file that it opens itself to another user, which in a guest fails
    # where the host's user is not root.
    command = ["sh", "-c", 'exec "$@" > "$0"', str(target),
               program, "-i", name, "-w", "-", "-U", "-s", "0", "-n", "-Z", "root",
               "--immediate-mode", "-B", str(_BUFFER_KIB),
               "--time-stamp-precision=nano"]  # fmt: skip
    node = live.fabric.port_named(name).node
    process = spawn(command, netns_fd=live.netns_fd(node), log=log)
    live.ledger.add_process(process.pid)
    wait_for(lambda: b"listening" in log.read_bytes(), _PATIENCE_S, f"the capture of {name}")
    return process
