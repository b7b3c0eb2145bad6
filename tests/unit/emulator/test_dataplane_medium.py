"""The kernel as a medium: every frame is sent whole and once, and what was refused is counted."""

from __future__ import annotations

import ctypes
import errno
import socket
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from emulator.clock.live import LiveClock
from emulator.dataplane import medium
from emulator.dataplane.layout import NIC_RECORD
from emulator.dataplane.medium import KernelMedium
from tests.fakes.nic_rig import PAYLOAD, address
from traffic import headers
from traffic.template import HEADER_COLUMNS, FrameBank
from traffic.wire import Opcode

FLOW = replace(address("h1", "h2"), dest_qp=0x123)
TIMEOUT_S = 5.0


class Ring:
    """A ring with what a test put into it."""

    def __init__(self, *times_ns: int) -> None:
        self.records = np.zeros(len(times_ns), NIC_RECORD)
        self.records["time_ns"] = times_ns

    def drain(self) -> np.ndarray:
        """All records."""
        return self.records


class Plane:
    """A data plane of which only the ring is asked."""

    def __init__(self, *times_ns: int) -> None:
        self.ring = Ring(*times_ns)

    def backlog_wire_bytes(self) -> list[int]:
        """Something to recognise."""
        return [0, 11, 22]

    def inside_switches(self) -> int:
        """Something to recognise."""
        return 33


class Ports:
    """Ports whose packet sockets are ends of socket pairs, so that a test sees what was sent."""

    def __init__(self, *numbers: int, kind: int = socket.SOCK_DGRAM) -> None:
        pairs = {number: socket.socketpair(socket.AF_UNIX, kind) for number in numbers}
        self.ours = {number: pair[1] for number, pair in pairs.items()}
        senders = {number: pair[0] for number, pair in pairs.items()}
        for one in (*senders.values(), *self.ours.values()):
            one.setblocking(False)
        self.senders = senders
        self.medium = KernelMedium(Plane(), senders, LiveClock(1.0))  # type: ignore[arg-type]

    def send(self, ports: list[int], frames: list[bytes]) -> int:
        """Sends whole frames."""
        bank = FrameBank(frames)
        tails = bank.icrc.astype("<u4").view(np.uint8).reshape(-1, 4)
        return self.medium.send(
            np.array(ports), bank.headers, bank.header_bytes, bank.body_bytes, tails
        )

    def arrived(self, port: int) -> list[bytes]:
        """All datagrams that a port has sent."""
        frames = []
        while True:
            try:
                frames.append(self.ours[port].recv(1 << 17))
            except BlockingIOError:
                return frames

    def close(self) -> None:
        """Closes all sockets."""
        for one in (*self.senders.values(), *self.ours.values()):
            one.close()


@pytest.fixture
def ports() -> Iterator[Ports]:
    """Three ports."""
    made = Ports(1, 2, 7)
    yield made
    made.close()


def data(psn: int, size: int = 64) -> bytes:
    """A data frame."""
    return headers.data_frame(FLOW, Opcode.SEND_MIDDLE, psn, size)


def test_frames_leave_whole_from_their_ports(ports: Ports) -> None:
    """Header, zeros and ICRC in one datagram, each from the socket of its port, in order."""
    frames = [data(0, PAYLOAD), data(1, 5), headers.ack_frame(FLOW, 9, 1), headers.cnp_frame(FLOW)]
    assert ports.send([1, 1, 2, 7], frames) == 4
    assert ports.arrived(1) == frames[:2]
    assert ports.arrived(2) == frames[2:3]
    assert ports.arrived(7) == frames[3:]


def test_the_largest_frame_that_ip_can_carry_leaves_whole(ports: Ports) -> None:
    """Bodies are zeros up to 64 KiB."""
    frame = data(0, 65_000)
    assert ports.send([1], [frame]) == 1
    assert ports.arrived(1) == [frame]


def test_a_port_without_room_does_not_hold_up_the_others(ports: Ports) -> None:
    """What its socket took is counted, the rest of its frames is given up, others go on."""
    many = [data(psn) for psn in range(600)]
    ports.senders[1].setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4_096)
    taken = ports.send([1] * 600 + [2], [*many, data(777)])
    first = ports.arrived(1)
    assert 0 < len(first) < 600
    assert first == many[: len(first)]
    assert ports.arrived(2) == [data(777)]
    assert taken == len(first) + 1


