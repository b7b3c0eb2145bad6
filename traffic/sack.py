"""What a selective acknowledgement says, as one number: its AETH and the 20 bytes behind it. PURE.

From the highest bits down, in the order of the wire but for the AETH, which comes first there:

    14  first packet of the bitmaps, less the PSN of the acknowledgement (signed)
     7  bit of the packet that the next field is about; 127 = none
    11  how long the receiver kept that packet before it answered, in 1/512 ticks (signed: a tick
        takes what arrives within half a period as there)
    64  received: bit n stands for the packet n after the first
    64  marked: arrived with CE since the last answer; in a NAK: came cut to its headers
     8  AETH syndrome
    24  credits: packets that the sender may have sent in all, modulo 2**24

The PSN is that of the last packet before which none is missing.
"""

from __future__ import annotations

from typing import NamedTuple

BITS = 64
MASK = (1 << BITS) - 1
NOBODY = 127
"""No packet is the newest."""
FIRST_LIMIT = 1 << 13
KEPT_LIMIT = (1 << 10) - 1
UNITS_PER_TICK = 512


class Answer(NamedTuple):
    """The fields.

    Attributes:
        first: of the bitmaps' first packet, relative to the PSN.
        newest: bit of the packet that `kept` is about.
        kept: how long it was kept, in units.
        received: bitmap.
        marked: bitmap.
        syndrome: of the AETH.
        credits: packets, modulo 2**24.
    """

    first: int
    newest: int
    kept: int
    received: int
    marked: int
    syndrome: int
    credits: int


def pack(answer: Answer) -> int:
    """The number; the time is cut to its limits."""
    first, newest, kept, received, marked, syndrome, credit = answer
    kept = max(-KEPT_LIMIT - 1, min(kept, KEPT_LIMIT))
    word = (first & 0x3FFF) << 18 | newest << 11 | kept & 0x7FF
    return ((word << BITS | received) << BITS | marked) << 32 | syndrome << 24 | credit & 0xFFFFFF


def unpack(number: int) -> Answer:
    """The fields of a number."""
    word = number >> 160
    first, kept = word >> 18, word & 0x7FF
    return Answer(
        first - (first >= FIRST_LIMIT) * 2 * FIRST_LIMIT,
        word >> 11 & 0x7F,
        kept - (kept > KEPT_LIMIT) * 2 * (KEPT_LIMIT + 1),
        number >> 96 & MASK,
        number >> 32 & MASK,
        number >> 24 & 0xFF,
        number & 0xFFFFFF,
    )


def unit_ns(tick_ns: int) -> float:
    """The unit of `Answer.kept` for NICs of this period, ns."""
    return tick_ns / UNITS_PER_TICK
