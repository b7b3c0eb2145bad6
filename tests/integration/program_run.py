"""Runs an eBPF program of the data plane on single frames: the kernel does, without any network."""

from __future__ import annotations

import ctypes
import struct
from dataclasses import dataclass

from emulator.kernel.bpf import library_name

CONTEXT_BYTES, AT_PRIORITY, AT_INGRESS_IFINDEX, AT_TSTAMP = 192, 32, 36, 152
"""struct __sk_buff of linux/bpf.h: its size, and where some fields are."""
_LONGEST = 1 << 16


class Options(ctypes.Structure):
    """struct bpf_test_run_opts of libbpf."""

    _fields_ = (
        ("size", ctypes.c_size_t),
        ("data_in", ctypes.c_char_p), ("data_out", ctypes.c_void_p),
        ("data_size_in", ctypes.c_uint32), ("data_size_out", ctypes.c_uint32),
        ("context_in", ctypes.c_char_p), ("context_out", ctypes.c_void_p),
        ("context_size_in", ctypes.c_uint32), ("context_size_out", ctypes.c_uint32),
        ("result", ctypes.c_uint32), ("repeat", ctypes.c_int), ("duration", ctypes.c_uint32),
        ("flags", ctypes.c_uint32), ("cpu", ctypes.c_uint32), ("batch_size", ctypes.c_uint32),
    )  # fmt: skip


@dataclass(frozen=True)
class Ran:
    """What a program made of a frame.

    Attributes:
        result: what it returned.
        frame: the frame as it left it.
        context: struct __sk_buff as it left it.
    """

    result: int
    frame: bytes
    context: bytes

    @property
    def priority(self) -> int:
        """skb->priority: the shaper's class."""
        return int(struct.unpack_from("=I", self.context, AT_PRIORITY)[0])

    @property
    def departure_ns(self) -> int:
        """skb->tstamp."""
        return int(struct.unpack_from("=Q", self.context, AT_TSTAMP)[0])


def run_program(program_fd: int, frame: bytes, ingress_ifindex: int = 0) -> Ran:
    """Runs a classifier once.

    Args:
        program_fd: a loaded program.
        frame: with its Ethernet header.
        ingress_ifindex: where it came from. skb->tc_classid cannot be given: it is 0.
    """
    context = bytearray(CONTEXT_BYTES)
    struct.pack_into("=I", context, AT_INGRESS_IFINDEX, ingress_ifindex)
    after = ctypes.create_string_buffer(CONTEXT_BYTES)
    data = ctypes.create_string_buffer(_LONGEST)
    options = Options(
        ctypes.sizeof(Options), frame, ctypes.cast(data, ctypes.c_void_p), len(frame), _LONGEST,
        bytes(context), ctypes.cast(after, ctypes.c_void_p), CONTEXT_BYTES, CONTEXT_BYTES,
    )  # fmt: skip
    run = ctypes.CDLL(library_name(), use_errno=True).bpf_prog_test_run_opts
    assert run(program_fd, ctypes.byref(options)) == 0
    return Ran(options.result, data.raw[: options.data_size_out], after.raw)
