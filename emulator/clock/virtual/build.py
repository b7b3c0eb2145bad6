"""Builds the virtual clock's kernel, as an ordinary user: unpack, edit, configure, compile, try.

All of it happens in a scratch folder of the cache; what is done is renamed into its place.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from emulator.caching import cache_folder
from emulator.clock.virtual import kernel, recipe, source, toolchain, trial, workshop
from emulator.clock.virtual.kernel import BuiltKernel
from emulator.clock.virtual.source import Source
from emulator.clock.virtual.workshop import Workshop
from emulator.run.ending import orderly, standing
from emulator.run.progress import Progress
from topologies.errors import MachineError

_DOWNLOAD_BYTES = 400_000_000
"""Room that a downloaded package and the tarball in it take, bytes."""
_STEP = re.compile(r"  [A-Z]+ ")
_MB = 1_000_000


def build(
    named: Path | None, progress: Progress, force: bool = False
) -> tuple[BuiltKernel, bool]:  # fmt: skip
    """The kernel of the present recipe, built unless it is there.

    Args:
        named: source that the user names: an unpacked tree or a tarball; None = find one.
        progress: what the user sees.
        force: build it although it is there.

    Returns:
        The kernel, and whether it was built just now.

    Raises:
        SpecError: what the user named is no kernel source.
        MachineError: something is missing, the source does not fit, or the build failed.
    """
    try:
        with orderly(), workshop.alone(progress.note):
            there = None if force else _there(named)
            return (there, False) if there else (_build(named, progress), True)
    except OSError as error:
        text = error.strerror or str(error)
        if any(sign in text for sign in workshop.FULL):
            raise workshop.disk_full(cache_folder()) from error
        raise MachineError(f"the kernel cannot be built: {error}") from error
    finally:
        progress.done()


def _there(named: Path | None) -> BuiltKernel | None:
    """A kernel that makes building needless: of the source that is named, else of any."""
    if named is None:
        return kernel.find()
    return kernel.read(kernel.folder_of(_hash(source.digest(source.named(named)))))


def _hash(source_digest: str) -> str:
    parts = (recipe.digest(), source_digest, recipe.ARCHITECTURE)
    return hashlib.sha256(" ".join(parts).encode()).hexdigest()[:16]


def _build(named: Path | None, progress: Progress) -> BuiltKernel:
    begin = time.monotonic()
    toolchain.require()
    chosen = source.named(named) if named else source.choose()
    cache = cache_folder()
    _check_folder(cache, recipe.SCRATCH_BYTES + _DOWNLOAD_BYTES * (chosen.kind == source.PACKAGE))
    with standing(Workshop(cache)) as shop:
        tree = shop.folder / "source"
        tree.mkdir()
        digest = _get(chosen, tree, shop, progress)
        version = _prepare(tree, chosen.place)
        if not recipe.is_tested(version):
            progress.note(f"Linux {version} was never tried; {recipe.TESTED_VERSION} was")
        _configure(tree, shop)
        _compile(tree, shop, progress)
        done = _describe(tree, version, chosen.place, _hash(digest), begin)
        progress.note("starting it for a moment")
        trial.require(done.path, version, shop.folder)
        return _install(done, shop)


def _check_folder(cache: Path, needed_bytes: int) -> None:
    """Room, and a name that the kernel's Makefiles can cope with."""
    hint = "name another folder in FABRICLAB_CACHE"
    if re.search(r"[\s:]", str(cache)):
        raise MachineError(f"the kernel cannot be built in {cache}: blanks or colons; {hint}")
    free = shutil.disk_usage(cache).free
    if free < needed_bytes:
        need = f"{needed_bytes // _MB:,} MB for the build"
        raise MachineError(f"{cache} needs {need}, {free // _MB:,} MB are free; {hint}")


def _get(chosen: Source, tree: Path, shop: Workshop, progress: Progress) -> str:
    """Fills the folder with the source; returns the source's digest."""
    if chosen.kind == source.PACKAGE:
        chosen = _download(chosen.place, shop, progress)
    digest = source.digest(chosen)
    progress.note(f"unpacking {chosen.place}")
    if chosen.kind == source.TREE:
        source.copy_tree(Path(chosen.place), tree)
    else:
        shop.run("unpacking the source", source.unpack_command(chosen.place, tree))
    if not source.is_tree(tree):
        raise MachineError(f"{chosen.place} is no kernel source; {source.WAY_OUT}")
    return digest


