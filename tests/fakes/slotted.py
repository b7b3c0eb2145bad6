"""A slotted packet model of senders that share one queue: what window control is compared with.

Time is slots of one packet. A packet that leaves the queue is acknowledged so many slots later; the
queue marks what finds at least K packets. No engine, no frames, no ticks.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Protocol


class Window(Protocol):
    """A window control, packets."""

    window: float

    def on_sent(self, in_flight: int) -> None:
        """Packets were sent."""

    def on_ack(self, oldest: int, next_psn: int, acked: int, marked: int) -> None:
        """Packets were acknowledged."""


@dataclass
class Sender:
    """One flow that always has something to send."""

    control: Window
    oldest: int = 0
    next_psn: int = 0

    @property
    def may_send(self) -> bool:
        """Whether the window has room."""
        return self.next_psn - self.oldest < int(self.control.window)


@dataclass
class Slotted:
    """Senders, a queue and a delay.

    Attributes:
        senders: the flows.
        delay: slots from a packet's departure to its acknowledgement: the bandwidth-delay product.
        threshold: K, packets.
        lengths: queue length at each slot, packets.
        served: packets that left.
    """

    senders: list[Sender]
    delay: int
    threshold: int
    lengths: list[int] = field(default_factory=list)
    served: int = 0
    _queue: deque[tuple[Sender, bool]] = field(default_factory=deque)
    _returning: deque[tuple[int, Sender, bool]] = field(default_factory=deque)

    def run(self, slots: int) -> None:
        """Runs for so many slots."""
        for now in range(len(self.lengths), len(self.lengths) + slots):
            self._acknowledge(now)
            turn = now % len(self.senders)
            self._send(self.senders[turn:] + self.senders[:turn])
            self.lengths.append(len(self._queue))
            if self._queue:
                self._returning.append((now + self.delay, *self._queue.popleft()))
                self.served += 1

    def _acknowledge(self, now: int) -> None:
        while self._returning and self._returning[0][0] <= now:
            _, sender, marked = self._returning.popleft()
            sender.oldest += 1
            sender.control.on_ack(sender.oldest, sender.next_psn, 1, marked)

    def _send(self, senders: list[Sender]) -> None:
        """Packets of the senders in turn, as long as any may send."""
        waiting = deque(sender for sender in senders if sender.may_send)
        while waiting:
            sender = waiting.popleft()
            self._queue.append((sender, len(self._queue) >= self.threshold))
            sender.next_psn += 1
            sender.control.on_sent(sender.next_psn - sender.oldest)
            if sender.may_send:
                waiting.append(sender)
