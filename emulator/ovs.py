"""An Open vSwitch of the run's own: database and daemon inside the run's network namespace.

Nothing of a system-wide Open vSwitch is touched, bridge names cannot clash, and the OpenFlow
port is always free. The kernel datapath is per namespace too, so both kinds work this way.
"""

from __future__ import annotations

import functools
import json
import os
import socket
import subprocess
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from emulator.kernel.process import spawn, stop
from emulator.programs import find_program
from emulator.waiting import wait_for
from topologies.errors import MachineError

_SCHEMA = (
    "/usr/share/openvswitch/vswitch.ovsschema",
    "/usr/local/share/openvswitch/vswitch.ovsschema",
)
_PATIENCE_S = 30.0
# Learnt datapath flows stay for the whole run: an expired one costs the next packet milliseconds.
# The userspace datapath asks for 32 packet buffers at each look at a port; this keeps them at hand.
_ALLOCATOR = "glibc.malloc.tcache_max=65536:glibc.malloc.tcache_count=1024"
# Without this, Open vSwitch deletes the egress queues of every port that it is given.
_LEAVE_QUEUES_ALONE = "linux-noop"
_MAX_IDLE_MS = 24 * 3600 * 1000
_CONFIG = ["map", [["max-idle", str(_MAX_IDLE_MS)], ["flow-limit", "1000000"]]]


@dataclass(frozen=True, slots=True)
class BridgePort:
    """A port of a bridge: interface name and OpenFlow port number."""

    name: str
    number: int


@dataclass(frozen=True, slots=True)
class Bridge:
    """A bridge to create: name, datapath id, ports."""

    name: str
    dpid: int
    ports: tuple[BridgePort, ...]


def _program(name: str) -> str:
    found = find_program(name)
    if not found:
        raise MachineError(
            f"Open vSwitch's {name} is missing; install it (apt install openvswitch-switch)"
        )
    return found


