"""Loads the eBPF object through libbpf's shared library and maps its memory into this process."""

from __future__ import annotations

import ctypes
import mmap
import os
from pathlib import Path

import numpy as np
import numpy.typing as npt

from topologies.errors import MachineError

_BUSY = 0x80000000
_NAMES = ("libbpf.so.1", "libbpf.so.0")


def library_name() -> str | None:
    """Name of the shared library on this machine; None when there is none."""
    for name in _NAMES:
        try:
            ctypes.CDLL(name)
        except OSError:
            continue
        return name
    return None


def _library() -> ctypes.CDLL:
    name = library_name()
    if name is not None:
        return ctypes.CDLL(name, use_errno=True)
    raise MachineError("libbpf is missing; install it (Debian and Ubuntu: apt install libbpf1)")


class BpfObject:
    """A loaded object file: programs and maps by name, alive until the process ends.

    Raises:
        MachineError: libbpf is missing or the kernel refused the object.
    """

    def __init__(self, path: Path) -> None:
        self._lib = _library()
        self._declare()
        self._log = b""
        self._silence()
        self._object = self._lib.bpf_object__open_file(os.fsencode(path), None)
        if not self._object or self._lib.libbpf_get_error(self._object):
            raise MachineError(f"{path} is not a loadable eBPF object")
        code = self._lib.bpf_object__load(self._object)
        if code:
            raise MachineError(
                f"the kernel refused the eBPF program ({os.strerror(-code)}): "
                f"{self._log.decode(errors='replace')[-400:]}"
            )

    def _declare(self) -> None:
        lib = self._lib
        lib.bpf_object__open_file.restype = ctypes.c_void_p
        lib.bpf_object__open_file.argtypes = [ctypes.c_char_p, ctypes.c_void_p]
        lib.bpf_object__load.argtypes = [ctypes.c_void_p]
        lib.bpf_object__find_program_by_name.restype = ctypes.c_void_p
        lib.bpf_object__find_program_by_name.argtypes = [
            ctypes.c_void_p,
            ctypes.c_char_p,
        ]
        lib.bpf_program__fd.argtypes = [ctypes.c_void_p]
        lib.bpf_object__find_map_fd_by_name.argtypes = [
            ctypes.c_void_p,
            ctypes.c_char_p,
        ]
        lib.bpf_object__close.argtypes = [ctypes.c_void_p]
        lib.bpf_map_update_elem.argtypes = [
            ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_uint64,
        ]  # fmt: skip
        lib.libbpf_get_error.restype = ctypes.c_long
        lib.libbpf_get_error.argtypes = [ctypes.c_void_p]

    def _silence(self) -> None:
        kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)

        def keep(_level: int, text: bytes, _arguments: object) -> int:
            self._log += text
            return 0

        self._printer = kind(keep)  # referenced for as long as libbpf may call it
        self._lib.libbpf_set_print(self._printer)

    def close(self) -> None:
        """Unloads what nothing in the kernel uses; mapped memory stays until it is unmapped."""
        if self._object:
            self._lib.bpf_object__close(self._object)
            self._object = None

    def program_fd(self, name: str) -> int:
        """File descriptor of a program, for a filter."""
        program = self._lib.bpf_object__find_program_by_name(self._object, name.encode())
        if not program:
            raise KeyError(name)
        return int(self._lib.bpf_program__fd(program))

    def map_fd(self, name: str) -> int:
        """File descriptor of a map."""
        fd = int(self._lib.bpf_object__find_map_fd_by_name(self._object, name.encode()))
        if fd < 0:
            raise KeyError(name)
        return fd

    def put(self, name: str, key: bytes, value: bytes) -> None:
        """Sets an entry of a map."""
        if self._lib.bpf_map_update_elem(self.map_fd(name), key, value, 0):
            code = ctypes.get_errno()
            raise MachineError(f"an entry of the eBPF map {name} was refused: {os.strerror(code)}")


def map_array(fd: int, dtype: npt.DTypeLike, entries: int) -> npt.NDArray[np.void]:
    """The memory of an mmapable array map as a NumPy array: reads and writes take no call."""
    kind = np.dtype(dtype)
    stride = (kind.itemsize + 7) & ~7
    if stride != kind.itemsize:
        raise ValueError(f"{kind} needs a size that is a multiple of 8")
    size = -(-stride * entries // mmap.PAGESIZE) * mmap.PAGESIZE
    memory = mmap.mmap(fd, size, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)
    return np.frombuffer(memory, kind, entries)


class Ring:
    """Consumer of a BPF ring buffer whose records all have one size (a power of 2 with header)."""

    def __init__(self, fd: int, size_bytes: int, dtype: npt.DTypeLike) -> None:
        page = mmap.PAGESIZE
        kind = np.dtype(dtype)
        both = mmap.PROT_READ | mmap.PROT_WRITE
        self._consumer = np.frombuffer(mmap.mmap(fd, page, mmap.MAP_SHARED, both), "<u8", 1)
        data = mmap.mmap(fd, page + 2 * size_bytes, mmap.MAP_SHARED, mmap.PROT_READ, offset=page)
        self._producer = np.frombuffer(data, "<u8", 1)
        # The kernel maps the data twice in a row, so records never wrap.
        self._records = np.frombuffer(data, kind, 2 * size_bytes // kind.itemsize, page)
        self._stride, self._mask = kind.itemsize, size_bytes - 1

    def drain(self, limit: int = 1 << 20) -> npt.NDArray[np.void]:
        """Copies and releases all finished records, oldest first."""
        start = int(self._consumer[0])
        count = min((int(self._producer[0]) - start) // self._stride, limit)
        first = (start & self._mask) // self._stride
        records = self._records[first : first + count]
        busy = np.flatnonzero(records["header"] & _BUSY)
        if len(busy):
            records = records[: busy[0]]
        taken = records["record"].copy()
        self._consumer[0] = start + len(records) * self._stride
        return taken
