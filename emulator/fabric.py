"""Builds a fabric on this machine and takes it away: namespaces, links, queues, switches, rules.

with LiveFabric(...) as live:    # all links up, all rules in
    live.net['h1'].cmd('ping -c1 10.1.2.1')
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from emulator import conservation, naming, sysctls
from emulator.dataplane import agent, building, compiling, pause_setup
from emulator.dataplane.delays import link_delays
from emulator.dataplane.medium import open_sender
from emulator.dataplane.plane import DataPlane
from emulator.fabric_settings import FabricSettings
from emulator.kernel import links, netlink, netns, offloads
from emulator.kernel.forking import Forked
from emulator.kernel.priority import URGENT, raise_priority
from emulator.kernel.process import is_listening, spawn, stop
from emulator.ovs import Bridge, BridgePort, OpenVSwitch
from emulator.ownership import Ledger, exclusive
from emulator.waiting import wait_for
from topologies.addressing import dpid
from topologies.errors import MachineError
from topologies.files import fabric_to_dict, rule_to_dict
from topologies.model import Fabric, Port
from topologies.settings import ClassRule, resolve

__all__ = ["OPENFLOW_PORT", "FabricSettings", "LiveFabric"]

OPENFLOW_PORT = 6653
_READY_PATIENCE_S = 60.0


class LiveFabric:
    """A running fabric.

    Args:
        settings: what to build.
        ledger: where ownership is written down.
        note: told what is going on, for progress.
        with_controller: False leaves the switches without rules.
    """

    def __init__(
        self,
        settings: FabricSettings,
        ledger: Ledger,
        note: Callable[[str], None] = lambda _text: None,
        with_controller: bool = True,
    ) -> None:
        self.settings, self.ledger, self._note = settings, ledger, note
        self.fabric = settings.fabric
        self.run_id = ledger.owned.run_id
        self.timings_s: dict[str, float] = {}
        self.sysctls_before: dict[str, str] = {}
        self._with_controller = with_controller
        self._fds: dict[str, int] = {}
        self._senders: dict[int, socket.socket] = {}
        self._net: Any = None
        self._controller: Any = None
        self._controller_state: dict[str, Any] = {}
        self._agent: Forked | None = None
        self.priority = ""
        self.controller_died = False
        self.plane = DataPlane(
            self.fabric, settings.emulated_bps, settings.seed, compiling.object_file()
        )
        self.plane.apply_buffers(settings.buffers)
        self.plane.apply_ecn(settings.ecn)
        self.plane.apply_pfc(settings.pfc)
        self.plane.receivers.apply(settings.receivers, settings.pauses.classes, settings.dilation)
        self.plane.apply_trim(settings.trim)
        if settings.delays_in_path:
            bps, dilation = settings.emulated_bps, settings.dilation
            self.plane.set_delays(link_delays(self.fabric, bps, settings.switch, dilation))

    def netns_name(self, node: str) -> str:
        """Namespace of a node."""
        if self.fabric.by_name[node].is_switch:
            return naming.switches_namespace(self.run_id)
        return naming.host_namespace(self.run_id, node)

    def netns_fd(self, node: str) -> int:
        """File descriptor of a node's namespace."""
        return self._fds[self.netns_name(node)]

    @property
    def switches_fd(self) -> int:
        """File descriptor of the switches' namespace."""
        return self._fds[naming.switches_namespace(self.run_id)]

    @property
    def folder(self) -> Path:
        """Sockets, database and logs of the run while it lives."""
        return self.ledger.folder

    @property
    def state_file(self) -> Path:
        """What the controller says about itself."""
        return self.folder / "controller-state.json"

    def senders(self) -> dict[int, socket.socket]:
        """A sending packet socket of each host port, by port index; closed with the fabric."""
        if not self._senders:
            self._senders = {
                port.index: open_sender(self.netns_fd(port.node), port.name)
                for port in self.fabric.ports
                if not self.fabric.by_name[port.node].is_switch
            }
        return self._senders

    @property
    def by_class(self) -> list[dict[str, int]]:
        """Packets sent, dropped and marked of each class so far."""
        return conservation.by_class(self.plane.states)

    @property
    def ovs_version(self) -> str:
        """Version of Open vSwitch."""
        return self.ovs.version

    @property
    def net(self) -> Any:
        """The fabric as a `mininet.net.Mininet`."""
        if self._net is None:
            from emulator import mininet_net  # noqa: PLC0415 - Mininet is a system package

            self._net = mininet_net.wrap(
                self.fabric, self.netns_name, lambda port: building.port_mac(self.fabric, port),
                self.ovs.ofctl, building.PLANE_PREFIX,
            )  # fmt: skip
        return self._net

    def __enter__(self) -> LiveFabric:
        try:
            self._build()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def _timed(self, phase: str) -> Iterator[None]:
        self._note(phase)
        begin = time.monotonic()
        yield
        self.timings_s[phase] = time.monotonic() - begin

    def _build(self) -> None:
        with self._timed("namespaces"):
            self._create_namespaces()
        if self._with_controller:
            # Its framework takes a second to start, which links and switches need not wait for.
            self.start_controller()
        with self._timed("links"):
            self._create_links()
        if self._with_controller or self.settings.pfc:
            with self._timed("agent"):
                self._start_agent()
        with self._timed("switches"):
            self._start_switches()
        if self._with_controller:
            with self._timed("rules"):
                self.await_controller()

    def _create_namespaces(self) -> None:
        names = [naming.switches_namespace(self.run_id)]
        names += [naming.host_namespace(self.run_id, host.name) for host in self.fabric.hosts]
        self.ledger.add_namespaces(names)
        netns.create(names, _quiet)
        self._fds = {name: netns.open_fd(name) for name in names}

    def _create_links(self) -> None:
        with netlink.Session() as session:
            session.run(building.veth_pairs(self.fabric, self.netns_fd))
        rules = resolve(self.settings.scheduler, self.fabric)
        for name, fd in self._fds.items():
            ports = [port for port in self.fabric.ports if self.netns_name(port.node) == name]
            with netns.entered(fd), netlink.Session() as session:
                offloads.turn_off(port.name for port in ports)
                if self.settings.delays_in_path:
                    programs = self.plane.programs
                    session.run(building.delayer_messages(self.fabric, ports, programs))
                for port in ports:
                    session.run(self._port_messages(port, rules.get(port.index)))
                    session.run(pause_setup.gate_messages(port, self.settings.pauses.classes))
                    if not self.fabric.by_name[port.node].is_switch:
                        session.run(building.host_messages(self.fabric, port))

    def _port_messages(
        self, port: Port, rules: Mapping[int, ClassRule] | None
    ) -> list[netlink.Message]:
        settings = self.settings
        return building.port_messages(
            self.fabric, port, settings.emulated_bps[port.link], self.plane.programs,
            building.leaf_classes(rules), settings.burst_ns, settings.delays_in_path,
        )  # fmt: skip

    def _start_switches(self) -> None:
        self.ovs = OpenVSwitch(self.folder / "ovs", self.switches_fd, self.settings.datapath)
        self.ovs.start(self.ledger.add_process)
        self.priority = raise_priority(self.ovs.processes[-1].pid)
        if self._controller is not None:
            self._await_listening()
        # Its sockets take the buffers of the moment at which ports are added and first sent to.
        with exclusive(), sysctls.raised(sysctls.FOR_OPEN_VSWITCH, self.ledger) as before:
            self.sysctls_before = before
            self.ovs.add_bridges(_bridges(self.fabric), f"tcp:127.0.0.1:{OPENFLOW_PORT}")
            self.ovs.send_first_frame(self.fabric.switches[0].name)

    @property
    def agent_socket(self) -> Path:
        """Where the agent listens."""
        return self.folder / "agent.sock"

    @property
    def pause_log(self) -> Path:
        """What happened at the gates, for `emulator.dataplane.pause_log`."""
        return self.folder / "pauses.bin"

    @property
    def agent_died(self) -> bool:
        """Whether the agent's process has ended, which it does only with the fabric."""
        return self._agent is not None and self._agent.poll() is not None

    def _start_agent(self) -> None:
        def work(should_stop: Callable[[], bool]) -> None:
            settings, pauses = self.settings, None
            if settings.pfc:
                raise_priority(level=URGENT)
                pauses = pause_setup.open_driver(
                    self.plane, settings.pauses, self.netns_fd, self.pause_log
                )
            agent.serve(
                self.agent_socket, self.plane, list(settings.emulated_bps), self.run_id,
                settings.dilation, settings.burst_ns, should_stop, pauses,
                settings.switch.latency_ns + settings.pause_margin_ns,
            )  # fmt: skip

        self._agent = Forked("agent", work, self.folder / "agent.log", self.switches_fd)
        self.ledger.add_process(self._agent.pid)
        wait_for(self._agent_listens, _READY_PATIENCE_S, "the agent to start")

    def _agent_listens(self) -> bool:
        """Whether the agent can be asked; MachineError with its last words when it has ended."""
        if self.agent_died:
            log = (self.folder / "agent.log").read_text(errors="replace")
            raise MachineError(f"the agent ended early: {log.strip()[-600:]}")
        return self.agent_socket.exists()

    def controller_config(self) -> dict[str, Any]:
        """The JSON document that the controller gets."""
        settings = self.settings
        return {
            "run": self.run_id,
            "seed": settings.seed,
            "openflow_port": OPENFLOW_PORT,
            "agent_socket": str(self.agent_socket),
            "state_file": str(self.state_file),
            "fabric": fabric_to_dict(self.fabric),
            "routing": dict(settings.routing),
            "ecn": [rule_to_dict(rule) for rule in settings.ecn],
            "scheduler": [rule_to_dict(rule) for rule in settings.scheduler],
            "buffer": [rule_to_dict(rule) for rule in settings.buffers],
            "pfc": [
                rule_to_dict(rule) for classes in settings.pfc.values() for rule in classes.values()
            ],
            "trim": [rule_to_dict(rule) for rule in settings.trim],
        }

    def start_controller(self) -> None:
        """Starts the controller process (again)."""
        path = self.folder / "controller.json"
        path.write_text(json.dumps(self.controller_config()))
        self.state_file.unlink(missing_ok=True)
        self._controller_state = {}
        root = Path(__file__).resolve().parent.parent
        self._controller = spawn(
            [sys.executable, "-m", "controller", str(path)],
            netns_fd=self.switches_fd,
            log=self.folder / "controller.log",
            env={"PYTHONPATH": str(root), "PYTHONUNBUFFERED": "1"},
        )
        self.ledger.add_process(self._controller.pid)

    @property
    def controller(self) -> Any:
        """The controller's process."""
        return self._controller

    def controller_state(self) -> dict[str, Any]:
        """What the controller last wrote about itself; empty before its first word.

        Once the fabric is gone, it is what it had said when it was last asked.
        """
        with suppress(OSError, ValueError):
            self._controller_state = json.loads(self.state_file.read_text())
        return self._controller_state

    def _check_controller(self) -> None:
        """MachineError with the log's end when the controller's process died."""
        if self._controller.poll() is not None:
            log = (self.folder / "controller.log").read_text(errors="replace")
            raise MachineError(f"the controller ended early: {log.strip()[-600:]}")

    def _await_listening(self) -> None:
        """Waits until switches can connect: a refused one would try again after a second."""

        def listening() -> bool:
            self._check_controller()
            return is_listening(self._controller.pid, OPENFLOW_PORT)

        wait_for(listening, _READY_PATIENCE_S, "the controller to listen")

    def await_controller(self) -> None:
        """Waits until all rules are in; MachineError with the log's end when the process died."""

        def ready() -> bool:
            self._check_controller()
            return bool(self.controller_state().get("ready"))

        wait_for(ready, _READY_PATIENCE_S, "the controller to install all rules")

    def stop_controller(self) -> None:
        """Ends the controller; forwarding goes on."""
        if self._controller is not None:
            self.controller_died = self._controller.poll() is not None
            stop(self._controller)

    def close(self) -> None:
        """Takes everything away."""
        begin = time.monotonic()
        self._note("taking the fabric down")
        if self._net is not None:
            for node in self._net.values():
                node.terminate()
        self.stop_controller()
        if self._agent is not None:
            self._agent.kill()
        if getattr(self, "ovs", None) is not None:
            self.ovs.stop()
        for sender in self._senders.values():
            sender.close()
        self._senders = {}
        for fd in self._fds.values():
            os.close(fd)
        self._fds = {}
        self.ledger.close()
        self.timings_s["down"] = time.monotonic() - begin


def _quiet(_name: str) -> None:
    """Inside a new namespace: no IPv6 chatter, loopback up."""
    for scope in ("all", "default"):
        path = Path(f"/proc/sys/net/ipv6/conf/{scope}/disable_ipv6")
        if path.exists():
            path.write_text("1")
    with netlink.Session() as session:
        session.run([links.up(1, "lo")])


def _bridges(fabric: Fabric) -> list[Bridge]:
    return [
        Bridge(
            node.name,
            dpid(node),
            tuple(BridgePort(port.name, port.number) for port in fabric.ports_of[node.name]),
        )
        for node in fabric.switches
    ]
