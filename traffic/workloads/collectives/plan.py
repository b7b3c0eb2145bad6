"""What every collective algorithm produces: sends between ranks, with what each waits for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Send:
    """One message of a collective.

    Attributes:
        step: 0-based step of the algorithm.
        src: sending rank.
        dst: receiving rank.
        size_bytes: payload, bytes.
        blocks: numbers of the buffer's blocks that it carries (an algorithm numbers them itself).
        reduces: True when the receiver adds the data to its own, False when it overwrites.
        after: positions, in the plan, of the sends that must have arrived before.
    """

    step: int
    src: int
    dst: int
    size_bytes: int
    blocks: tuple[int, ...]
    reduces: bool
    after: tuple[int, ...] = ()


Plan = tuple[Send, ...]


@dataclass(slots=True)
class PlanBuilder:
    """Collects sends and remembers what each rank received last from each other.

    Attributes:
        block_bytes: size of each block.
        sends: the plan so far.
    """

    block_bytes: Sequence[int]
    sends: list[Send] = field(default_factory=list)
    _arrived: dict[int, dict[int, tuple[int, ...]]] = field(default_factory=dict)

    def step(self, number: int, messages: Iterable[tuple[int, int, Iterable[int], bool]]) -> None:
        """Add the messages (src, dst, blocks, reduces) of one step.

        A rank sends once all that was sent to it in earlier steps has come. Messages from one rank
        to another keep their order, so the last one from each stands for those before.
        """
        arrivals: dict[int, dict[int, tuple[int, ...]]] = {}
        for src, dst, blocks, reduces in messages:
            of_dst = arrivals.setdefault(dst, {})
            of_dst[src] = (*of_dst.get(src, ()), len(self.sends))
            awaited = self._arrived.get(src, {}).values()
            after = tuple(position for positions in awaited for position in positions)
            self.add(number, src, dst, blocks, reduces, after)
        for dst, of_dst in arrivals.items():
            self._arrived.setdefault(dst, {}).update(of_dst)

    def add(
        self,
        step: int,
        src: int,
        dst: int,
        blocks: Iterable[int],
        reduces: bool,
        after: tuple[int, ...],
    ) -> int:
        """Add one send and return its position."""
        carried = tuple(blocks)
        size_bytes = sum(self.block_bytes[block] for block in carried)
        self.sends.append(Send(step, src, dst, size_bytes, carried, reduces, after))
        return len(self.sends) - 1

    def plan(self) -> Plan:
        """The finished plan."""
        return tuple(self.sends)


def split_bytes(size_bytes: int, parts: int) -> list[int]:
    """Sizes of equal parts; the first parts get the remainder, a byte each."""
    share, rest = divmod(size_bytes, parts)
    return [share + (index < rest) for index in range(parts)]


def exits(plan: Plan, rank: int) -> tuple[int, ...]:
    """Positions of the sends after whose arrival the rank is through with the collective.

    These are the last message from each other rank; earlier ones of the same pair come before. A
    rank that receives nothing (the root of a broadcast) is through when its own last ones arrived.
    """
    received = {send.src: index for index, send in enumerate(plan) if send.dst == rank}
    sent = {send.dst: index for index, send in enumerate(plan) if send.src == rank}
    return tuple(sorted((received or sent).values()))
