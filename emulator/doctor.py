"""What this machine has of what a run needs, and how to get what it lacks."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from emulator import DISTRIBUTION
from emulator.programs import find_program
from topologies.errors import MachineError

if TYPE_CHECKING:
    from emulator.kernel.bpf import BpfObject

OK, MISSING, REMARK = "ok", "missing", "remark"
_SOME_PROGRAM = "mmu_egress"
_PACKAGES = {
    "ovs-vswitchd": "openvswitch-switch",
    "ovsdb-server": "openvswitch-switch",
    "ovs-vsctl": "openvswitch-switch",
    "clang": "clang libbpf-dev",
    "ip": "iproute2",
    "mnexec": "mininet",
}


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at.

    Attributes:
        what: its name.
        state: ``ok``, ``missing`` (nothing runs without it) or ``remark``.
        detail: what was found, or how to get it.
    """

    what: str
    state: str
    detail: str


def _root() -> Finding:
    if os.geteuid() == 0:
        return Finding("root", OK, "running as root")
    program = Path(sys.argv[0])
    command = program if program.name == DISTRIBUTION else DISTRIBUTION
    return Finding("root", MISSING, f"run it with: sudo {command} ...")


def _programs() -> Iterator[Finding]:
    for name, package in _PACKAGES.items():
        found = find_program(name)
        state = OK if found else MISSING
        yield Finding(name, state, found or f"install it with: apt install {package}")


def _libbpf() -> Finding:
    from emulator.kernel import bpf  # noqa: PLC0415 - ctypes only where needed

    name = bpf.library_name()
    if name:
        return Finding("libbpf", OK, name)
    return Finding("libbpf", MISSING, "install it with: apt install libbpf1 (or libbpf0)")


def _mininet() -> Finding:
    try:
        from mininet import net  # noqa: PLC0415
    except ImportError:
        hint = "install it with: apt install mininet, and use a virtual environment that sees it"
        return Finding("mininet", MISSING, hint)
    return Finding("mininet", OK, net.VERSION)


def _controller() -> Finding:
    from importlib import metadata  # noqa: PLC0415

    for package in ("ryu", "os-ken"):
        try:
            return Finding("controller framework", OK, f"{package} {metadata.version(package)}")
        except metadata.PackageNotFoundError:
            continue
    return Finding("controller framework", MISSING, "run scripts/provision.sh (Ryu or os-ken)")


def _data_plane() -> tuple[BpfObject | None, Finding]:
    """The loaded eBPF program, if it loads; needs root."""
    from emulator.dataplane.compiling import object_file  # noqa: PLC0415 - needs clang
    from emulator.kernel import bpf  # noqa: PLC0415 - needs root

    try:
        loaded = bpf.BpfObject(object_file())
    except MachineError as error:
        return None, Finding("eBPF data plane", MISSING, str(error))
    return loaded, Finding("eBPF data plane", OK, "compiles and loads")


def _kernel() -> Iterator[Finding]:
    """Tries the data plane and the kernel features that it rests on; needs root."""
    from emulator.kernel import probing  # noqa: PLC0415 - needs root

    loaded, finding = _data_plane()
    yield finding
    program_fd = loaded.program_fd(_SOME_PROGRAM) if loaded else None
    for what, works, hint in probing.features(program_fd):
        yield Finding(what, OK if works else MISSING, "works" if works else hint)
    if loaded:
        loaded.close()


def datapath() -> str:
    """``system`` where Open vSwitch's kernel datapath is there, else ``netdev``."""
    return "system" if Path("/sys/module/openvswitch").exists() else "netdev"


def _datapath() -> Finding:
    kind = datapath()
    words = {"system": "kernel datapath", "netdev": "userspace datapath (no kernel module)"}
    return Finding("switching", OK, words[kind])


def examine() -> list[Finding]:
    """Everything that a run cannot do without, in the order in which it matters."""
    findings = [_root(), *_programs(), _libbpf(), _mininet(), _controller(), _datapath()]
    if findings[0].state == OK:
        return [*findings, *_kernel()]
    return [*findings, Finding("kernel", REMARK, "can only be examined as root")]


def examine_for_guest() -> list[Finding]:
    """What a run under the virtual clock cannot do without; none of it needs root."""
    from emulator.clock.virtual import kernel  # noqa: PLC0415 - only where needed

    built = kernel.find()
    hint = "build it once with: fabriclab kernel build"
    guest = Finding("kernel", OK, str(built.path)) if built else Finding("kernel", MISSING, hint)
    return [guest, *_programs(), _libbpf(), _mininet(), _controller()]


def missing(findings: Iterable[Finding]) -> list[Finding]:
    """Those without which no run can start."""
    return [finding for finding in findings if finding.state == MISSING]


def require(examiner: Callable[[], Iterable[Finding]] = examine) -> None:
    """Raises MachineError for the first thing that a run cannot do without."""
    for finding in missing(examiner()):
        raise MachineError(f"{finding.what} is missing: {finding.detail}")
