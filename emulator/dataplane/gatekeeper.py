"""Opens and closes gates: prepared bytes, one message per change, in the namespace of the port."""

from __future__ import annotations

import errno
import socket
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress

from emulator.dataplane import building, layout
from emulator.kernel import gates, netlink, netns
from topologies.model import Fabric

_SO_MARK = 36
_KICK = bytes(60)
_ANSWER_BYTES = 1 << 16

Key = tuple[int, int]


class Gatekeeper:
    """All gates of a fabric.

    Args:
        fabric: whose ports.
        keys: (port index, traffic class) of the gates that there are.
        netns_fd: namespace of a node.
        pause_frames: (port, class) -> frames that say pause and resume, where such are sent.
    """

    def __init__(
        self,
        fabric: Fabric,
        keys: Iterable[Key],
        netns_fd: Callable[[str], int],
        pause_frames: Mapping[Key, tuple[bytes, bytes]] | None = None,
    ) -> None:
        self.keys = frozenset(keys)
        self._frames = pause_frames or {}
        self._kernels: dict[int, socket.socket] = {}
        self._wires: dict[int, socket.socket] = {}
        self._of_port: dict[int, socket.socket] = {}
        self._changes: dict[Key, tuple[bytes, bytes]] = {}
        for port, tc in sorted(self.keys):
            one = fabric.port(port)
            index = building.interface_index(port)
            self._changes[port, tc] = (
                netlink.unanswered(gates.change(index, one.name, tc, closed=False)),
                netlink.unanswered(gates.change(index, one.name, tc, closed=True)),
            )
            if port not in self._wires:
                self._open(port, one.name, netns_fd(one.node))

    def _open(self, port: int, name: str, fd: int) -> None:
        with netns.entered(fd):
            if fd not in self._kernels:
                kernel = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
                kernel.bind((0, 0))
                kernel.setblocking(False)
                self._kernels[fd] = kernel
            wire = self._wires[port] = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
            wire.bind((name, 0))
        wire.setsockopt(socket.SOL_SOCKET, _SO_MARK, layout.KICK_MARK)
        self._of_port[port] = self._kernels[fd]

    def set(self, port: int, tc: int, *, closed: bool) -> None:
        """Closes or opens a gate; when this returns it has happened."""
        self._of_port[port].send(self._changes[port, tc][closed])
        if not closed:
            self._send(port, _KICK)

    def tell(self, port: int, tc: int, *, paused: bool) -> None:
        """Sends a real pause frame from a port to its peer, where somebody captures it."""
        frames = self._frames.get((port, tc))
        if frames is not None:
            self._send(port, frames[not paused])

    def _send(self, port: int, frame: bytes) -> None:
        try:
            self._wires[port].send(frame)
        except OSError as error:
            # A kick is dropped where it should be queued, and the sender is told so.
            if error.errno != errno.ENOBUFS:
                raise

    @property
    def refusal_fds(self) -> list[int]:
        """Readable when a change was refused: call `check`."""
        return [kernel.fileno() for kernel in self._kernels.values()]

    def check(self) -> None:
        """KernelError when the kernel has refused a change."""
        for kernel in self._kernels.values():
            with suppress(BlockingIOError):
                netlink.raise_refusals(kernel.recv(_ANSWER_BYTES), "change of a gate")

    def close(self) -> None:
        """Closes its sockets; gates stay as they are."""
        for one in (*self._kernels.values(), *self._wires.values()):
            one.close()
