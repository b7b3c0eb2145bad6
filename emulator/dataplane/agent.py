"""The agent: one process that tunes all switches of a run, asked by JSON-RPC 2.0.

OpenFlow has no words for marking thresholds, buffers and queue lengths; this channel has. Values
are in target units. One JSON object per line over a Unix stream socket (see `controller.rpc`).

    hello {}                                                 version, run, ports, switches
    set_ecn {port, tc, kmin_bytes, kmax_bytes, pmax}         kmax 0 = marking off
    set_scheduler {port, classes: [{tc, priority, weight}]}  lower priority number first
    set_buffer {switch, bytes, alpha: [8 numbers]}
    read_queues {}                                           bytes, packets, drops, marks per queue
    subscribe {interval_ns}                                  then notifications "queues"
"""

from __future__ import annotations

import selectors
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from controller import rpc
from emulator.dataplane import building
from emulator.dataplane.tables import Tables
from emulator.kernel import netlink, queues
from emulator.spec.ports import MAX_ALPHA, MAX_THRESHOLD_BYTES, MIN_ALPHA
from topologies.errors import SpecError
from topologies.model import Port
from topologies.reading import Reader, as_number
from topologies.settings import CLASSES, ClassRule, EcnRule

PROTOCOL = 1
_RECEIVE_BYTES = 1 << 16
_MAX_BUFFER_BYTES = 1 << 40
_LEAST_WALL_S = 0.001
_LOOK_EVERY_S = 0.2
_SEND_PATIENCE_S = 1.0


@dataclass
class _Client:
    connection: socket.socket
    decoder: rpc.Decoder = field(default_factory=rpc.Decoder)
    interval_s: float | None = None
    next_s: float = 0.0


class Methods:
    """What can be asked, over a data plane; no sockets here.

    Args:
        plane: the data plane.
        emulated_bps: emulated rate of each link, bit/s by link id.
        session: netlink in the switches' namespace; None when schedulers cannot be changed.
        run_id: told by hello.
    """

    def __init__(
        self,
        plane: Tables,
        emulated_bps: list[int],
        session: netlink.Session | None,
        run_id: str,
    ) -> None:
        self._plane, self._bps, self._session, self._run_id = plane, emulated_bps, session, run_id
        self._fabric = plane.fabric
        self._table: dict[str, Callable[[Reader], object]] = {
            "hello": self._hello,
            "set_ecn": self._set_ecn,
            "set_scheduler": self._set_scheduler,
            "set_buffer": self._set_buffer,
            "read_queues": self._read_queues,
        }

    def call(self, method: str, params: Mapping[str, object]) -> object:
        """The result of a call.

        Raises:
            rpc.RpcError: unknown method, wrong parameters, or the kernel refused.
        """
        if method not in self._table:
            known = ", ".join(sorted([*self._table, "subscribe"]))
            raise rpc.RpcError(rpc.METHOD_NOT_FOUND, f"no method {method!r}; known: {known}")
        try:
            with Reader(dict(params), method) as reader:
                return self._table[method](reader)
        except SpecError as error:
            raise rpc.RpcError(rpc.INVALID_PARAMS, str(error)) from error
        except OSError as error:
            raise rpc.RpcError(rpc.SERVER_ERROR, str(error)) from error

    def queues(self) -> dict[str, object]:
        """Lengths and counters of all queues that are or were in use."""
        classes = self._plane.states["classes"]
        queued = self._plane.queued_bytes()
        rows = []
        for port, tc in zip(*classes["in_packets"].nonzero(), strict=True):
            entry = classes[port, tc]
            rows.append(
                {
                    "port": self._fabric.port(int(port)).name,
                    "tc": int(tc),
                    "bytes": int(queued[port, tc]),
                    "packets_in": int(entry["in_packets"]),
                    "packets_out": int(entry["out_packets"]),
                    "dropped": int(entry["drop_packets"]),
                    "marked": int(entry["mark_packets"]),
                    "peak_bytes": int(entry["peak_bytes"]),
                }
            )
        return {"queues": rows}

    def _hello(self, _reader: Reader) -> object:
        ports = [port.name for port in self._fabric.ports if self._is_switch(port)]
        return {
            "protocol": PROTOCOL, "run": self._run_id, "ports": ports,
            "switches": list(self._plane.switch_ids),
        }  # fmt: skip

    def _is_switch(self, port: Port) -> bool:
        return self._fabric.by_name[port.node].is_switch

    def _port(self, reader: Reader) -> Port:
        names = {port.name: port for port in self._fabric.ports if self._is_switch(port)}
        return names[reader.choice("port", names, what="switch port")]

    def _set_ecn(self, reader: Reader) -> object:
        port, tc = self._port(reader), _traffic_class(reader)
        kmin = reader.integer("kmin_bytes", minimum=0, maximum=MAX_THRESHOLD_BYTES)
        kmax = reader.integer("kmax_bytes", minimum=0, maximum=MAX_THRESHOLD_BYTES)
        pmax = reader.number("pmax", minimum=0, maximum=1)
        if kmax:
            EcnRule(tc, kmin, kmax, pmax)  # checks
        self._plane.set_ecn(port.index, tc, kmin, kmax, pmax)
        return {}

    def _set_scheduler(self, reader: Reader) -> object:
        port = self._port(reader)
        rules: dict[int, ClassRule] = {}
        for entry in reader.readers("classes", minimum=1):
            with entry:
                tc = _traffic_class(entry)
                if tc in rules:
                    raise SpecError(entry.at("tc"), tc, "is given twice")
                rules[tc] = ClassRule(tc, entry.integer("priority"), entry.integer("weight"))
        if self._session is None:
            raise rpc.RpcError(rpc.SERVER_ERROR, "schedulers cannot be changed here")
        self._session.run(
            queues.leaves(
                building.interface_index(port.index), port.name, self._bps[port.link],
                building.leaf_classes(rules), building.quantum_bytes(self._fabric),
            )
        )  # fmt: skip
        return {}

    def _set_buffer(self, reader: Reader) -> object:
        switch = reader.choice("switch", self._plane.switch_ids, what="switch")
        size = reader.integer("bytes", minimum=1, maximum=_MAX_BUFFER_BYTES)
        entries = reader.items("alpha", minimum=CLASSES, maximum=CLASSES)
        alphas = [
            as_number(value, path, minimum=MIN_ALPHA, maximum=MAX_ALPHA) for path, value in entries
        ]
        self._plane.set_buffer(switch, size, alphas)
        return {}

    def _read_queues(self, _reader: Reader) -> object:
        return self.queues()


