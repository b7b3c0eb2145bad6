"""Calls to the agent, which owns the queues, over its Unix stream socket.

A plain blocking socket: in the controller's process eventlet has patched the socket module, so a
call there blocks one green thread only. Calls can be sent in a row before the first answer is
read (`call_all`), which is how a whole fabric is set in a few milliseconds. Notifications that
arrive in between are kept for `notifications`.
"""

from __future__ import annotations

import socket
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Self

from controller import rpc

DEFAULT_TIMEOUT_S = 10.0
RECEIVE_BYTES = 1 << 16
PIPELINE = 64
"""Requests that may be under way at once: both sides' socket buffers hold as many."""

Call = tuple[str, rpc.Params]
"""A method and its parameters."""


class AgentError(Exception):
    """Something about the agent went wrong; the text says what and where."""


class AgentLostError(AgentError):
    """No connection: there is no agent, it has gone, or it does not answer in time."""


class AgentSilentError(AgentLostError):
    """It does not answer in time; an answer that comes later would be taken for another's."""


class AgentRefusedError(AgentError):
    """The agent has answered with an error.

    Attributes:
        code: JSON-RPC error code.
        data: what the agent added.
    """

    def __init__(self, method: str, params: rpc.Params, answer: rpc.ErrorResponse) -> None:
        shown = ", ".join(f"{name}={value!r}" for name, value in params.items())
        super().__init__(f"the agent refuses {method}({shown}): {answer.message} ({answer.code})")
        self.code, self.data = answer.code, answer.data


class AgentClient:
    """One connection to the agent; use it in a ``with`` block.

    Args:
        path: its socket.
        timeout_s: how long to wait for a connection and for each answer, seconds of wall time.

    Raises:
        AgentLostError: it does not accept the connection.
    """

    def __init__(self, path: Path, timeout_s: float = DEFAULT_TIMEOUT_S) -> None:
        self._path = path
        self._timeout_s = timeout_s
        self._ids = count(1)
        self._decoder = rpc.Decoder()
        self._arrived: deque[rpc.Message | rpc.RpcError] = deque()
        self._notifications: deque[rpc.Notification] = deque()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(timeout_s)
        try:
            self._socket.connect(str(path))
        except OSError as error:
            self._socket.close()
            raise AgentLostError(f"no agent at {path}: {error}") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the connection; a second time does nothing."""
        self._socket.close()

    def call(self, method: str, **params: object) -> object:
        """The result of one call.

        Raises:
            AgentRefusedError: the agent answers with an error.
            AgentLostError: no answer in time, or the connection ends.
        """
        return self.call_all([(method, params)])[0]

    def call_all(self, calls: Iterable[Call]) -> list[object]:
        """The results of some calls, in order, without a round trip for each.

        Raises:
            AgentRefusedError: the agent answers a call with an error; later ones may have been
                carried out or not.
            AgentLostError: no answer in time, or the connection ends.
        """
        results: list[object] = []
        pending: deque[tuple[rpc.Id, Call]] = deque()
        for method, params in calls:
            number = next(self._ids)
            self._send(rpc.Request(number, method, params))
            pending.append((number, (method, params)))
            if len(pending) == PIPELINE:
                results.append(self._answer(*pending.popleft()))
        results.extend(self._answer(*entry) for entry in pending)
        return results

    def notifications(self, timeout_s: float | None = None) -> Iterator[rpc.Notification]:
        """What the agent tells unasked, as it arrives.

        Args:
            timeout_s: ends when nothing has come for so long; None waits for ever.

        Raises:
            AgentLostError: the agent has gone.
        """
        self._socket.settimeout(timeout_s)
        try:
            while True:
                while self._notifications:
                    yield self._notifications.popleft()
                self._keep(self._next(timeout_s))
        except AgentSilentError:
            return
        finally:
            self._restore_timeout()

    def _restore_timeout(self) -> None:
        if self._socket.fileno() >= 0:
            self._socket.settimeout(self._timeout_s)

    def _send(self, request: rpc.Request) -> None:
        try:
            self._socket.sendall(rpc.encode(request))
        except OSError as error:
            raise AgentLostError(
                f"agent at {self._path}: {request.method} not sent: {error}"
            ) from error

    def _answer(self, number: rpc.Id, call: Call) -> object:
        while True:
            message = self._next(self._timeout_s, call[0])
            if isinstance(message, rpc.Response) and message.id == number:
                return message.result
            if isinstance(message, rpc.ErrorResponse) and message.id in (number, None):
                raise AgentRefusedError(*call, message)
            self._keep(message)

    def _keep(self, message: rpc.Message) -> None:
        if not isinstance(message, rpc.Notification):
            raise AgentLostError(f"agent at {self._path}: unexpected message {message}")
        self._notifications.append(message)

    def _next(self, timeout_s: float | None, waiting_for: str = "a notification") -> rpc.Message:
        while not self._arrived:
            try:
                data = self._socket.recv(RECEIVE_BYTES)
            except TimeoutError:
                text = f"agent at {self._path}: no answer to {waiting_for} in {timeout_s} s"
                raise AgentSilentError(text) from None
            except OSError as error:
                raise AgentLostError(f"agent at {self._path}: {error}") from error
            if not data:
                raise AgentLostError(f"agent at {self._path}: gone while waiting for {waiting_for}")
            self._arrived.extend(self._decode(data))
        return self._check(self._arrived.popleft())

    def _decode(self, data: bytes) -> list[rpc.Message | rpc.RpcError]:
        try:
            return list(self._decoder.feed(data))
        except rpc.RpcError as error:
            raise AgentLostError(f"agent at {self._path}: {error}") from error

    def _check(self, message: rpc.Message | rpc.RpcError) -> rpc.Message:
        if isinstance(message, rpc.RpcError):
            raise AgentLostError(f"agent at {self._path}: {message}")
        return message