def test_rows_may_lie_apart_in_memory(ports: Ports) -> None:
    """Headers and ICRCs as columns of a wider table, as the engine keeps them; twice the same."""
    frames = [data(0, 100), data(1, 5), headers.ack_frame(FLOW, 9, 1)]
    bank = FrameBank(frames)
    wide = HEADER_COLUMNS
    table = np.zeros((3, wide + 32), np.uint8)
    for again in range(3):
        order = [again % 3, (again + 1) % 3, (again + 2) % 3]
        table[:, :wide] = bank.headers[order]
        table[:, wide : wide + 4] = bank.icrc.astype("<u4").view(np.uint8).reshape(-1, 4)[order]
        head, body = bank.header_bytes[order], bank.body_bytes[order]
        taken = [
            ports.medium.send(
                np.array([1] * n), table[:n, :wide], head[:n], body[:n], table[:n, wide : wide + 4]
            )
            for n in (1, 3)
        ]
        assert taken == [1, 3]
        chosen = [frames[number] for number in order]
        assert ports.arrived(1) == chosen[:1] + chosen


def test_rows_whose_bytes_lie_apart_are_sent_whole(ports: Ports) -> None:
    """Any array of the right shape will do."""
    frames = [data(0, 100), data(1, 5)]
    bank = FrameBank(frames)
    tails = bank.icrc.astype("<u4").view(np.uint8).reshape(-1, 4)
    rows, icrc = np.asfortranarray(bank.headers), np.asfortranarray(tails)
    taken = ports.medium.send(np.array([2, 2]), rows, bank.header_bytes, bank.body_bytes, icrc)
    assert taken == 2
    assert ports.arrived(2) == frames


@pytest.fixture
def loopback() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Two connected datagram sockets whose sender always has room."""
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as target,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as source,
    ):
        target.bind(("127.0.0.1", 0))
        source.connect(target.getsockname())
        source.setblocking(False)
        yield source, target


@pytest.mark.parametrize("count", [1_024, 1_025, 3_000, 8_193])
def test_batches_beyond_one_call_are_sent_whole(
    loopback: tuple[socket.socket, socket.socket], count: int
) -> None:
    """The kernel takes 1024 messages per call; the rest is offered again."""
    medium = KernelMedium(Plane(), {4: loopback[0]}, LiveClock(1.0))  # type: ignore[arg-type]
    bank = FrameBank([data(0, 4)])
    index = np.zeros(count, np.intp)
    rows, tails = bank.patch(index, Opcode.SEND_MIDDLE, 0, np.arange(count))
    body, head = bank.body_bytes[index], bank.header_bytes[index]
    assert medium.send(np.full(count, 4), rows, head, body, tails) == count


def test_the_rest_of_a_batch_begins_where_the_kernel_stopped(
    ports: Ports, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No frame twice and none left out, whatever number a call takes."""
    calls: list[tuple[int, int, int]] = []

    def sendmmsg(fd: int, address: ctypes.c_void_p, count: int, _flags: int) -> int:
        assert address.value is not None
        calls.append((fd, address.value, count))
        return min(count, 4)

    monkeypatch.setattr(medium, "_libc", SimpleNamespace(sendmmsg=sendmmsg))
    assert ports.send([1] * 10 + [2] * 3, [data(psn) for psn in range(13)]) == 13
    fds = [ports.senders[port].fileno() for port in (1, 1, 1, 2)]
    assert [(fd, count) for fd, _, count in calls] == list(zip(fds, (10, 6, 2, 3), strict=True))
    base = calls[0][1]
    offsets = [(address - base) // medium._MMSGHDR.itemsize for _, address, _ in calls]
    assert offsets == [0, 4, 8, 10]


def test_an_error_of_the_kernel_is_told(ports: Ports) -> None:
    """Anything but a full socket is no reason to go on."""
    ports.ours[2].close()
    with pytest.raises(OSError, match="port 2") as caught:
        ports.send([2], [data(0)])
    assert caught.value.errno in (errno.ECONNREFUSED, errno.EPIPE, errno.ENOTCONN, errno.ECONNRESET)


def test_nothing_to_send_is_nothing_sent(ports: Ports) -> None:
    """An empty batch."""
    empty: Any = np.zeros(0, np.intp)
    rows, tails = np.zeros((0, 64), np.uint8), np.zeros((0, 4), np.uint8)
    assert ports.medium.send(empty, rows, empty, empty, tails) == 0


def test_arrivals_are_told_in_model_time() -> None:
    """The kernel's clock, less the start, slowed down by the dilation."""
    clock = LiveClock(100.0, start_wall_ns=1_000_000)
    medium = KernelMedium(Plane(1_000_000, 1_005_000, 6_000_000), {}, clock)  # type: ignore[arg-type]
    assert medium.receive()["time_ns"].tolist() == [0, 50, 50_000]


def test_queues_are_those_of_the_data_plane(ports: Ports) -> None:
    """Backlog and packets inside switches are handed through."""
    assert list(ports.medium.backlog()) == [0, 11, 22]
    assert ports.medium.inside_switches() == 33
