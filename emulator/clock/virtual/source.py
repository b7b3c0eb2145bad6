"""Where the kernel's source comes from: what the user names, what is installed, or the archive.

In this order, unless the user names one: an installed package of the tested series, the
distribution's package of it, then other versions, the newest first.
"""

from __future__ import annotations

import fnmatch
import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from emulator.clock.virtual import recipe
from topologies.errors import MachineError, SpecError

FLAG = "--source"
INSTALLED = Path("/usr/src")
ARCHIVE, TREE, PACKAGE = "archive", "tree", "package"
NAME = f"linux-source-{recipe.TESTED_SERIES}"
WAY_OUT = (
    f"apt install {NAME}, or name an unpacked tree or a tarball of Linux {recipe.TESTED_SERIES} "
    f"with {FLAG}"
)
_SERIES = re.compile(r"linux-source-(\d+(?:\.\d+)+)")
_MADE_BY_BUILDS = ("*.o", "*.a", "*.ko", "*.cmd", "./.config", "./vmlinux", "./linux",
                   "*/include/generated", "*/include/config")  # fmt: skip


@dataclass(frozen=True)
class Source:
    """One place of source.

    Attributes:
        kind: ``archive`` (a tarball), ``tree`` or ``package`` (still to be downloaded).
        place: the path, or the package's name.
    """

    kind: str
    place: str

    @property
    def series(self) -> str:
        """The version that its name states, such as ``6.12``; empty when it states none."""
        found = _SERIES.search(Path(self.place).name)
        return found.group(1) if found else ""


def named(path: Path) -> Source:
    """What the user named.

    Raises:
        SpecError: it is neither a kernel tree nor a file.
    """
    if path.is_dir():
        if not is_tree(path):
            raise SpecError(FLAG, str(path), "is no unpacked kernel source", WAY_OUT)
        return Source(TREE, str(path.resolve()))
    if path.is_file():
        return Source(ARCHIVE, str(path.resolve()))
    raise SpecError(FLAG, str(path), "does not exist", WAY_OUT)


def is_tree(folder: Path) -> bool:
    """Whether a folder holds a kernel's source, with the architecture that we need."""
    return all((folder / part).exists() for part in ("Makefile", "Kconfig", "arch/um"))


def choose() -> Source:
    """The best source that this machine can get at, without looking into it.

    Raises:
        MachineError: there is none.
    """
    near, far = installed(INSTALLED), downloadable()
    tested = [found for found in (*near, *far) if recipe.is_tested(found.series)]
    for found in (*tested, *near, *far):
        return found
    raise MachineError(f"no kernel source is installed or can be downloaded; {WAY_OUT}")


def installed(folder: Path) -> list[Source]:
    """Tarballs of installed packages below a folder such as /usr/src, the newest first."""
    places = (*folder.glob("linux-source-*.tar.*"), *folder.glob("linux-source-*/*.tar.*"))
    return _newest_first(Source(ARCHIVE, str(path)) for path in places if path.is_file())


def downloadable() -> list[Source]:
    """Packages of source that the distribution has, the newest first."""
    if not shutil.which("apt-cache") or not shutil.which("apt-get"):
        return []
    done = subprocess.run(
        ["apt-cache", "pkgnames", "linux-source-"], capture_output=True, text=True, check=False
    )
    names = [name for name in done.stdout.split() if _SERIES.fullmatch(name)]
    return _newest_first(Source(PACKAGE, name) for name in names)


def _newest_first(sources: Iterable[Source]) -> list[Source]:
    def order(source: Source) -> tuple[tuple[int, ...], str]:
        return tuple(int(number) for number in source.series.split(".") if number), source.place

    return sorted(sources, key=order, reverse=True)


def digest(source: Source) -> str:
    """What tells one source from another: the content of a tarball, the files of a tree."""
    if source.kind == ARCHIVE:
        with Path(source.place).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    whole = hashlib.sha256()
    for folder, folders, names in os.walk(source.place):
        folders.sort()
        for name in sorted(names):
            path = Path(folder, name)
            stat = path.lstat()
            relative = path.relative_to(source.place)
            whole.update(f"{relative}\0{stat.st_size}\0{stat.st_mtime_ns}\n".encode())
    return whole.hexdigest()


def unpack_command(archive: str, folder: Path) -> list[str]:
    """Unpacks what is needed of a tarball, on all processors where its format allows it."""
    packer = ["--use-compress-program=xz -T0"] if archive.endswith(".xz") else []
    leave_out = [f"--exclude={pattern}" for pattern in recipe.NOT_UNPACKED]
    where = ["-C", str(folder), "--strip-components=1", "--no-same-owner"]
    return ["tar", *where, *packer, *leave_out, "-xf", archive]


def copy_tree(tree: Path, folder: Path) -> None:
    """Copies what is needed of a tree, and nothing that an earlier build left in it."""

    def left_out(place: str, names: Sequence[str]) -> set[str]:
        inside = Path(place).relative_to(tree)
        return {name for name in names if _is_left_out(f"./{inside / name}")}

    shutil.copytree(tree, folder, symlinks=True, ignore=left_out, dirs_exist_ok=True)


def _is_left_out(path: str) -> bool:
    patterns = (*recipe.NOT_UNPACKED, *_MADE_BY_BUILDS)
    return any(fnmatch.fnmatchcase(path, pattern) for pattern in patterns)
