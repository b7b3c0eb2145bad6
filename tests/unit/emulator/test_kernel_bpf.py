"""Memory shared with eBPF programs, over plain memory files that stand in for the maps."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator

import numpy as np
import pytest

from emulator.dataplane.layout import NIC_RECORD, RING_RECORD
from emulator.kernel.bpf import Ring, map_array

PAGE = mmap.PAGESIZE
SIZE = 4 * PAGE
STRIDE = RING_RECORD.itemsize
ROOM = SIZE // STRIDE
BUSY = 1 << 31


class FakeRing:
    """The kernel's side of a ring buffer: consumer page, producer page, the data twice in a row."""

    def __init__(self) -> None:
        self.fd = os.memfd_create("ring")
        os.ftruncate(self.fd, 2 * PAGE + 2 * SIZE)
        self._memory = mmap.mmap(self.fd, 2 * PAGE + 2 * SIZE)
        self.consumer = np.frombuffer(self._memory, "<u8", 1)
        self.producer = np.frombuffer(self._memory, "<u8", 1, PAGE)
        self._data = np.frombuffer(self._memory, RING_RECORD, 2 * ROOM, 2 * PAGE)

    def start_at(self, position: int) -> None:
        """As if so many bytes had gone through it."""
        self.consumer[0] = self.producer[0] = position

    def submit(self, *psns: int, busy: bool = False) -> None:
        """Records with these sequence numbers; a busy one is not finished yet."""
        for psn in psns:
            place = int(self.producer[0]) // STRIDE % ROOM
            for half in (place, place + ROOM):
                self._data["record"]["psn"][half] = psn
                self._data["header"][half] = NIC_RECORD.itemsize | (BUSY if busy else 0)
            self.producer[0] += STRIDE

    def finish(self, position: int) -> None:
        """The record that begins there is finished."""
        place = position // STRIDE % ROOM
        self._data["header"][[place, place + ROOM]] = NIC_RECORD.itemsize


@pytest.fixture
def kernel() -> Iterator[FakeRing]:
    """An empty ring."""
    ring = FakeRing()
    yield ring
    os.close(ring.fd)


def psns(ring: Ring, limit: int = 1 << 20) -> list[int]:
    """What is in it."""
    numbers: list[int] = ring.drain(limit)["psn"].tolist()
    return numbers


def test_records_are_taken_once_and_in_order(kernel: FakeRing) -> None:
    """Their place is free for the kernel afterwards."""
    ring = Ring(kernel.fd, SIZE, RING_RECORD)
    assert psns(ring) == []
    kernel.submit(5, 6, 7)
    assert psns(ring) == [5, 6, 7]
    assert psns(ring) == []
    assert kernel.consumer[0] == kernel.producer[0] == 3 * STRIDE


def test_a_record_that_is_being_written_is_waited_for(kernel: FakeRing) -> None:
    """Nor is anything taken that follows it."""
    ring = Ring(kernel.fd, SIZE, RING_RECORD)
    kernel.submit(1)
    kernel.submit(2, busy=True)
    kernel.submit(3)
    assert psns(ring) == [1]
    assert psns(ring) == []
    kernel.finish(STRIDE)
    assert psns(ring) == [2, 3]


def test_records_do_not_wrap(kernel: FakeRing) -> None:
    """The kernel maps the data twice, so a batch is one piece across the end."""
    kernel.start_at(SIZE * 7 - 2 * STRIDE)
    ring = Ring(kernel.fd, SIZE, RING_RECORD)
    kernel.submit(1, 2, 3, 4)
    assert psns(ring) == [1, 2, 3, 4]
    assert int(kernel.consumer[0]) == SIZE * 7 + 2 * STRIDE


def test_a_full_ring_is_taken_whole(kernel: FakeRing) -> None:
    """As many records as there is room for, from any position."""
    kernel.start_at(3 * STRIDE)
    ring = Ring(kernel.fd, SIZE, RING_RECORD)
    kernel.submit(*range(ROOM))
    assert psns(ring) == list(range(ROOM))


def test_a_limit_leaves_the_rest(kernel: FakeRing) -> None:
    """For the next call."""
    ring = Ring(kernel.fd, SIZE, RING_RECORD)
    kernel.submit(1, 2, 3)
    assert psns(ring, limit=2) == [1, 2]
    assert psns(ring) == [3]


def test_what_was_taken_is_a_copy(kernel: FakeRing) -> None:
    """The kernel may overwrite the place at once."""
    ring = Ring(kernel.fd, SIZE, RING_RECORD)
    kernel.submit(1)
    taken = ring.drain()
    kernel.submit(*range(100, 100 + ROOM))
    assert taken["psn"].tolist() == [1]


def test_an_array_map_is_memory() -> None:
    """What is written on one side is read on the other, without a call."""
    kind = np.dtype([("a", "<u8"), ("b", "<u8")])
    fd = os.memfd_create("array")
    try:
        os.ftruncate(fd, PAGE)
        here, there = map_array(fd, kind, 10), map_array(fd, kind, 10)
        here["b"][3] = 77
        assert there[3].tolist() == (0, 77)
        assert len(here) == 10
    finally:
        os.close(fd)


def test_a_value_that_maps_would_pad_is_refused() -> None:
    """Array maps round values up to 8 bytes; reading them without would go wrong."""
    with pytest.raises(ValueError, match="multiple of 8"):
        map_array(-1, np.dtype([("a", "<u4")]), 10)
