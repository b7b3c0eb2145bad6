"""Compiles the eBPF program once per content."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

from emulator.caching import cache_folder
from topologies.errors import MachineError

SOURCE = Path(__file__).parent / "bpf" / "mmu.bpf.c"
_FLAGS = ("-O2", "-g", "-Wall", "-Werror", "-target", "bpf")


def _include_folders() -> list[str]:
    """Where the architecture's asm headers are; clang for BPF does not look there by itself."""
    machine = os.uname().machine
    return [f"-I/usr/include/{machine}-linux-gnu"]


def compiler() -> str:
    """Path of clang; MachineError when there is none."""
    found = shutil.which("clang")
    if not found:
        raise MachineError("clang is missing; install it (apt install clang libbpf-dev)")
    return found


def object_file() -> Path:
    """The compiled program, from the cache when its source has not changed.

    Raises:
        MachineError: clang is missing or refuses the source; the text has its first error.
    """
    parts = [path.read_bytes() for path in (SOURCE, *sorted(SOURCE.parent.glob("*.h")))]
    digest = hashlib.sha256(b"".join(parts) + " ".join(_FLAGS).encode()).hexdigest()[:16]
    target = cache_folder() / f"mmu-{os.uname().machine}-{digest}.o"
    if not target.exists():
        _compile(target)
    return target


def _compile(target: Path) -> None:
    scratch = target.with_suffix(f".{os.getpid()}.tmp")
    command = [compiler(), *_FLAGS, *_include_folders(), "-c", str(SOURCE), "-o", str(scratch)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        scratch.unlink(missing_ok=True)
        raise MachineError(f"clang refused {SOURCE.name}: {done.stderr.strip()[:400]}")
    scratch.rename(target)
