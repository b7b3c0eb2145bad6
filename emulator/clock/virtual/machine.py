"""A guest: a kernel that runs as an ordinary process, its time under its own control.

All its processes share one processor of the host: handing over between two processors would cost
twelve times as much for each system call.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from emulator.kernel.process import die_with_parent
from topologies.errors import MachineError

MEMORY_BYTES = 2 << 30
CONSOLE, KERNEL_LOG = "console.log", "kernel.log"
_ADDR_NO_RANDOMIZE = 0x0040000
_START_NS = 1_000_000_000
_PATH = "/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/sbin:/usr/local/bin"
# Memory that was freed stays with the process: getting it again costs a page fault for each page.
_ALLOCATOR = {
    "MALLOC_TRIM_THRESHOLD_": "1073741824",
    "MALLOC_MMAP_THRESHOLD_": "1073741824",
    "MALLOC_TOP_PAD_": "1048576",
}
_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class GuestSpec:
    """What a guest is started with.

    Attributes:
        kernel: the User-Mode-Linux program.
        control: a folder of its own: request, console, sockets.
        seed: of all its randomness.
        root: the folder that holds the packages.
        cache: where compiled programs are.
        memory_bytes: of the guest; what it does not use costs nothing.
    """

    kernel: Path
    control: Path
    seed: int
    root: Path
    cache: Path
    memory_bytes: int = MEMORY_BYTES


def environment(spec: GuestSpec) -> dict[str, str]:
    """Environment of the guest's first process. PURE."""
    return {
        "HOME": "/run",
        "PATH": _PATH,
        "PYTHONPATH": str(spec.root),
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        "FABRICLAB_CACHE": str(spec.cache),
        "OPENBLAS_NUM_THREADS": "1",
        **_ALLOCATOR,
    }


def command(spec: GuestSpec, python: str = sys.executable) -> list[str]:
    """The kernel's command line. PURE but for the interpreter's name.

    What the kernel does not know becomes environment (with ``=``) or, behind ``--``, the arguments
    of the first process.
    """
    return [
        str(spec.kernel),
        f"mem={spec.memory_bytes >> 20}M",
        "rootfstype=hostfs", "rootflags=/", "ro",
        f"init={_word(python)}",
        "con=null", "con0=null,fd:1", "quiet", "norandmaps", "panic=-1",
        "time-travel=inf-cpu", f"time-travel-start={_START_NS}",
        f"uml_dir={spec.control}/", "umid=guest",
        f"fabriclab_seed={spec.seed}",
        *(f"{name}={_word(value)}" for name, value in environment(spec).items()),
        "--", "-m", "emulator.clock.virtual.guest", _word(str(spec.control)),
    ]  # fmt: skip


def _word(text: str) -> str:
    """A text as one word of the command line that the kernel makes of all arguments.

    Raises:
        MachineError: that cannot be.
    """
    if '"' in text:
        raise MachineError(f"a guest cannot be told of {text}; use a folder without quotes")
    return f'"{text}"' if any(letter.isspace() for letter in text) else text


class Guest:
    """A running guest.

    Args:
        spec: what to start.
        arguments: the command line, as `command` makes it.
        processor: number of the host's processor that it runs on.
        environment: of the kernel's own process.
    """

    def __init__(
        self,
        spec: GuestSpec,
        arguments: Sequence[str],
        processor: int,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._spec = spec

        def prepare() -> None:
            die_with_parent()
            os.setsid()
            os.sched_setaffinity(0, {processor})
            # A panic aborts; nobody wants the guest's memory as a file then.
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            # Address randomisation would change how much memory the guest finds.
            _libc.personality(_ADDR_NO_RANDOMIZE)

        with (spec.control / CONSOLE).open("wb") as console:
            self._process = subprocess.Popen(
                list(arguments),
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=subprocess.STDOUT,
                env={**os.environ, **(environment or {})},
                preexec_fn=prepare,  # noqa: PLW1509 - the child is single-threaded before exec
            )

    def poll(self) -> int | None:
        """Exit code of the kernel's process; None while it runs."""
        return self._process.poll()

    def kill(self) -> None:
        """Ends the kernel and every process of its session, at once."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
