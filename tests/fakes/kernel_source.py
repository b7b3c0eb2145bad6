"""A kernel source of a few lines, and a toolbox that builds it in no time."""

from __future__ import annotations

import os
import shutil
import tarfile
from pathlib import Path

import pytest

from emulator.clock.virtual import recipe, source

VERSION = recipe.TESTED_VERSION
_REAL = ("sh", "tar", "xz", "cp", "cat", "chmod", "sleep")
_STUB = "#!/bin/sh\necho 'gcc (Fake) 1.0'\n"
_BOOTS = "echo 'Kernel panic - not syncing: Attempted to kill init! exitcode=0x00000000'; exit 134"
_CONFIGURE = 'cp "$KCONFIG_ALLCONFIG" .config'


def write_tree(folder: Path, version: str = VERSION) -> Path:
    """An unpacked source: a Makefile with the version, and every file that is edited."""
    numbers = dict(zip(("VERSION", "PATCHLEVEL", "SUBLEVEL"), version.split("."), strict=False))
    makefile = "\n".join(f"{name} = {number}" for name, number in numbers.items())
    texts = {"Makefile": f"# SPDX\n{makefile}\nEXTRAVERSION =\n", "Kconfig": "mainmenu\n"}
    for file, edits in recipe.edited_files().items():
        texts[file] = "".join(f"/* line {at} */\n{edit.find}\n" for at, edit in enumerate(edits))
    for file, text in texts.items():
        path = folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def write_archive(folder: Path, tree: Path, name: str = source.NAME) -> Path:
    """A tarball of a tree, called as the distribution calls its own."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.tar.xz"
    with tarfile.open(path, "w:xz") as archive:
        archive.add(tree, arcname=name)
    return path


class Toolbox:
    """Programs that a build calls, in a folder that is the whole search path.

    Attributes:
        bin: the folder.
        system: in place of /usr/src.
        cache: the cache folder.
        tree: an unpacked source.
    """

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.bin, self.system, self.cache = root / "bin", root / "usr-src", root / "cache"
        self.tree = write_tree(root / "tree")
        self._program = root / "program"
        for folder in (self.bin, self.system):
            folder.mkdir()
        for name in _REAL:
            (self.bin / name).symlink_to(shutil.which(name) or f"/bin/{name}")
        for name in ("gcc", "ld", "flex", "bison", "bc"):
            self.put(name, _STUB)
        self.make()
        self.kernel()
        uname = os.uname_result(("Linux", "here", "1", "1", recipe.ARCHITECTURE))
        monkeypatch.setattr(os, "uname", lambda: uname)
        monkeypatch.setattr(source, "INSTALLED", self.system)
        monkeypatch.setenv("FABRICLAB_CACHE", str(self.cache))
        monkeypatch.setenv("PATH", str(self.bin))

    def put(self, name: str, script: str) -> None:
        """A program of one's own."""
        path = self.bin / name
        path.unlink(missing_ok=True)
        path.write_text(script)
        path.chmod(0o755)

    def take(self, *names: str) -> None:
        """These are not installed."""
        for name in names:
            (self.bin / name).unlink()

    def kernel(self, version: str = f"{VERSION}-fabriclab", boots: str = _BOOTS) -> None:
        """What compiling results in: a script that plays the kernel."""
        lines = ("#!/bin/sh", f"case $1 in --version) echo {version};; *) {boots};; esac")
        self._program.write_text("\n".join(lines) + "\n")
        self._program.chmod(0o755)

    def make(self, configure: str = _CONFIGURE, compiling: str | None = None) -> None:
        """``make`` with steps of one's own, as shell lines."""
        compiled = f"echo '  CC      init/main.o'; cp {self._program} linux"
        self.put(
            "make",
            "#!/bin/sh\nfor target; do :; done\ncase $target in\n"
            f"allnoconfig) {configure};;\nlinux) {compiling or compiled};;\nesac\n",
        )

    def install(self, tree: Path | None = None, name: str = source.NAME) -> Path:
        """The distribution's package of a source is installed."""
        return write_archive(self.system, tree or self.tree, name)

    def archive(self, name: str, tree: Path | None = None) -> None:
        """The distribution has a package of a source, to be downloaded; nothing else."""
        tarball = write_archive(self.bin.parent / "pool", tree or self.tree, name)
        known = f"[ $1 = pkgnames ] && echo {name} && echo {name}-rt"
        self.put("apt-cache", f"#!/bin/sh\n{known}\n")
        self.put("apt-get", "#!/bin/sh\n: > ${3}_1_all.deb\n")
        unpack = f'mkdir -p "$3/usr/src" && cp {tarball} "$3/usr/src"'
        self.put("dpkg-deb", f"#!/bin/sh\n{unpack}\n")
        (self.bin / "mkdir").symlink_to(shutil.which("mkdir", path=os.defpath) or "/bin/mkdir")

    def left(self) -> list[str]:
        """What lies in the cache, by name, without the lock and the log."""
        names = (path.name for path in self.cache.iterdir())
        return sorted(name for name in names if name not in {"kernel.lock", "kernel-build.log"})
