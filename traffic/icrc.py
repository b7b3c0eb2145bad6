"""The invariant CRC of RoCEv2 and what a changed byte does to it.

CRC-32 is linear: crc(x ^ d) = crc(x) ^ L(d). L of one changed byte depends only on its value and
on its distance from the end, so one table serves frames of every length and content.
"""

from __future__ import annotations

import functools
import zlib

import numpy as np
import numpy.typing as npt

from traffic import wire

_REACH_STEP = 1024


def icrc_of(frame: bytes) -> int:
    """The ICRC of a frame that ends before it (IBTA annex A17.3), as a number."""
    packet = bytearray(frame)
    for position in wire.ICRC_MASKED:
        packet[position] = 0xFF
    return zlib.crc32(packet[wire.AT_IP :], zlib.crc32(b"\xff" * 8))


def flips(reach: int) -> npt.NDArray[np.uint32]:
    """L of each byte value at each distance: entry ``distance * 256 + value`` of a flat table.

    Args:
        reach: the largest distance needed, in bytes between the changed one and the ICRC.
    """
    return _flips(reach // _REACH_STEP + 1)


@functools.cache
def _flips(steps: int) -> npt.NDArray[np.uint32]:
    """Distance 0 is the CRC-32 table itself; each byte that follows is one more step."""
    zero = zlib.crc32(b"\0")
    step = np.array([zlib.crc32(bytes([value])) ^ zero for value in range(256)], np.uint32)
    table = np.empty((steps * _REACH_STEP, 256), np.uint32)
    table[0] = step
    for distance in range(1, len(table)):
        before = table[distance - 1]
        table[distance] = step[before & 0xFF] ^ (before >> 8)
    return table.reshape(-1)
