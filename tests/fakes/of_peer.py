"""A switch that speaks OpenFlow 1.3 over TCP and keeps its rules in a `FakeTable`.

It does what Open vSwitch does of the protocol's first half: hello, features, ports, barriers,
echoes, port status, errors. No packet passes it.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

from controller.core.events import PortState
from controller.core.messages import Message
from tests.fakes import of_wire
from tests.fakes.of_table import FakeTable, OpenFlowError

CONNECT_TIMEOUT_S = 20.0
BAD_REQUEST, BAD_TYPE = 1, 1
FLOW_MOD_FAILED, TABLE_FULL = 5, 1


class FakeSwitch:
    """One switch; its thread serves one connection at a time.

    Args:
        dpid: its datapath id.
        ports: its ports.
        table: where its rules are; it outlives connections, as in a switch.

    Attributes:
        messages: all flow-mods and barriers of all connections, in order.
        watch: called after each of them, with `lock` held.
        lock: held while the table changes; switches of one network may share one.
    """

    def __init__(self, dpid: int, ports: tuple[PortState, ...], table: FakeTable) -> None:
        self.dpid = dpid
        self.ports = ports
        self.table = table
        self.messages: list[Message] = []
        self.watch: Callable[[], object] = lambda: None
        self.lock: threading.Lock = threading.Lock()
        self.problem: BaseException | None = None
        self._socket: socket.socket | None = None
        self._thread: threading.Thread | None = None

    def connect(self, port: int) -> None:
        """Connect to a controller that listens on this port of 127.0.0.1, and serve it."""
        self._socket = socket.create_connection(("127.0.0.1", port), CONNECT_TIMEOUT_S)
        self._socket.settimeout(None)
        self._socket.sendall(of_wire.hello())
        self._thread = threading.Thread(target=self._serve, args=(self._socket,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the connection and wait for the thread."""
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)
            self.join()
            self._socket.close()

    def join(self) -> None:
        """Wait until the connection has ended; raises what went wrong in the thread."""
        if self._thread is not None:
            self._thread.join(CONNECT_TIMEOUT_S)
        if self.problem is not None:
            raise self.problem

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def report_port(self, state: PortState, reason: int = of_wire.PORT_MODIFIED) -> None:
        """Tell the controller that a port has changed."""
        assert self._socket is not None
        self._socket.sendall(of_wire.port_status(reason, state))

    def _serve(self, connection: socket.socket) -> None:
        stream = bytearray()
        try:
            while data := connection.recv(1 << 16):
                stream += data
                for kind, xid, body in of_wire.split(stream):
                    connection.sendall(self._answer(kind, xid, body))
        except OSError:
            return
        except BaseException as error:  # noqa: BLE001 - raised again in `join`
            self.problem = error
            connection.close()

    def _answer(self, kind: int, xid: int, body: bytes) -> bytes:
        if kind in (of_wire.HELLO, of_wire.SET_CONFIG, of_wire.ECHO_REPLY):
            return b""
        if kind == of_wire.ECHO_REQUEST:
            return of_wire.pack(of_wire.ECHO_REPLY, xid, body)
        if kind == of_wire.FEATURES_REQUEST:
            return of_wire.features_reply(xid, self.dpid)
        if kind == of_wire.MULTIPART_REQUEST:
            (wanted,) = struct.unpack_from("!H", body)
            assert wanted == of_wire.MULTIPART_PORT_DESC, f"multipart type {wanted}"
            return of_wire.port_desc_reply(xid, self.ports)
        if kind in (of_wire.FLOW_MOD, of_wire.BARRIER_REQUEST):
            return self._apply(kind, xid, body)
        return of_wire.error(xid, BAD_REQUEST, BAD_TYPE, of_wire.pack(kind, xid, body))

    def _apply(self, kind: int, xid: int, body: bytes) -> bytes:
        message = of_wire.read_message(kind, xid, body)
        self.messages.append(message)
        try:
            with self.lock:
                self.table.apply(message)
                self.watch()
        except OpenFlowError as error:
            if "TABLE_FULL" not in str(error):
                raise
            refused = of_wire.pack(kind, xid, body)
            return of_wire.error(xid, FLOW_MOD_FAILED, TABLE_FULL, refused)
        return of_wire.pack(of_wire.BARRIER_REPLY, xid) if kind != of_wire.FLOW_MOD else b""
