"""``fabriclab kernel``: builds, shows, removes the virtual clock's kernel; needs no root."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from emulator.clock.virtual.kernel import BuiltKernel

EXIT_NOT_BUILT = 1
_DAY_S, _HOUR_S, _MINUTE_S = 86_400, 3_600, 60


def add_parser(commands: Any) -> None:
    """Add the sub-parser with its own commands."""
    parser = commands.add_parser("kernel", help="build the kernel of the virtual clock")
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    build = actions.add_parser(
        "build",
        help="get the source, build it, keep it in the cache",
        description="Builds a User-Mode-Linux kernel out of the distribution's kernel source, as "
        "an ordinary user. Nothing happens when it is there already.",
    )
    build.add_argument(
        "--source", metavar="PATH", type=Path, help="an unpacked kernel tree, or a tarball of one"
    )
    build.add_argument("--force", action="store_true", help="build it although it is there")
    build.add_argument("--quiet", action="store_true", help="no progress, only the result")
    build.set_defaults(action=_build)
    status = actions.add_parser("status", help="say whether it is built and what building needs")
    status.set_defaults(action=_status)
    remove = actions.add_parser("remove", help="remove it, and all earlier ones")
    remove.set_defaults(action=_remove)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Do what the second word says; the result is the exit code."""
    code: int = arguments.action(arguments)
    return code


def _build(arguments: argparse.Namespace) -> int:
    """Build; 0 when it is there afterwards."""
    from emulator.clock.virtual.build import build  # noqa: PLC0415 - keeps the help text quick
    from emulator.run.progress import Progress  # noqa: PLC0415

    built, is_new = build(arguments.source, Progress(quiet=arguments.quiet), arguments.force)
    if is_new:
        print(f"built Linux {built.version} in {built.seconds:.0f} s: {built.path}")
    else:
        print(f"is built already (--force builds it again): {built.path}")
    return 0


def _status(_arguments: argparse.Namespace) -> int:
    """Show; 0 when a run can use a kernel, 1 when none is built."""
    from emulator.clock.virtual import kernel  # noqa: PLC0415 - keeps the help text quick
    from emulator.tables import aligned  # noqa: PLC0415

    built = kernel.find()
    rows = [*_kernel_rows(built), *_other_rows(built), *_building_rows()]
    print("\n".join(aligned(rows)))
    return 0 if built else EXIT_NOT_BUILT


def _kernel_rows(built: BuiltKernel | None) -> Iterator[tuple[str, str]]:
    from emulator.clock.virtual import kernel  # noqa: PLC0415 - keeps the help text quick

    if built is None:
        yield "kernel", f"not built; run: {kernel.COMMAND}"
        return
    yield "kernel", "built"
    yield "path", str(built.path)
    yield "version", f"Linux {built.version}, from {built.source}"
    yield "size", f"{built.size_bytes / 1e6:.1f} MB"
    yield "built", f"{age(built.built)} in {built.seconds:.0f} s by {built.compiler}"
    yield "sha256", built.sha256


def _other_rows(built: BuiltKernel | None) -> Iterator[tuple[str, str]]:
    from emulator.clock.virtual import kernel  # noqa: PLC0415 - keeps the help text quick

    used = built.path.parent if built else None
    others = [folder for folder in kernel.folders() if folder != used]
    for folder in others:
        yield "not used", f"{folder}: of another release or damaged; kernel remove takes it away"


def _building_rows() -> Iterator[tuple[str, str]]:
    from emulator.clock.virtual import source, toolchain  # noqa: PLC0415 - as above
    from topologies.errors import MachineError  # noqa: PLC0415

    try:
        toolchain.require()
        yield "to build", "compiler and tools are there"
    except MachineError as error:
        yield "to build", str(error)
    try:
        chosen = source.choose()
        words = {source.PACKAGE: "to be downloaded", source.ARCHIVE: "installed"}
        yield "source", f"{words[chosen.kind]}: {chosen.place}"
    except MachineError as error:
        yield "source", str(error)


def age(built: str, now: datetime | None = None) -> str:
    """How long ago an ISO 8601 time was, in its largest unit: "3 days ago"."""
    seconds = ((now or datetime.now(UTC)) - datetime.fromisoformat(built)).total_seconds()
    for unit_s, name in ((_DAY_S, "day"), (_HOUR_S, "hour"), (_MINUTE_S, "minute")):
        count = int(seconds // unit_s)
        if count >= 1:
            return f"{count} {name}{'s' if count > 1 else ''} ago"
    return "just now"


def _remove(_arguments: argparse.Namespace) -> int:
    """Remove all kernels in the cache, what is left of builds, and their log."""
    from emulator.clock.virtual import kernel, workshop  # noqa: PLC0415 - as above

    with workshop.alone(on_wait=None):
        removed = kernel.folders()
        for folder in removed:
            kernel.discard(folder)
        removed += workshop.clear()
    print("\n".join(f"removed: {path}" for path in removed) or "nothing to remove")
    return 0
