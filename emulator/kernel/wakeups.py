"""Listens for the frames with which an eBPF program wakes a process.

A program that has something to tell sends a copy of the frame at hand, with a mark, to the
loopback device of its namespace, where a packet socket listens that takes nothing else. Source:
linux/filter.h, net/packet/af_packet.c.
"""

from __future__ import annotations

import ctypes
import socket
import struct
from contextlib import suppress

from emulator.kernel import netns

_SOL_PACKET, _PACKET_IGNORE_OUTGOING = 263, 23
_SO_ATTACH_FILTER = 26
_LOAD_WORD, _JUMP_EQUAL, _RETURN = 0x20, 0x15, 0x06
_AT_MARK = 0xFFFFF000 + 20  # SKF_AD_OFF + SKF_AD_MARK
_ALL_PROTOCOLS = 3
_ONE_BYTE = 1


class Waker:
    """A packet socket at the loopback device of a namespace.

    Args:
        netns_fd: of the namespace; its loopback device is up.
        mark: of the frames that wake.
    """

    def __init__(self, netns_fd: int, mark: int) -> None:
        with netns.entered(netns_fd):
            self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
            self._socket.setsockopt(_SOL_PACKET, _PACKET_IGNORE_OUTGOING, 1)
            _attach(self._socket, mark)
            self._socket.bind(("lo", _ALL_PROTOCOLS))
        self._socket.setblocking(False)

    def fileno(self) -> int:
        """Readable after a program has called."""
        return self._socket.fileno()

    def clear(self) -> None:
        """Takes one call, before one looks for what there is to do; it is readable once for each.

        Nothing is read in vain: in a guest with a virtual clock, a call that fails takes 1 us.
        """
        with suppress(BlockingIOError):
            self._socket.recv(_ONE_BYTE)

    def close(self) -> None:
        """Listens no more."""
        self._socket.close()


def _attach(one: socket.socket, mark: int) -> None:
    """Takes one byte of frames with this mark, and nothing of others."""
    steps = [(_LOAD_WORD, 0, 0, _AT_MARK), (_JUMP_EQUAL, 0, 1, mark), (_RETURN, 0, 0, _ONE_BYTE),
             (_RETURN, 0, 0, 0)]  # fmt: skip
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in steps))
    program = struct.pack("@HP", len(steps), ctypes.addressof(code))
    one.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, program)
