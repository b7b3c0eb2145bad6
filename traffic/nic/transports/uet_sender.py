"""The sending end of an Ultra-Ethernet-like connection: sprayed packets, selective repeat. PURE.

What is in flight is three sets of packets after the oldest unacknowledged one, as bits of numbers:
acknowledged, to be sent again, and the rest. A packet is sent again when the other end has only
its headers, when so many later ones have arrived that it must be lost, or when it has not been
acknowledged for too long. Packets sent again go first. A congestion window (NSCC), credits of the
receiver (RCCC), or both say how many packets may be in flight.
"""

from __future__ import annotations

import math
from collections import deque

from traffic import sack
from traffic.entropies import EntropyPool
from traffic.nic.sender import Burst, Message, unwrap
from traffic.nic.transports.uet_settings import SPAN, UetSettings
from traffic.nscc import Nscc
from traffic.wire import PSN_MASK

_MOST_DOUBLINGS = 6


class UetSender:
    """Decides which packets of a connection may be sent, and over which paths.

    Args:
        settings: of all connections.
        window: the congestion window; None = none.
        pool: entropies.
        gap_ns: line time of a full packet.

    Attributes:
        oldest: number of the first packet that is not acknowledged.
        next: number of the next new packet.
        end: one past the last packet.
        flying: packets in flight, neither acknowledged nor taken for lost.
        window: the congestion window.
    """

    __slots__ = (
        "_acked", "_again", "_credit", "_doublings", "_evs", "_free", "_gap_ns", "_heard_ns",
        "_log", "_lost", "_pending", "_pool", "_s", "_spent", "_unit_ns", "end", "flying",
        "messages", "next", "oldest", "window",
    )  # fmt: skip

    def __init__(
        self, settings: UetSettings, window: Nscc | None, pool: EntropyPool, gap_ns: float
    ) -> None:
        self._s, self.window, self._pool = settings, window, pool
        self._gap_ns, self._heard_ns = gap_ns, 0
        self._unit_ns = sack.unit_ns(settings.tick_ns)
        self.messages: deque[Message] = deque()
        self._pending: deque[Message] = deque()
        self.oldest = self.next = self.end = self.flying = 0
        self._acked = self._lost = 0
        self._log: deque[Burst] = deque()
        self._again: dict[int, Burst] = {}
        self._evs = bytearray(SPAN)
        self._doublings = 0
        self._credit = self._spent = self._free = 0

    @property
    def has_more(self) -> bool:
        """True when packets wait to be sent, for the first time or again."""
        return self.next < self.end or self._lost > 0

    @property
    def idle(self) -> bool:
        """True when everything was sent and acknowledged."""
        return self.oldest == self.end

    @property
    def deadline_ns(self) -> int | None:
        """When the oldest packet in flight is sent again; it may have been acknowledged since.

        With nothing in flight it is when to ask for credits without having one.
        """
        if self._log:
            return math.ceil(self._log[0].start_ns) + self._patience_ns
        return self._heard_ns + self._patience_ns if self._is_starved else None

    @property
    def _is_starved(self) -> bool:
        return self._s.credits and self.has_more and self._room() <= 0

    @property
    def _patience_ns(self) -> int:
        return self._s.rto_ns << self._doublings

    def enqueue(self, flow_id: int, size_bytes: int) -> Message:
        """Appends a flow's bytes to the connection."""
        if self.idle:  # nobody knows yet that it has something to send
            self._free = self._s.first_credits
        payload_bytes = self._s.payload_bytes
        packets = max(1, -(-size_bytes // payload_bytes))
        tail = size_bytes - (packets - 1) * payload_bytes
        message = Message(flow_id, self.end, self.end + packets, tail)
        self.end += packets
        self.messages.append(message)
        self._pending.append(message)
        return message

    def allowed(self) -> int:
        """Packets that may go now: the next ones to be sent again, else new ones of a message."""
        room = self._room()
        if room <= 0:
            return 0
        if self._lost:
            first, count = self._first_lost()
            return min(count, self._message_of(first).end - first, room)
        sent = self.next
        if sent == self.end:
            return 0
        left = self._pending[0].end - sent
        room = min(left, room)
        left = self.oldest + SPAN - sent
        return min(left, room)

    def take(self, count: int, now_ns: int) -> Burst:
        """The next `count` packets (at most `allowed()`), now considered sent."""
        burst = self._take_lost(count) if self._lost else self._take_new(count, now_ns)
        self.flying += count
        burst.entropies = self._pool.take(count)
        self._keep(burst.first, burst.entropies)
        if self._s.credits:
            free = min(count, self._free)
            self._free, self._spent = self._free - free, self._spent + count - free
            burst.word = self._wanted()
        self._log.append(burst)
        return burst

    def rate_bps(self, _now_ns: int) -> int | None:
        """Line rate."""
        return None

    def due_ns(self, _now_ns: int) -> float:
        """At once."""
        return 0.0

    def on_sent(self, _now_ns: int, _nbytes: int) -> None:
        """The window is all that there is."""

    def on_cnp(self, now_ns: int) -> None:
        """Nobody sends one."""

    def on_ack(self, psn24: int, now_ns: int, aeth: int = 0) -> None:
        """A selective acknowledgement came back."""
        answer, through = self._read(psn24, now_ns, aeth)
        base, round_trip_ns, window = through + answer.first - 1, None, self.window
        if window is not None:
            round_trip_ns = self._round_trip_ns(now_ns, base, answer)
        acked = self._advance(through)
        if answer.received:
            acked += self._select(base, answer.received)
        marked = 0
        if answer.marked:
            marked = min(acked, self._avoid(base, answer.marked, self._s.params.marked_skips))
        if not acked:
            return
        self._doublings = 0
        self._forget()
        if self._acked:
            self._look_for_losses(now_ns)
        if window is not None:
            size = self._s.packet_bytes
            clean = (acked - marked) * size
            window.on_ack(now_ns, clean, marked * size, round_trip_ns, self.flying * size)

    def on_nak(self, psn24: int, now_ns: int, aeth: int = 0) -> None:
        """Of some packets only the headers arrived."""
        answer, through = self._read(psn24, now_ns, aeth)
        base = through + answer.first - 1
        if self._advance(through) + self._select(base, answer.received):
            self._doublings = 0
        self._avoid(base, answer.marked, self._s.params.trimmed_skips)
        ahead = base - self.oldest
        cut = answer.marked << ahead if ahead >= 0 else answer.marked >> -ahead
        self._lose(cut, now_ns)
        self._forget()

    def check_timeout(self, now_ns: int) -> bool:
        """Takes packets for lost that were not acknowledged for too long; True if there are."""
        overdue, patience_ns = 0, self._patience_ns
        if not self._log and self._is_starved and self._heard_ns + patience_ns <= now_ns:
            return self._slow_down(now_ns)
        while self._log and self._log[0].start_ns + patience_ns <= now_ns:
            overdue |= self._open(self._log.popleft())
        self._forget()
        if not overdue:
            return False
        size = self._s.packet_bytes
        if self.window is not None:
            self.window.on_timeout(overdue.bit_count() * size)
        self._drop(overdue)
        return self._slow_down(now_ns)

    def _slow_down(self, now_ns: int) -> bool:
        """The next timeout comes later; whoever grants credits may not know that one is needed."""
        self._doublings = min(self._doublings + 1, _MOST_DOUBLINGS)
        self._heard_ns, self._free = now_ns, max(self._free, 1)
        return True

    def _room(self) -> int:
        """Packets that may be added to those in flight."""
        settings = self._s
        room = SPAN if settings.most_packets is None else settings.most_packets - self.flying
        if self.window is not None:
            free = int(self.window.window / settings.packet_bytes) - self.flying
            room = min(room, free)
        if settings.credits:
            room = min(room, self._free + self._credit - self._spent)
        return room

    def _first_lost(self) -> tuple[int, int]:
        """(number of the first packet to be sent again, how many follow each other)."""
        skipped = (self._lost & -self._lost).bit_length() - 1
        bits = self._lost >> skipped
        return self.oldest + skipped, (~bits & bits + 1).bit_length() - 1

    def _message_of(self, psn: int) -> Message:
        return next(message for message in self.messages if psn < message.end)

    def _take_lost(self, count: int) -> Burst:
        first, _ = self._first_lost()
        self._lost &= ~((1 << count) - 1 << first - self.oldest)
        message = self._message_of(first)
        message.retransmitted += count
        burst = Burst(message, first, count, count)
        self._again |= dict.fromkeys(range(first, first + count), burst)
        return burst

    def _take_new(self, count: int, now_ns: int) -> Burst:
        message, first = self._pending[0], self.next
        self.next = first + count
        if message.first_tx_ns < 0:
            message.first_tx_ns = now_ns
        if self.next == message.end:
            self._pending.popleft()
        return Burst(message, first, count)

    def _keep(self, first: int, entropies: bytes) -> None:
        """Remembers which entropy each packet had."""
        at = first % SPAN
        fits = min(len(entropies), SPAN - at)
        self._evs[at : at + fits] = entropies[:fits]
        self._evs[: len(entropies) - fits] = entropies[fits:]

    def _wanted(self) -> int:
        """How many packets this end wants to have sent in all, modulo 2**24."""
        backlog = self.end - self.next + self._lost.bit_count()
        more = min(backlog - (self._credit - self._spent), self._s.first_credits)
        return self._credit + max(0, more) & PSN_MASK

    def _read(self, psn24: int, now_ns: int, aeth: int) -> tuple[sack.Answer, int]:
        """(the answer, number of the first packet that is missing at the other end)."""
        answer, self._heard_ns = sack.unpack(aeth), now_ns
        if self._s.credits:
            self._free = 0
            self._credit = max(self._credit, unwrap(answer.credits, self._credit))
            self._spent = max(self._spent, self._credit - self._s.first_credits)
        return answer, unwrap(psn24, self.oldest) + 1

    def _round_trip_ns(self, now_ns: int, base: int, answer: sack.Answer) -> float | None:
        """That of the packet which the answer gives a time for, if it was sent once (Karn)."""
        if answer.newest >= sack.BITS:
            return None
        psn = base + answer.newest
        if psn < self.oldest or psn in self._again:
            return None
        for burst in reversed(self._log):
            behind = psn - burst.first
            if 0 <= behind < burst.count:
                start_ns = burst.start_ns + behind * self._gap_ns
                sample_ns = now_ns - start_ns - answer.kept * self._unit_ns
                return sample_ns if sample_ns > 0 else None
        return None

    def _advance(self, through: int) -> int:
        """Everything before `through` has arrived; how many packets that is news of."""
        count = acked = through - self.oldest
        if count <= 0 or through > self.next:
            return 0
        if self._acked or self._lost:
            mask = (1 << count) - 1
            acked = count - (self._acked & mask).bit_count()
            self.flying += (self._lost & mask).bit_count()
            self._acked >>= count
            self._lost >>= count
        self.flying -= acked
        self.oldest = through
        while self.messages and self.messages[0].end <= through:
            self.messages.popleft()
        return acked

    def _select(self, base: int, received: int) -> int:
        """Packets from `base` on have arrived, by the bits; how many that is news of."""
        if not received:
            return 0
        ahead = base - self.oldest
        bits = received << ahead if ahead >= 0 else received >> -ahead
        new = bits & (1 << self.next - self.oldest) - 1 & ~self._acked
        if not new:
            return 0
        self.flying -= (new & ~self._lost).bit_count()
        self._lost &= ~new
        self._acked |= new
        return new.bit_count()

    def _avoid(self, base: int, bits: int, times: int) -> int:
        """Passes over the entropies of these packets for a while; how many packets they are."""
        left = bits
        while left:
            low = left & -left
            self._pool.skip(self._evs[(base + low.bit_length() - 1) % SPAN], times)
            left ^= low
        return bits.bit_count()

    def _lose(self, bits: int, now_ns: int) -> None:
        """These packets are lost for certain, if they are in flight."""
        in_flight = (1 << self.next - self.oldest) - 1 & ~self._acked & ~self._lost
        lost = bits & in_flight
        if lost:
            self._drop(lost)
            if self.window is not None:
                size = self._s.packet_bytes
                self.window.on_trimmed(now_ns, lost.bit_count() * size, self.flying * size)

    def _drop(self, lost: int) -> None:
        self._lost |= lost
        self.flying -= lost.bit_count()

    def _look_for_losses(self, now_ns: int) -> None:
        """A packet is lost when many more have arrived after it than paths can reorder."""
        params, acked = self._s.params, self._acked
        window = float(self._s.most_packets or self._s.first_credits)
        if self.window is not None:
            window = self.window.window / self._s.packet_bytes
        many = max(math.ceil(window * params.reorder_times), params.reorder_least_packets)
        if acked.bit_count() < many:
            return
        low, high = 0, acked.bit_length()
        while high - low > 1:  # the highest place above which there are still so many
            middle = (low + high) // 2
            low, high = (middle, high) if (acked >> middle).bit_count() >= many else (low, middle)
        late = (1 << low) - 1 & ~acked & ~self._lost
        for psn in self._again:
            if psn >= self.oldest:
                late &= ~(1 << psn - self.oldest)
        self._lose(late, now_ns)

    def _open(self, burst: Burst) -> int:
        """Packets of a burst that are in flight since then, as bits."""
        ahead, bits = burst.first - self.oldest, (1 << burst.count) - 1
        bits = bits << ahead if ahead >= 0 else bits >> -ahead
        bits &= ~self._acked & ~self._lost
        if bits and self._again:
            for psn in range(max(burst.first, self.oldest), burst.first + burst.count):
                if self._again.get(psn, burst) is not burst:
                    bits &= ~(1 << psn - self.oldest)
        return bits

    def _forget(self) -> None:
        """What is known of packets that are acknowledged is of no use any more."""
        log, oldest = self._log, self.oldest
        while log:
            burst = log[0]
            if burst.first + burst.count > oldest:
                if not self._acked and not self._lost and not self._again:
                    break
                if self._open(burst):
                    break
            log.popleft()
        if self._again:
            self._again = {psn: burst for psn, burst in self._again.items() if psn >= oldest}
