"""Makes a port's shaper look at its queues: two frames of which none is ever sent.

The program at the port takes the first one away, and the second is dropped where it should be
queued (`gates.nowhere`), after which the shaper runs. Sent alone, the second would make its call
fail; sent as a pair, one was taken, and the call is good. A call that fails takes 1 us in a guest
with a virtual clock.
"""

from __future__ import annotations

import ctypes
import errno
import os
import socket

from emulator.dataplane.layout import KICK_LENGTH, KICK_MARK

_SO_MARK = 36
_PAIR = 2
_libc = ctypes.CDLL(None, use_errno=True)


class _Vector(ctypes.Structure):
    """struct iovec."""

    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


class _Message(ctypes.Structure):
    """struct mmsghdr."""

    _fields_ = (
        ("name", ctypes.c_void_p), ("name_length", ctypes.c_uint32),
        ("vectors", ctypes.c_void_p), ("vector_count", ctypes.c_size_t),
        ("control", ctypes.c_void_p), ("control_length", ctypes.c_size_t),
        ("flags", ctypes.c_int), ("pad", ctypes.c_int), ("length", ctypes.c_uint),
    )  # fmt: skip


_FRAME = ctypes.create_string_buffer(KICK_LENGTH)
_LENGTHS = KICK_LENGTH - 1, KICK_LENGTH
_VECTORS = (_Vector * _PAIR)(*(_Vector(ctypes.addressof(_FRAME), size) for size in _LENGTHS))
_MESSAGES = (_Message * _PAIR)()
for _number, _message in enumerate(_MESSAGES):
    _message.vectors = ctypes.addressof(_VECTORS) + _number * ctypes.sizeof(_Vector)
    _message.vector_count = 1


def open_wire(interface: str) -> socket.socket:
    """A packet socket that kicks an interface of this namespace; it can send frames there, too."""
    wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    wire.bind((interface, 0))
    wire.setsockopt(socket.SOL_SOCKET, _SO_MARK, KICK_MARK)
    return wire


def kick(wire: socket.socket) -> None:
    """When this returns, the shaper has looked at its queues."""
    taken = _libc.sendmmsg(wire.fileno(), ctypes.byref(_MESSAGES), _PAIR, 0)
    if taken < 0:
        code = ctypes.get_errno()
        if code != errno.ENOBUFS:
            raise OSError(code, f"kick: {os.strerror(code)}")