def _traffic_class(reader: Reader) -> int:
    return reader.integer("tc", minimum=0, maximum=CLASSES - 1)


class Agent:
    """Serves `Methods` to any number of clients on a Unix socket.

    Args:
        path: the socket.
        methods: what can be asked.
        dilation: wall ns per model ns, for the interval of subscriptions.
    """

    def __init__(self, path: Path, methods: Methods, dilation: float) -> None:
        self._methods, self._dilation = methods, dilation
        self._selector = selectors.DefaultSelector()
        self._server = socket.socket(socket.AF_UNIX)
        self._server.bind(str(path))
        self._server.listen()
        self._selector.register(self._server, selectors.EVENT_READ, None)

    def __enter__(self) -> Agent:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends all connections and serves no more."""
        for key in list(self._selector.get_map().values()):
            if key.data is not None:
                self._drop(key.data)
        self._selector.close()
        self._server.close()

    def serve(self, should_stop: Callable[[], bool]) -> None:
        """Serves until told to stop; looks at that several times a second."""
        while not should_stop():
            for key, _ in self._selector.select(self._patience_s()):
                if key.data is None:
                    self._accept()
                else:
                    self._read(key.data)
            self._notify()

    def _patience_s(self) -> float:
        now = time.monotonic()
        due = [c.next_s - now for c in self._subscribers()]
        return max(0.0, min([_LOOK_EVERY_S, *due]))

    def _subscribers(self) -> list[_Client]:
        data = (key.data for key in self._selector.get_map().values())
        return [client for client in data if client is not None and client.interval_s is not None]

    def _accept(self) -> None:
        connection, _ = self._server.accept()
        connection.settimeout(_SEND_PATIENCE_S)  # nobody who does not read holds up the others
        self._selector.register(connection, selectors.EVENT_READ, _Client(connection))

    def _drop(self, client: _Client) -> None:
        self._selector.unregister(client.connection)
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
        client.interval_s = max(_LEAST_WALL_S, interval_ns * self._dilation / 1e9)
        client.next_s = time.monotonic() + client.interval_s
        return {}

    def _notify(self) -> None:
        now = time.monotonic()
        for client in self._subscribers():
            if client.next_s <= now and client.interval_s is not None:
                client.next_s = now + client.interval_s
                try:
                    line = rpc.encode(rpc.Notification("queues", self._methods.queues()))
                    client.connection.sendall(line)
                except OSError:
                    self._drop(client)


def serve(
    path: Path,
    plane: Tables,
    emulated_bps: list[int],
    run_id: str,
    dilation: float,
    should_stop: Callable[[], bool],
) -> None:
    """Runs the agent in this process, which is in the switches' namespace."""
    with netlink.Session() as session:
        methods = Methods(plane, emulated_bps, session, run_id)
        with Agent(path, methods, dilation) as agent:
            agent.serve(should_stop)
