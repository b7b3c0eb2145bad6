"""Starts a kernel for a moment: it must boot and run one program of the host on this machine."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from emulator.kernel.process import die_with_parent
from topologies.errors import MachineError

_PATIENCE_S = 60.0
_MEMORY = "mem=128M"
_PROGRAM = "/bin/true"
_RAN = "Attempted to kill init! exitcode=0x00000000"
"""The kernel's last words when its first program ended well."""
_ADDR_NO_RANDOMIZE = 0x0040000
_libc = ctypes.CDLL(None, use_errno=True)


def command(program: Path, folder: Path) -> list[str]:
    """Boots with the host's files, read-only, and runs a program that ends at once."""
    return [
        str(program), _MEMORY, "rootfstype=hostfs", "rootflags=/", "ro", f"init={_PROGRAM}",
        "con=null", "con0=null,fd:1", "quiet", "norandmaps", "time-travel=inf-cpu",
        "time-travel-start=0", f"uml_dir={folder}/", "umid=trial",
    ]  # fmt: skip


def require(program: Path, version: str, scratch: Path) -> None:
    """The kernel works here.

    Args:
        program: the kernel.
        version: what it must say that it is.
        scratch: a folder where it may write.

    Raises:
        MachineError: it does not start, is another version, or cannot run programs.
    """
    said = output([str(program), "--version"])
    if not said.startswith(version):
        raise MachineError(f"the kernel was built but does not start here: {said or 'no output'}")
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        said = output(command(program, Path(folder)))
    if _RAN not in said:
        last = " / ".join(said.splitlines()[-3:]) or "no output"
        raise MachineError(f"the kernel was built but runs no program here: {last}")


def output(command: Sequence[str]) -> str:
    """What a kernel says until it ends; the reason when it cannot be started or does not end."""
    try:
        process = _spawn(command)
    except OSError as error:
        return error.strerror or str(error)
    with process:
        try:
            said, _ = process.communicate(timeout=_PATIENCE_S)
        except subprocess.TimeoutExpired:
            return f"no end within {_PATIENCE_S:.0f} s"
        finally:
            # Its programs as well: they do not end with it when it is killed.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    return said.strip()


def _spawn(command: Sequence[str]) -> subprocess.Popen[str]:
    """In a process group of its own, since a kernel that panics signals its group and aborts."""

    def prepare() -> None:
        die_with_parent()
        os.setsid()
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        _libc.personality(_ADDR_NO_RANDOMIZE)

    return subprocess.Popen(
        list(command),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        preexec_fn=prepare,  # noqa: PLW1509 - the child is single-threaded before exec
    )
