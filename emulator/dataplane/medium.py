"""The kernel as the NIC engine's medium: packet sockets out, the eBPF ring in."""

from __future__ import annotations

import ctypes
import errno
import os
import socket
from collections.abc import Mapping
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from emulator.clock.live import LiveClock
from emulator.dataplane.plane import DataPlane
from emulator.kernel import netns
from traffic.wire import ICRC_BYTES

_SO_SNDBUFFORCE = 32
_SEND_BUFFER_BYTES = 256 << 20
_BATCH = 8192
_MAX_BODY_BYTES = 1 << 16
_PARTS = 3
_NO_ROOM = (errno.EAGAIN, errno.ENOBUFS)

_IOVEC = np.dtype([("base", "<u8"), ("length", "<u8")])
_MMSGHDR = np.dtype(
    [
        ("name", "<u8"), ("name_length", "<u4"), ("pad", "<u4"), ("iov", "<u8"), ("parts", "<u8"),
        ("control", "<u8"), ("control_length", "<u8"), ("flags", "<i4"), ("pad2", "<u4"),
        ("length", "<u4"), ("pad3", "<u4"),
    ]
)  # fmt: skip
_libc = ctypes.CDLL(None, use_errno=True)


def open_sender(netns_fd: int, interface: str) -> socket.socket:
    """A packet socket that sends from an interface of a namespace and receives nothing."""
    with netns.entered(netns_fd):
        sender = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        sender.bind((interface, 0))
    sender.setsockopt(socket.SOL_SOCKET, _SO_SNDBUFFORCE, _SEND_BUFFER_BYTES)
    sender.setblocking(False)
    return sender


class KernelMedium:
    """Sends with sendmmsg from each host's namespace and reads what the hosts' NICs took.

    Args:
        plane: the data plane, whose ring holds the received frames.
        senders: packet socket of each host port, by port index.
        clock: turns the kernel's time into model time.
    """

    def __init__(
        self, plane: DataPlane, senders: Mapping[int, socket.socket], clock: LiveClock
    ) -> None:
        self._plane, self._clock = plane, clock
        self._fds = {port: sender.fileno() for port, sender in senders.items()}
        self._senders = senders  # keeps them open
        self._zeros = np.zeros(_MAX_BODY_BYTES, np.uint8)
        iov = self._iov = np.zeros((_BATCH, _PARTS), _IOVEC)
        iov["base"][:, 1] = _address(self._zeros)
        iov["length"][:, 2] = ICRC_BYTES
        self._header_at, self._icrc_at = iov["base"][:, 0], iov["base"][:, 2]
        self._header_bytes, self._body_bytes = iov["length"][:, 0], iov["length"][:, 1]
        self._messages = np.zeros(_BATCH, _MMSGHDR)
        self._messages["iov"] = _address(iov) + _PARTS * _IOVEC.itemsize * np.arange(_BATCH)
        self._messages["parts"] = _PARTS
        self._message_base = _address(self._messages)
        self._steps = np.arange(_BATCH)
        self._pointed: tuple[int, ...] = ()
        self._pointing = 0

    def receive(self) -> npt.NDArray[np.void]:
        """Frames that arrived, their time in model ns."""
        records = self._plane.ring.drain()
        if len(records):
            records["time_ns"] = self._clock.to_model(records["time_ns"].astype(np.int64))
        return records

    def backlog(self) -> npt.NDArray[np.int64]:
        """Wire bytes that wait at each port in classes that are not paused."""
        return self._plane.backlog_wire_bytes()

    def paused(self) -> npt.NDArray[np.int64]:
        """Classes that are paused at each port, as bits."""
        return self._plane.paused_classes()

    def inside_switches(self) -> int:
        """Packets that a switch has taken and not put into a queue yet."""
        return self._plane.inside_switches()

    def send(
        self,
        ports: npt.NDArray[np.intp],
        headers: npt.NDArray[np.uint8],
        header_bytes: npt.NDArray[np.intp],
        body_bytes: npt.NDArray[np.intp],
        icrc: npt.NDArray[np.uint8],
    ) -> int:
        """Sends frames grouped by port; returns how many the kernel took.

        Where a port's socket has no room, the rest of that port's frames is given up.
        """
        if 0 < len(ports) <= _BATCH:
            return self._send(ports, headers, header_bytes, body_bytes, icrc)
        taken = 0
        for start in range(0, len(ports), _BATCH):
            part = slice(start, start + _BATCH)
            taken += self._send(
                ports[part], headers[part], header_bytes[part], body_bytes[part], icrc[part]
            )
        return taken

    def _send(
        self,
        ports: npt.NDArray[np.intp],
        headers: npt.NDArray[np.uint8],
        header_bytes: npt.NDArray[np.intp],
        body_bytes: npt.NDArray[np.intp],
        icrc: npt.NDArray[np.uint8],
    ) -> int:
        count = len(ports)
        headers, icrc = _rows(headers), _rows(icrc)
        self._point(headers, icrc, count)
        self._header_bytes[:count] = header_bytes
        self._body_bytes[:count] = body_bytes
        starts = [0, *((ports[1:] != ports[:-1]).nonzero()[0] + 1).tolist(), count]
        return sum(
            self._send_from(int(ports[first]), first, last - first)
            for first, last in pairwise(starts)
        )

    def _point(
        self, headers: npt.NDArray[np.uint8], icrc: npt.NDArray[np.uint8], count: int
    ) -> None:
        """Points the parts of `count` frames to rows, unless the last batch had them there too."""
        where = _address(headers), headers.strides[0], _address(icrc), icrc.strides[0]
        if where == self._pointed and count <= self._pointing:
            return
        self._header_at[:count] = where[0] + where[1] * self._steps[:count]
        self._icrc_at[:count] = where[2] + where[3] * self._steps[:count]
        self._pointed, self._pointing = where, count

    def _send_from(self, port: int, first: int, count: int) -> int:
        """Sends until all is taken or nothing more is: one call takes 1024 frames at most."""
        taken = 0
        while taken < count:
            address = ctypes.c_void_p(self._message_base + (first + taken) * _MMSGHDR.itemsize)
            sent = int(_libc.sendmmsg(self._fds[port], address, count - taken, 0))
            if sent < 0:
                code = ctypes.get_errno()
                if code in _NO_ROOM:  # the caller counts what was refused
                    break
                raise OSError(code, f"send on port {port}: {os.strerror(code)}")
            taken += sent
        return taken


def _rows(array: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """The array, or a copy of it, whose rows lie in memory in one piece each."""
    return array if array.strides[1] == 1 else np.ascontiguousarray(array)


def _address(array: npt.NDArray[np.generic]) -> int:
    return int(array.__array_interface__["data"][0])
