"""Turns off checksum and segmentation offloads, which a userspace switch cannot carry.

With them on, TCP through Open vSwitch's userspace datapath hangs, and "packets" of 64 KB would pass
the queues. Source: linux/ethtool.h.
"""

from __future__ import annotations

import ctypes
import fcntl
import socket
import struct
from collections.abc import Iterable

_SIOCETHTOOL = 0x8946
_STXCSUM, _SSG, _STSO, _SGSO, _SGRO = 0x17, 0x19, 0x1F, 0x24, 0x2C


def turn_off(interfaces: Iterable[str]) -> None:
    """Does so for interfaces of the current namespace."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as handle:
        for name in interfaces:
            for command in (_STSO, _SGSO, _STXCSUM, _SGRO):
                value = ctypes.create_string_buffer(struct.pack("=II", command, 0))
                request = struct.pack("=16sQ", name.encode(), ctypes.addressof(value))
                fcntl.ioctl(handle, _SIOCETHTOOL, request)
