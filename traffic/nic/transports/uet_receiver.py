"""The receiving end of an Ultra-Ethernet-like connection: packets as they come. PURE.

Packets arrive in any order, over many paths. Each is taken once; nothing is thrown away, and a gap
is no reason for a NAK. Answers are selective acknowledgements: the packet before which none is
missing, and bitmaps of 64 packets for what lies beyond it and for what was marked. Packets that
came cut to their headers are asked for at once, by NAKs of the same form.
"""

from __future__ import annotations

from traffic import sack
from traffic.nic.sender import unwrap
from traffic.wire import PSN_MASK, SYNDROME_ACK, SYNDROME_NAK_TRIMMED

Bits = tuple[int, int]
"""(number of a packet, bitmap from it on)"""

Frame = tuple[bool, int, int]
"""(whether it is a NAK, PSN, number of `traffic.sack`)"""


class UetReceiver:
    """What has arrived.

    Args:
        tick_ns: period of the NICs, for how long a packet was kept.

    Attributes:
        expected: number of the first packet that is missing.
        duplicates: packets that had arrived before.
        granted: packets that the other end was given credits for.
        wanted: packets that it wants to have sent in all.
    """

    __slots__ = (
        "_cut", "_have", "_marked", "_new", "_newest", "_newest_ns", "_unit_ns", "_wants_answer",
        "duplicates", "expected", "granted", "wanted",
    )  # fmt: skip

    def __init__(self, tick_ns: int) -> None:
        self.expected = self.duplicates = self.granted = self.wanted = 0
        self._have = 0
        self._unit_ns = sack.unit_ns(tick_ns)
        self._new: list[tuple[int, int]] = []
        self._marked: list[tuple[int, int]] = []
        self._cut: list[int] = []
        self._newest, self._newest_ns = -1, -1
        self._wants_answer = False

    def on_packets(self, psn24: int, count: int) -> tuple[int, int]:
        """Packets with consecutive numbers arrived.

        Returns:
            (the first one's number, bit n for each packet n after it that had not arrived before)
        """
        expected, have = self.expected, self._have
        first = unwrap(psn24, expected)
        self._wants_answer = True
        ahead = first - expected
        if ahead == 0 and not have:
            self.expected = expected + count
            return first, (1 << count) - 1
        if ahead > 0:
            self._new.append((first, count))
        every = (1 << count) - 1
        missing = (every << ahead if ahead >= 0 else every >> -ahead) & ~have
        self.duplicates += count - missing.bit_count()
        have |= missing
        if have & 1:
            through = (~have & have + 1).bit_length() - 1
            self.expected, have = expected + through, have >> through
        self._have = have
        return first, missing >> ahead if ahead >= 0 else missing << -ahead

    def on_marks(self, psn24: int, count: int) -> int:
        """Packets with consecutive numbers carry CE; returns the first one's number."""
        first = unwrap(psn24, self.expected)
        self._marked.append((first, count))
        return first

    def on_newest(self, psn24: int, due_ns: int) -> None:
        """The latest packet of those that are handed over now, and when it was due."""
        self._newest, self._newest_ns = unwrap(psn24, self.expected), due_ns

    def on_trimmed(self, psn24: int) -> None:
        """A packet came cut to its headers; the other end is to send it again at once."""
        self._wants_answer = True
        psn = unwrap(psn24, self.expected)
        if psn >= self.expected and not self._have >> psn - self.expected & 1:
            self._cut.append(psn)
            self.wanted += 1

    def on_wanted(self, wanted24: int) -> None:
        """The other end says how many packets it wants to have sent in all."""
        self.wanted = max(self.wanted, unwrap(wanted24, self.wanted))

    def grant(self, packets: int) -> None:
        """So many more packets may come."""
        self.granted += packets
        self._wants_answer = True

    def answers(self, now_ns: int) -> list[Frame]:
        """What to answer to all that came since the last call."""
        if not self._wants_answer:
            return []
        if not (self._have or self._new or self._marked or self._cut):
            return [self._plain(now_ns)]
        frames = []
        if self._cut:
            cut = _bits_of([(psn, 1) for psn in self._cut])
            frames = [self._frame(now_ns, top, cut, SYNDROME_NAK_TRIMMED) for top in _tops(cut)]
        frames += self._acknowledgements(now_ns)
        self._new.clear()
        self._marked.clear()
        self._cut.clear()
        self._newest, self._wants_answer = -1, False
        return frames

    def _plain(self, now_ns: int) -> Frame:
        """The answer when all has come in order and without marks: there is nothing to name."""
        last, newest = self.expected - 1, self._newest
        back = last - newest
        word = sack.NOBODY << 11
        if newest >= 0 and 0 <= back < sack.FIRST_LIMIT:
            kept = round((now_ns - self._newest_ns) / self._unit_ns)
            if -sack.KEPT_LIMIT <= kept <= sack.KEPT_LIMIT:
                word = (-back & 0x3FFF) << 18 | kept & 0x7FF
        self._newest, self._wants_answer = -1, False
        return False, last, word << 160 | self.granted & PSN_MASK

    def _acknowledgements(self, now_ns: int) -> list[Frame]:
        """One, but for bitmaps that are too short."""
        newest, marked = self._newest, _bits_of(self._marked)
        if not self._new and not self._marked:
            return [self._frame(now_ns, max(newest, 0), marked, SYNDROME_ACK)]
        news = _bits_of([*self._new, *self._marked, *([(newest, 1)] * (newest >= 0))])
        return [self._frame(now_ns, top, marked, SYNDROME_ACK) for top in _tops(news)]

    def _frame(self, now_ns: int, top: int, named: Bits, syndrome: int) -> Frame:
        """An answer whose bitmaps end with a packet, and so repeat what was said before it."""
        last, base = self.expected - 1, max(0, top - sack.BITS + 1)
        if abs(base - last) >= sack.FIRST_LIMIT:  # a copy of something long gone
            base, named = self.expected, (0, 0)
        newest, kept = self._newest - base, 0
        if 0 <= newest < sack.BITS and self._newest >= 0 and syndrome == SYNDROME_ACK:
            kept = round((now_ns - self._newest_ns) / self._unit_ns)
        else:
            newest = sack.NOBODY
        received = _shifted((self.expected, self._have), base)
        if base < self.expected:
            received |= (1 << min(self.expected - base, sack.BITS)) - 1
        bits = _shifted(named, base)
        answer = sack.Answer(base - last, newest, kept, received, bits, syndrome, self.granted)
        return syndrome != SYNDROME_ACK, last, sack.pack(answer)


def _bits_of(runs: list[tuple[int, int]]) -> Bits:
    """(number of the first packet, bitmap from there on) of runs; (0, 0) of none."""
    low = min((first for first, _ in runs), default=0)
    bits = 0
    for first, count in runs:
        bits |= (1 << count) - 1 << first - low
    return low, bits


def _shifted(bitmap: Bits, base: int) -> int:
    """64 bits of a bitmap from another packet on."""
    low, bits = bitmap
    ahead = base - low
    return (bits >> ahead if ahead >= 0 else bits << -ahead) & sack.MASK


def _tops(bitmap: Bits) -> list[int]:
    """The highest packet of each part of a bitmap that fits into 64 bits, lowest part first."""
    low, bits = bitmap
    tops = []
    while bits:
        top = bits.bit_length() - 1
        tops.append(low + top)
        bits &= (1 << max(0, top - sack.BITS + 1)) - 1
    return tops[::-1]
