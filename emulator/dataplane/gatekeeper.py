"""Opens and closes gates, and listens for crossings, in the namespaces of all ports.

A change of a gate is one message of prepared bytes.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress

from emulator.dataplane import building, layout
from emulator.kernel import gates, netlink, netns
from emulator.kernel.kicks import kick, open_wire
from emulator.kernel.wakeups import Waker
from topologies.model import Fabric

_ANSWER_BYTES = 1 << 16

Key = tuple[int, int]


class Gatekeeper:
    """All gates of a fabric.

    Attributes:
        keys: (port index, traffic class) of the gates that there are.
        wakers: woken by crossings, one for each namespace.

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
        self.wakers: list[Waker] = []
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
                self.wakers.append(Waker(fd, layout.WAKE_MARK))
            self._wires[port] = open_wire(name)
        self._of_port[port] = self._kernels[fd]

    def set(self, port: int, tc: int, *, closed: bool) -> None:
        """Closes or opens a gate; when this returns it has happened."""
        self._of_port[port].send(self._changes[port, tc][closed])
        if not closed:
            kick(self._wires[port])

    def tells(self, port: int, tc: int) -> bool:
        """Whether a port sends pause frames: when it or its peer is captured."""
        return (port, tc) in self._frames

    def tell(self, port: int, tc: int, *, paused: bool) -> None:
        """Sends a real pause frame from a port to its peer, where somebody captures it."""
        frames = self._frames.get((port, tc))
        if frames is not None:
            self._wires[port].send(frames[not paused])

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
        for waker in self.wakers:
            waker.close()
        for one in (*self._kernels.values(), *self._wires.values()):
            one.close()