class OpenVSwitch:
    """Starts, configures and ends one private Open vSwitch.

    Args:
        folder: its sockets, database and logs.
        netns_fd: the namespace in which its bridges live.
        datapath: ``netdev`` (userspace) or ``system`` (kernel).
    """

    def __init__(self, folder: Path, netns_fd: int, datapath: str = "netdev") -> None:
        self.folder, self.datapath = folder, datapath
        self._netns_fd = netns_fd
        self.env = {
            "OVS_RUNDIR": str(folder),
            "OVS_LOGDIR": str(folder),
            "OVS_DBDIR": str(folder),
            "OVS_SYSCONFDIR": str(folder),
            "GLIBC_TUNABLES": _ALLOCATOR,
        }
        self._started: Callable[[int], None] = lambda _pid: None
        self.processes: list[subprocess.Popen[bytes]] = []

    @property
    def socket(self) -> Path:
        """The database's socket."""
        return self.folder / "db.sock"

    def start(self, started: Callable[[int], None] = lambda _pid: None) -> None:
        """Starts database and daemon and waits until both answer; tells `started` each process."""
        self._started = started
        self.folder.mkdir(parents=True, exist_ok=True)
        database = self.folder / "conf.db"
        schema = next((path for path in _SCHEMA if Path(path).exists()), None)
        if schema is None:
            raise MachineError("Open vSwitch's schema is missing; reinstall openvswitch-switch")
        subprocess.run(
            [_program("ovsdb-tool"), "create", str(database), schema],
            check=True,
            capture_output=True,
        )
        self._spawn(_program("ovsdb-server"), str(database), f"--remote=punix:{self.socket}")
        wait_for(self._database_answers, _PATIENCE_S, "Open vSwitch's database to start")
        self.transact([{"op": "insert", "table": "Open_vSwitch", "row": {"other_config": _CONFIG}}])
        self._spawn(_program("ovs-vswitchd"), f"unix:{self.socket}")
        wait_for(self._daemon_is_ready, _PATIENCE_S, "ovs-vswitchd to start")

    def _spawn(self, program: str, *arguments: str) -> None:
        name = Path(program).name
        command = [program, *arguments, f"--pidfile={self.folder / name}.pid",
                   f"--log-file={self.folder / name}.log", "-vconsole:off", "--no-chdir",
                   f"--unixctl={self.folder / name}.ctl"]  # fmt: skip
        log = self.folder / f"{name}.out"
        process = spawn(command, netns_fd=self._netns_fd, log=log, env=self.env)
        self.processes.append(process)
        self._started(process.pid)

    def _database_answers(self) -> bool:
        try:
            with socket.socket(socket.AF_UNIX) as connection:
                connection.connect(str(self.socket))
        except OSError:
            return False
        return True

    def _daemon_is_ready(self) -> bool:
        return (self.folder / "ovs-vswitchd.ctl").exists()

    def transact(self, operations: Sequence[object]) -> list[Any]:
        """One OVSDB transaction (RFC 7047); raises MachineError when it fails."""
        request = {
            "method": "transact",
            "params": ["Open_vSwitch", *operations],
            "id": 0,
        }
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(self.socket))
            connection.sendall(json.dumps(request).encode())
            answer = _read_json(connection)
        results: list[Any] = answer["result"] or []
        failed = [entry for entry in results if isinstance(entry, dict) and "error" in entry]
        if answer.get("error") or failed:
            raise MachineError(
                f"Open vSwitch refused a transaction: {answer.get('error') or failed}"
            )
        return results

    def add_bridges(self, bridges: Iterable[Bridge], controller: str) -> None:
        """Creates all bridges with their ports and controller in one call and waits for them."""
        command = [
            _program("ovs-vsctl"),
            f"--db=unix:{self.socket}",
            f"--timeout={int(_PATIENCE_S)}",
        ]
        command += ["--", "--id=@shaped", "create", "qos", f"type={_LEAVE_QUEUES_ALONE}"]
        for bridge in bridges:
            command += self._bridge_arguments(bridge, controller)
        done = subprocess.run(
            command,
            check=False,
            capture_output=True,
            text=True,
            env={**os.environ, **self.env},
        )
        if done.returncode:
            raise MachineError(f"Open vSwitch refused the bridges: {done.stderr.strip()[-400:]}")

    def _bridge_arguments(self, bridge: Bridge, controller: str) -> list[str]:
        words = ["--", "add-br", bridge.name, "--", "set", "bridge", bridge.name,
                 f"datapath_type={self.datapath}", "fail_mode=secure", "protocols=OpenFlow13",
                 f"other_config:datapath-id={bridge.dpid:016x}",
                 "other_config:disable-in-band=true", "other_config:flow-eviction-threshold=200000",
                 "mcast_snooping_enable=false"]  # fmt: skip
        for port in bridge.ports:
            words += ["--", "add-port", bridge.name, port.name, "--", "set", "interface", port.name,
                      f"ofport_request={port.number}", "--", "set", "port", port.name,
                      "qos=@shaped"]  # fmt: skip
        words += ["--", "set-controller", bridge.name, controller]
        return [
            *words,
            "--",
            "set",
            "controller",
            bridge.name,
            "inactivity_probe=0",
            "max_backoff=1000",
        ]

    def ofctl(self, command: str, bridge: str, *arguments: str) -> str:
        """Output of ovs-ofctl with OpenFlow 1.3, for evidence and tests."""
        target = f"unix:{self.folder / bridge}.mgmt"
        done = subprocess.run(
            [_program("ovs-ofctl"), "-O", "OpenFlow13", command, target, *arguments],
            check=False, capture_output=True, text=True, env={**os.environ, **self.env},
        )  # fmt: skip
        return done.stdout + done.stderr

    def send_first_frame(self, bridge: str) -> None:
        """Sends one empty frame from a bridge: only then does the daemon open its sending socket.

        The socket takes the send buffer of that moment, so this must happen while the default is
        raised. The frame has the ethertype for local experiments (IEEE 802), which no host takes.
        """
        frame = "020000000002" + "020000000001" + "88b5" + "00" * 46
        answer = self.ofctl("packet-out", bridge, "LOCAL", "output:1", frame)
        if answer.strip():
            raise MachineError(f"Open vSwitch does not send: {answer.strip()[-200:]}")

    @functools.cached_property
    def version(self) -> str:
        """What ovs-vswitchd says that it is."""
        command = [_program("ovs-vswitchd"), "--version"]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        return done.stdout.split("\n")[0].rpartition(" ")[2]

    def stop(self) -> None:
        """Ends the daemon, then the database."""
        while self.processes:
            stop(self.processes.pop())


def _read_json(connection: socket.socket) -> Any:
    decoder = json.JSONDecoder()
    text = ""
    while True:
        data = connection.recv(1 << 16)
        if not data:
            raise MachineError("Open vSwitch's database closed the connection")
        text += data.decode()
        try:
            return decoder.raw_decode(text)[0]
        except json.JSONDecodeError:
            continue
