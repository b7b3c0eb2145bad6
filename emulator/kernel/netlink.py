"""Route netlink in batches: messages as bytes, hundreds in one call, every answer checked.

A library call per change costs about a millisecond; a fabric of 64 hosts needs some thousand
changes. So messages are plain bytes here and a `Session` sends many at once.
Sources: linux/rtnetlink.h, linux/if_link.h, linux/pkt_sched.h.
"""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterable
from dataclasses import dataclass

NLM_F_REQUEST, NLM_F_ACK = 0x1, 0x4
NLM_F_REPLACE, NLM_F_EXCL, NLM_F_CREATE = 0x100, 0x200, 0x400
NLMSG_ERROR = 2
RTM_NEWLINK, RTM_NEWADDR, RTM_NEWNEIGH = 16, 20, 28
RTM_NEWQDISC, RTM_NEWTCLASS, RTM_NEWTFILTER = 36, 40, 44
IFF_UP = 1
SO_RCVBUFFORCE = 33
_CHUNK_BYTES = 32 * 1024
_RECEIVE_BUFFER_BYTES = 4 << 20
_HEADER = struct.Struct("=IHHII")


class KernelError(OSError):
    """The kernel refused a request; the text says which one."""

    def __init__(self, code: int, label: str) -> None:
        super().__init__(code, f"{label}: {os.strerror(code)}")


@dataclass(frozen=True, slots=True)
class Message:
    """One request: its bytes (sequence number 0) and what it is, for errors."""

    data: bytes
    label: str


def attr(kind: int, data: bytes) -> bytes:
    """A netlink attribute, padded to 4 bytes."""
    return struct.pack("=HH", len(data) + 4, kind) + data + b"\0" * (-len(data) % 4)


def text(kind: int, value: str) -> bytes:
    """A string attribute."""
    return attr(kind, value.encode() + b"\0")


def u32(kind: int, value: int) -> bytes:
    """A 32-bit attribute."""
    return attr(kind, struct.pack("=I", value))


def mac_bytes(mac: str) -> bytes:
    """The six bytes of a MAC address."""
    return bytes.fromhex(mac.replace(":", ""))


def request(kind: int, flags: int, body: bytes, label: str) -> Message:
    """A request that the kernel acknowledges."""
    flags |= NLM_F_REQUEST | NLM_F_ACK
    return Message(_HEADER.pack(_HEADER.size + len(body), kind, flags, 0, 0) + body, label)


def unanswered(message: Message) -> bytes:
    """The bytes of a request that the kernel answers only when it refuses it."""
    size, kind, flags, sequence, port = _HEADER.unpack_from(message.data)
    header = _HEADER.pack(size, kind, flags & ~NLM_F_ACK, sequence, port)
    return header + message.data[_HEADER.size :]


def ifinfo(index: int = 0, flags: int = 0, change: int = 0) -> bytes:
    """struct ifinfomsg."""
    return struct.pack("=BxHiII", socket.AF_UNSPEC, 0, index, flags, change)


class Session:
    """A netlink socket in the network namespace in which it was opened.

    Raises:
        PermissionError: without root.
    """

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, _RECEIVE_BUFFER_BYTES)
            self._socket.bind((0, 0))
        except OSError:
            self._socket.close()
            raise
        self._sequence = 0

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the socket."""
        self._socket.close()

    def run(self, messages: Iterable[Message], *, ignore: tuple[int, ...] = ()) -> None:
        """Sends all messages in order; raises `KernelError` for the first that was refused.

        Args:
            messages: what to do.
            ignore: errno values that do not matter.
        """
        chunk: list[Message] = []
        size = 0
        for message in messages:
            chunk.append(message)
            size += len(message.data)
            if size >= _CHUNK_BYTES:
                self._exchange(chunk, ignore)
                chunk, size = [], 0
        if chunk:
            self._exchange(chunk, ignore)

    def _exchange(self, chunk: list[Message], ignore: tuple[int, ...]) -> None:
        first = self._sequence + 1
        self._sequence += len(chunk)
        parts = []
        for number, message in enumerate(chunk, first):
            parts.append(message.data[:8] + struct.pack("=I", number) + message.data[12:])
        self._socket.send(b"".join(parts))
        self._await_answers(chunk, first, ignore)

    def _await_answers(self, chunk: list[Message], first: int, ignore: tuple[int, ...]) -> None:
        missing = len(chunk)
        failure: KernelError | None = None
        while missing:
            for sequence, code in _answers(self._socket.recv(1 << 17)):
                if sequence < first:
                    continue
                missing -= 1
                if code and code not in ignore and failure is None:
                    failure = KernelError(code, chunk[sequence - first].label)
        if failure:
            raise failure


def raise_refusals(data: bytes, label: str) -> None:
    """`KernelError` when answers that were received tell of a refusal."""
    for _, code in _answers(data):
        if code:
            raise KernelError(code, label)


def _answers(data: bytes) -> Iterable[tuple[int, int]]:
    offset = 0
    while offset < len(data):
        length, kind, _, sequence, _ = _HEADER.unpack_from(data, offset)
        if kind == NLMSG_ERROR:
            yield sequence, -struct.unpack_from("=i", data, offset + _HEADER.size)[0]
        offset += (length + 3) & ~3
