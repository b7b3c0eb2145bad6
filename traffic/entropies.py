"""Which entropy (UDP source port) each packet of a sprayed connection gets. PURE.

Ultra Ethernet 1.0: a pool of 64 to 256 values, pseudo-random or in turn; one that has led to a
mark or a trimmed packet is passed over for a while. Switches choose paths by bits of the port, so
the pool holds as many values of the lowest six bits as it can, evenly, and random higher ones.
"""

from __future__ import annotations

from random import Random

from traffic.uet_params import RANDOM, SPRAYS
from traffic.wire import ENTROPY_MASK

LOW_BITS = 6
"""Bits of the port by which a leaf chooses; higher ones are for the switches after it."""

MOST = 256
_MOST_SKIPS = 15


def offsets(count: int, seed: str) -> list[int]:
    """What the values of a pool change in a connection's own source port (exclusive or).

    Args:
        count: size of the pool, a power of two up to `MOST`.
        seed: of the higher bits.
    """
    _check(count)
    rng, low = Random(seed), (1 << LOW_BITS) - 1
    return [value & low | rng.getrandbits(14) & ENTROPY_MASK & ~low for value in range(count)]


class EntropyPool:
    """The values of one connection, by their numbers.

    Args:
        count: size of the pool, a power of two up to `MOST`.
        spray: ``random``, each packet for itself; ``round-robin``, all of them in an order that is
            drawn anew each time.
        seed: of what is random.
    """

    __slots__ = ("_at", "_count", "_mask", "_order", "_rng", "_skipping", "_skips", "_spray")

    def __init__(self, count: int, spray: str, seed: str) -> None:
        _check(count)
        if spray not in SPRAYS:
            raise ValueError(f"spray {spray!r} is none of {', '.join(SPRAYS)}")
        self._count, self._spray, self._rng = count, spray, Random(seed)
        self._mask = bytes(value & (count - 1) for value in range(MOST))
        self._order, self._at = b"", 0
        self._skips, self._skipping = [0] * count, 0

    def take(self, count: int) -> bytes:
        """The numbers for the next so many packets."""
        if not self._skipping:
            return self._draw(count)
        return bytes(self._good(number) for number in self._draw(count))

    def skip(self, number: int, times: int) -> None:
        """Pass over a value so many times more."""
        before = self._skips[number]
        self._skips[number] = min(before + times, _MOST_SKIPS)
        self._skipping += (self._skips[number] > 0) - (before > 0)

    def _draw(self, count: int) -> bytes:
        if self._spray == RANDOM:
            drawn = self._rng.getrandbits(8 * count) if count else 0
            return drawn.to_bytes(count, "little").translate(self._mask)
        taken = self._order[self._at : self._at + count]
        self._at += count
        while len(taken) < count:
            order = list(range(self._count))
            self._rng.shuffle(order)
            self._order, self._at = bytes(order), count - len(taken)
            taken += self._order[: self._at]
        return taken

    def _good(self, number: int) -> int:
        """This value, or the next one that is not to be passed over; all of them may be."""
        for _ in range(self._count):
            if not self._skips[number]:
                return number
            self._skips[number] -= 1
            self._skipping -= not self._skips[number]
            number = self._draw(1)[0]
        return number


def _check(count: int) -> None:
    if not 1 <= count <= MOST or count & (count - 1):
        raise ValueError(f"a pool of {count} is no power of two up to {MOST}")
