"""The Ryu application: events in, a call of the core with the time, messages out.

All decisions are the core's. What is here is the connection of a datapath id to a socket, the
clock, the state file, the log, and the green thread that keeps the agent told.
"""

from __future__ import annotations

import logging
import time
from itertools import groupby
from operator import itemgetter
from typing import Any

from controller import openflow, process, sdn, state
from controller.agent_link import AgentLink
from controller.config import ControllerConfig
from controller.core.events import (
    BarrierDone,
    Event,
    PortChanged,
    SwitchConnected,
    SwitchGone,
)
from controller.core.network import Network
from controller.pausing import Pauser
from controller.process import kill_on_exception
from controller.settings import agent_calls
from topologies.addressing import dpid

LOG = logging.getLogger("controller")


class ControllerApp(sdn.App):
    """One per process.

    Args:
        config: what the controller was told.
    """

    OFP_VERSIONS = (sdn.ofproto_v1_3.OFP_VERSION,)

    def __init__(self, *args: object, config: ControllerConfig, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)
        self._config = config
        self._previous = state.read_previous(config.state_file, config.run, time.time_ns())
        self._network = Network(
            config.fabric, config.policy, config.seed, generation=self._previous.generation
        )
        self._names = {dpid(node): node.name for node in config.fabric.switches}
        self._connections: dict[int, openflow.Connection] = {}
        self._errors: dict[str, None] = {}
        self._logged = 0
        self._pauser = Pauser(config)
        self._agent = AgentLink(
            config.agent_socket, agent_calls(config), self._write_state, sdn.hub.sleep,
            pauser=self._pauser if self._pauser.wanted else None,
        )  # fmt: skip

    @kill_on_exception
    def start(self) -> None:
        """Called once by the framework when everything is loaded."""
        super().start()
        process.at_end(lambda reason: self._write_state(stopped=reason))
        self._write_state()
        self.threads.append(sdn.hub.spawn(kill_on_exception(self._agent.run)))

    @sdn.handles(sdn.ofp_event.EventOFPStateChange, sdn.MAIN, sdn.DEAD)
    @kill_on_exception
    def on_state(self, event: Any) -> None:
        """A switch has finished its handshake, or its connection has ended."""
        datapath = event.datapath
        if event.state == sdn.MAIN:
            self._connections[datapath.id] = openflow.Connection(datapath)
            self._handle(SwitchConnected(datapath.id, openflow.port_states(datapath)))
        elif self._is_current(datapath):
            del self._connections[datapath.id]
            self._handle(SwitchGone(datapath.id))

    @sdn.handles(sdn.ofp_event.EventOFPPortStatus, sdn.MAIN)
    @kill_on_exception
    def on_port(self, event: Any) -> None:
        """A port was added, changed or removed."""
        datapath = event.msg.datapath
        if self._is_current(datapath):
            self._handle(PortChanged(datapath.id, openflow.changed_port(event.msg)))

    @sdn.handles(sdn.ofp_event.EventOFPBarrierReply, sdn.MAIN)
    @kill_on_exception
    def on_barrier(self, event: Any) -> None:
        """A switch has finished all that came before a barrier."""
        datapath = event.msg.datapath
        if self._is_current(datapath):
            self._handle(BarrierDone(datapath.id, event.msg.xid))

    @sdn.handles(sdn.ofp_event.EventOFPErrorMsg, sdn.HANDSHAKE, sdn.CONFIG, sdn.MAIN)
    @kill_on_exception
    def on_error(self, event: Any) -> None:
        """A switch has refused a message."""
        datapath = event.msg.datapath
        connection = self._connections.get(datapath.id) or openflow.Connection(datapath)
        where = self._names.get(datapath.id, "an unknown switch")
        self._note_error(f"OpenFlow error of {where}: {connection.describe_error(event.msg)}")
        self._write_state()

    def _is_current(self, datapath: Any) -> bool:
        """False for a connection that the switch has replaced by a newer one."""
        connection = self._connections.get(datapath.id)
        return connection is not None and connection.datapath is datapath

    def _handle(self, event: Event) -> None:
        sent = self._network.handle(event, time.monotonic_ns())
        for number, entries in groupby(sent, key=itemgetter(0)):
            messages = [message for _, message in entries]
            what = type(event).__name__
            LOG.info("%s: %d messages after %s", self._names[number], len(messages), what)
            self._connections[number].send(messages)
        self._write_state()

    def _note_error(self, text: str) -> None:
        if text not in self._errors:
            self._errors[text] = None
            LOG.error("%s", text)

    def _write_state(self, stopped: str | None = None) -> None:
        status = self._network.status()
        for problem in status.problems[self._logged :]:
            LOG.error("%s", problem)
        self._logged = len(status.problems)
        content = state.document(
            self._config,
            status,
            self._agent.settings,
            framework=sdn.NAME,
            restarts=self._previous.restarts,
            generation=self._network.generation,
            errors=(*self._errors, *self._agent.errors),
            pauses=(self._pauser.crossings, self._pauser.orders),
            stopped=stopped,
        )
        state.write_atomically(self._config.state_file, content)
