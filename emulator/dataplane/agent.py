"""The agent: one process that tunes all switches of a run, asked by JSON-RPC 2.0.

OpenFlow has no words for marking thresholds, buffers and queue lengths; this channel has. One JSON
object per line over a Unix stream socket (see `controller.rpc`); `emulator.dataplane.methods` says
what can be asked, and besides:

    subscribe {interval_ns}    then notifications "queues", with what read_queues answers
    subscribe_pfc {}           then notifications "pfc" {port, tc, paused, held_bytes}: an ingress
                               port and class has crossed XOFF or XON
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from controller import rpc
from emulator.dataplane.methods import Methods
from emulator.dataplane.pause_driver import PauseDriver
from emulator.dataplane.tables import Tables
from emulator.kernel import netlink
from emulator.kernel.polling import Poller
from topologies.errors import SpecError
from topologies.reading import Reader

_RECEIVE_BYTES = 1 << 16
_LEAST_WALL_NS = 1_000_000
_LOOK_EVERY_NS = 200_000_000
_SEND_PATIENCE_S = 1.0


@dataclass
class _Client:
    connection: socket.socket
    decoder: rpc.Decoder = field(default_factory=rpc.Decoder)
    interval_ns: int | None = None
    next_ns: int = 0
    wants_crossings: bool = False


class Agent:
    """Serves `Methods` to any number of clients on a Unix socket, and drives the pauses.

    Args:
        path: the socket.
        methods: what can be asked.
        dilation: wall ns per model ns, for the interval of subscriptions.
        pauses: woken by what crosses XOFF and XON; None where no class is lossless.
    """

    def __init__(
        self, path: Path, methods: Methods, dilation: float, pauses: PauseDriver | None = None
    ) -> None:
        self._methods, self._dilation, self._pauses = methods, dilation, pauses
        self._poller: Poller[_Client | Callable[[], None]] = Poller()
        self._server = socket.socket(socket.AF_UNIX)
        self._server.bind(str(path))
        self._server.listen()
        self._poller.register(self._server.fileno(), self._accept)
        if pauses is not None:
            pauses.listeners.append(self._tell_crossing)
            for fd, call in pauses.wakers():
                self._poller.register(fd, call)

    def __enter__(self) -> Agent:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends all connections and serves no more."""
        for client in self._clients():
            self._drop(client)
        self._poller.close()
        self._server.close()

    def serve(self, should_stop: Callable[[], bool]) -> None:
        """Serves until told to stop; looks at that several times a second."""
        while not should_stop():
            for woken in self._poller.wait(self._patience_ns()):
                if isinstance(woken, _Client):
                    self._read(woken)
                else:
                    woken()
            if self._pauses is not None:
                self._pauses.on_time()
            self._notify()

    def _patience_ns(self) -> int:
        now = time.monotonic_ns()
        due = [client.next_ns for client in self._subscribers()]
        pause_ns = self._pauses.next_ns() if self._pauses else None
        if pause_ns is not None:
            due.append(pause_ns)
        return min([now + _LOOK_EVERY_NS, *due]) - now

    def _clients(self) -> list[_Client]:
        return [item for item in self._poller.items() if isinstance(item, _Client)]

    def _subscribers(self) -> list[_Client]:
        return [client for client in self._clients() if client.interval_ns is not None]

    def _tell_crossing(
        self, port: int, tc: int, paused: bool, _at_ns: int, held_bytes: int
    ) -> None:
        for client in self._clients():
            if client.wants_crossings:
                told = self._methods.crossing(port, tc, paused, held_bytes)
                self._tell(client, rpc.Notification("pfc", told))

    def _accept(self) -> None:
        connection, _ = self._server.accept()
        connection.settimeout(_SEND_PATIENCE_S)  # nobody who does not read holds up the others
        self._poller.register(connection.fileno(), _Client(connection))

    def _drop(self, client: _Client) -> None:
        self._poller.unregister(client.connection.fileno())
        client.connection.close()

    def _read(self, client: _Client) -> None:
        try:
            data = client.connection.recv(_RECEIVE_BYTES)
            if not data:
                self._drop(client)
                return
            for message in client.decoder.feed(data):
                self._handle(client, message)
        except (OSError, rpc.RpcError):
            self._drop(client)

    def _handle(self, client: _Client, message: rpc.Message | rpc.RpcError) -> None:
        if isinstance(message, rpc.RpcError):
            client.connection.sendall(rpc.encode(message.response()))
        elif isinstance(message, rpc.Request):
            client.connection.sendall(rpc.encode(self._answer(client, message)))

    def _answer(self, client: _Client, request: rpc.Request) -> rpc.Message:
        try:
            if request.method == "subscribe":
                return rpc.Response(request.id, self._subscribe(client, request.params))
            if request.method == "subscribe_pfc":
                client.wants_crossings = True
                return rpc.Response(request.id, {})
            return rpc.Response(request.id, self._methods.call(request.method, request.params))
        except rpc.RpcError as error:
            return error.response(request.id)

    def _subscribe(self, client: _Client, params: Mapping[str, object]) -> object:
        """Model time between notifications; never more than a thousand per second of wall time."""
        try:
            with Reader(dict(params), "subscribe") as reader:
                interval_ns = reader.number("interval_ns", minimum=1)
        except SpecError as error:
            raise rpc.RpcError(rpc.INVALID_PARAMS, str(error)) from error
        client.interval_ns = max(_LEAST_WALL_NS, round(interval_ns * self._dilation))
        client.next_ns = time.monotonic_ns() + client.interval_ns
        return {}

    def _notify(self) -> None:
        now = time.monotonic_ns()
        for client in self._subscribers():
            if client.next_ns <= now and client.interval_ns is not None:
                client.next_ns = now + client.interval_ns
                self._tell(client, rpc.Notification("queues", self._methods.queues()))

    def _tell(self, client: _Client, message: rpc.Notification) -> None:
        try:
            client.connection.sendall(rpc.encode(message))
        except OSError:
            self._drop(client)


def serve(
    path: Path,
    plane: Tables,
    emulated_bps: list[int],
    run_id: str,
    dilation: float,
    burst_ns: int,
    should_stop: Callable[[], bool],
    pauses: PauseDriver | None = None,
    pipeline_ns: int = 0,
) -> None:
    """Runs the agent in this process, which is in the switches' namespace."""
    with netlink.Session() as session:
        methods = Methods(plane, emulated_bps, session, run_id, burst_ns, pauses, pipeline_ns)
        with Agent(path, methods, dilation, pauses) as agent:
            agent.serve(should_stop)