def _download(package: str, shop: Workshop, progress: Progress) -> Source:
    """The tarball in a package of the distribution, without installing it."""
    progress.note(f"downloading {package} (about 150 MB)")
    folder = shop.folder / "download"
    folder.mkdir()
    try:
        shop.run("downloading the source", ["apt-get", "-q", "download", package], folder)
        (archive,) = folder.glob("*.deb")
        shop.run("unpacking the package", ["dpkg-deb", "-x", str(archive), str(folder)])
    except (MachineError, ValueError) as error:
        raise MachineError(f"{error}; {source.WAY_OUT}") from error
    archive.unlink()
    found = source.installed(folder / "usr" / "src")
    if not found:
        raise MachineError(f"there is no source in the package {package}; {source.WAY_OUT}")
    return found[0]


def _prepare(tree: Path, place: str) -> str:
    """Makes the edits; returns the version."""
    version = recipe.version_of(_text(tree / "Makefile"))
    for file, edits in recipe.edited_files().items():
        try:
            text = recipe.edited(_text(tree / file), edits)
        except (OSError, recipe.EditError) as error:
            raise MachineError(
                f"the source of Linux {version or '?'} in {place} is not supported: {file}: "
                f"{error}; {recipe.TESTED_VERSION} was tested: {source.WAY_OUT}"
            ) from error
        (tree / file).write_text(text, encoding="utf-8", errors="surrogateescape")
    return version


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="surrogateescape")


def _make(target: str) -> list[str]:
    jobs = len(os.sched_getaffinity(0))
    return ["make", f"-j{jobs}", "ARCH=um", *recipe.MAKE_VARIABLES, target]


def _configure(tree: Path, shop: Workshop) -> None:
    wanted = shop.folder / "wanted.config"
    wanted.write_text(recipe.fragment())
    env = {**recipe.BUILD_ENVIRONMENT, "KCONFIG_ALLCONFIG": str(wanted)}
    shop.run("configuring the kernel", _make("allnoconfig"), tree, env)
    dropped = recipe.dropped(_text(tree / ".config"))
    if dropped:
        raise MachineError(
            f"this kernel source does not know or refuses {', '.join(dropped)}; {source.WAY_OUT}"
        )


def _compile(tree: Path, shop: Workshop, progress: Progress) -> None:
    progress.note(f"compiling; a minute or two on several processors (log: {shop.log})")
    env = dict(recipe.BUILD_ENVIRONMENT)
    shop.run("compiling the kernel", _make("linux"), tree, env, _counter(progress))


def _counter(progress: Progress) -> Callable[[str], None]:
    """Turns the lines of a build into progress."""
    steps = 0

    def count(line: str) -> None:
        nonlocal steps
        if _STEP.match(line):
            steps += 1
            text = f"compiled, {steps} of about {recipe.COMPILED_STEPS:,} steps"
            progress.update(min(0.99, steps / recipe.COMPILED_STEPS), text)

    return count


def _describe(tree: Path, version: str, place: str, digest: str, begin: float) -> BuiltKernel:
    """The kernel and its description, in a folder of their own."""
    folder = tree.parent / "done"
    folder.mkdir()
    program = (tree / kernel.PROGRAM).rename(folder / kernel.PROGRAM)
    content = program.read_bytes()
    built = BuiltKernel(
        path=program,
        version=version,
        hash=digest,
        recipe=recipe.digest(),
        source=place,
        compiler=toolchain.compiler(),
        sha256=hashlib.sha256(content).hexdigest(),
        built=datetime.now(UTC).isoformat(timespec="seconds"),
        seconds=round(time.monotonic() - begin, 1),
        size_bytes=len(content),
    )
    (folder / kernel.DESCRIPTION).write_text(kernel.to_text(built), encoding="utf-8")
    return built


def _install(done: BuiltKernel, shop: Workshop) -> BuiltKernel:
    """Renames it into its place; what it replaces goes with the scratch folder."""
    target = kernel.folder_of(done.hash)
    if target.exists():
        target.rename(shop.folder / "replaced")
    done.path.parent.rename(target)
    for other in kernel.all_built():
        if other.recipe == done.recipe and other.hash != done.hash:
            kernel.discard(other.path.parent)
    installed = kernel.read(target)
    if installed is None:
        raise MachineError(f"{target} was removed while it was made; build it again")
    return installed
