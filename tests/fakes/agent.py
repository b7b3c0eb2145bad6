"""A stand-in for the agent: a JSON-RPC server on a Unix socket that notes what it is told."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

from controller import rpc

Answer = Callable[[rpc.Request], "rpc.Message | None"]
"""Answers a request; None for silence."""

TIMEOUT_S = 20.0


def accept(request: rpc.Request) -> rpc.Message:
    """Accept everything."""
    return rpc.Response(request.id, {})


class FakeAgent:
    """Serves one connection at a time until it is closed; use it in a ``with`` block.

    Args:
        path: where its socket is made.
        answer: what it answers.

    Attributes:
        requests: everything that it was asked, in order, of all connections.
        answered: how many of them it has answered.
        problem: what went wrong in its thread.
    """

    def __init__(self, path: Path, answer: Answer = accept) -> None:
        self.requests: list[rpc.Request] = []
        self.answered = 0
        self.problem: BaseException | None = None
        self._path = path
        self._answer = answer
        self._peer: socket.socket | None = None
        self._changed = threading.Condition()
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(path))
        self._listener.listen()
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self.hang_up()
        self._thread.join(TIMEOUT_S)
        self._listener.close()
        self._path.unlink()
        if self.problem is not None:
            raise self.problem

    def calls(self, method: str) -> list[rpc.Params]:
        """The parameters of all calls of a method."""
        return [request.params for request in self.requests if request.method == method]

    def tell(self, *messages: rpc.Message) -> None:
        """Send messages unasked to whoever is connected."""
        self.send(b"".join(map(rpc.encode, messages)))

    def send(self, data: bytes) -> None:
        """Send bytes as they are to whoever is connected."""
        assert self.wait_for(lambda: self._peer is not None)
        assert self._peer is not None
        self._peer.sendall(data)

    def hang_up(self) -> None:
        """End the connection of now."""
        if self._peer is not None:
            with contextlib.suppress(OSError):
                self._peer.shutdown(socket.SHUT_RDWR)

    def wait_for(self, condition: Callable[[], bool]) -> bool:
        """Wait until a condition holds after some request or connection; False if it never does."""
        with self._changed:
            return self._changed.wait_for(condition, TIMEOUT_S)

    def _serve(self) -> None:
        while True:
            try:
                peer, _ = self._listener.accept()
            except OSError:
                return
            with peer:
                self._note(partial(setattr, self, "_peer", peer))
                try:
                    self._talk(peer)
                except OSError:
                    continue
                except BaseException as error:  # noqa: BLE001 - raised again on exit
                    self.problem = error
                    return
                finally:
                    self._note(partial(setattr, self, "_peer", None))

    def _talk(self, peer: socket.socket) -> None:
        decoder = rpc.Decoder()
        while data := peer.recv(1 << 16):
            for message in decoder.feed(data):
                assert isinstance(message, rpc.Request), f"not a request: {message}"
                self._note(partial(self.requests.append, message))
                answer = self._answer(message)
                if answer is not None:
                    peer.sendall(rpc.encode(answer))
                    self._note(partial(setattr, self, "answered", self.answered + 1))

    def _note(self, change: Callable[[], object]) -> None:
        with self._changed:
            change()
            self._changed.notify_all()
