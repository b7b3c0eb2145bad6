"""Building the virtual clock's kernel: what is kept, what is said when it fails, what stays behind.

The source is a few lines and ``make`` a script; the rest is as on a real machine.
"""

from __future__ import annotations

import json
import os
import shutil
from collections import namedtuple
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest

from emulator.clock.virtual import kernel, recipe, source, workshop
from emulator.clock.virtual.build import build
from emulator.clock.virtual.kernel import BuiltKernel
from emulator.run.progress import Progress
from tests.fakes.kernel_source import VERSION, Toolbox, write_archive, write_tree
from topologies.errors import MachineError


@pytest.fixture
def box(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Toolbox:
    """A machine with all tools and no source."""
    return Toolbox(tmp_path, monkeypatch)


def built(named: Path | None = None, force: bool = False) -> tuple[BuiltKernel, bool]:
    """A build that nobody watches."""
    return build(named, Progress(quiet=True), force)


def test_a_kernel_is_built_of_the_installed_source(box: Toolbox) -> None:
    """The program and its description lie in one folder; nothing else is left."""
    archive = box.install()
    done, is_new = built()
    assert is_new
    assert (done.version, done.source) == (VERSION, str(archive))
    assert done.recipe == recipe.digest()
    assert done.compiler == "gcc (Fake) 1.0"
    assert box.left() == [f"kernel-{done.hash}"]
    assert sorted(path.name for path in done.path.parent.iterdir()) == ["kernel.json", "linux"]
    assert kernel.require() == kernel.find() == done
    assert box.cache.stat().st_mode & 0o777 == done.path.parent.stat().st_mode & 0o777


def test_the_edits_are_made_before_anything_is_compiled(box: Toolbox, tmp_path: Path) -> None:
    """And the configuration is ours, the kernel's words about its build alike everywhere."""
    seen = tmp_path / "seen"
    record = f"cat arch/um/kernel/*.c drivers/char/random.c .config > {seen}"
    env = f'echo "$KBUILD_BUILD_TIMESTAMP $KBUILD_BUILD_USER" >> {seen}'
    box.make(compiling=f"{record}; {env}; cp {tmp_path}/program linux")
    built(box.tree)
    text = seen.read_text()
    assert "fabriclab_boot_seed(rng_seed, sizeof(rng_seed))" in text
    assert f"time_travel_update_time_rel({recipe.CLOCK_READ_NS});" in text
    assert "_mix_pool_bytes(command_line" not in text
    assert "CONFIG_UML_TIME_TRAVEL_SUPPORT=y" in text
    assert text.endswith("Thu Jan  1 00:00:00 UTC 1970 fabriclab\n")
    assert "os_getrandom" in (box.tree / "arch/um/kernel/um_arch.c").read_text()


def test_settings_of_the_user_for_compilers_do_not_get_in(
    box: Toolbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kernel is the same whatever stands in the environment."""
    for name in ("CC", "ARCH", "MAKEFLAGS", "KCONFIG_CONFIG", "CFLAGS"):
        monkeypatch.setenv(name, "mine")
    seen = tmp_path / "seen"
    box.make(compiling=f"echo [$CC$ARCH$MAKEFLAGS$CFLAGS] > {seen}; cp {tmp_path}/program linux")
    built(box.tree)
    assert seen.read_text() == "[]\n"


def test_what_is_there_is_not_built_again(box: Toolbox) -> None:
    """Not even when tools or source are gone meanwhile; other source or force build anew."""
    archive = box.install()
    first, _ = built()
    assert built(archive) == (first, False)
    box.make(compiling="exit 1")
    assert built() == (first, False)
    with pytest.raises(MachineError, match="compiling the kernel failed"):
        built(force=True)
    assert kernel.find() == first
    box.take("make")
    archive.unlink()
    assert built() == (first, False)


def test_force_replaces_it(box: Toolbox) -> None:
    """By one of the same name."""
    box.install()
    first, _ = built()
    box.kernel(f"{VERSION}-fabriclab-again")
    second, is_new = built(force=True)
    assert is_new
    assert second.path == first.path
    assert second.sha256 != first.sha256
    assert box.left() == [first.path.parent.name]


def test_another_source_takes_the_place_of_the_first(box: Toolbox, tmp_path: Path) -> None:
    """There is one kernel for each recipe; those of other recipes stay."""
    first, _ = built(box.tree)
    foreign = box.cache / "kernel-0123456789abcdef"
    shutil.copytree(first.path.parent, foreign)
    description = kernel.to_text(replace(first, recipe="older", hash="0123456789abcdef"))
    (foreign / kernel.DESCRIPTION).write_text(description)
    tree = write_tree(tmp_path / "other", "6.12.200")
    box.kernel("6.12.200-fabriclab")
    second, is_new = built(tree)
    assert is_new
    assert second.version == "6.12.200"
    assert kernel.find() == second
    assert box.left() == sorted([foreign.name, second.path.parent.name])


def test_a_source_is_downloaded_when_none_is_installed(
    box: Toolbox, capsys: pytest.CaptureFixture[str]
) -> None:
    """As an ordinary user can; neither package nor tarball stays."""
    box.archive("linux-source-6.12")
    done, _ = build(None, Progress())
    assert done.source == "linux-source-6.12"
    assert box.left() == [done.path.parent.name]
    assert "downloading linux-source-6.12" in capsys.readouterr().err


def test_a_download_that_fails_says_so_with_the_way_out(box: Toolbox) -> None:
    """No network, or the package is gone."""
    box.archive("linux-source-6.12")
    box.put("apt-get", "#!/bin/sh\necho 'E: Unable to fetch some archives'\nexit 100\n")
    message = r"downloading the source failed: E: Unable to fetch.*; apt install linux-source-6.12"
    with pytest.raises(MachineError, match=message):
        built()
    assert box.left() == []


def test_all_that_is_missing_is_named_at_once(box: Toolbox) -> None:
    """With one line that brings it, before anything is unpacked."""
    box.install()
    box.take("flex", "bc", "xz")
    message = r"lacks flex, bc, xz; apt install flex bc xz-utils$"
    with pytest.raises(MachineError, match=message):
        built()
    assert box.left() == []


def test_a_compiler_without_headers_is_not_enough(box: Toolbox) -> None:
    """The kernel's own tools are programs of the machine."""
    box.put("gcc", "#!/bin/sh\nexit 1\n")
    with pytest.raises(MachineError, match=r"lacks C library headers; apt install libc6-dev$"):
        built(box.tree)


def test_other_processors_are_refused(box: Toolbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """User-Mode-Linux exists for x86-64 only."""
    uname = os.uname_result(("Linux", "here", "1", "1", "aarch64"))
    monkeypatch.setattr(os, "uname", lambda: uname)
    with pytest.raises(MachineError, match=r"x86_64 only, this machine is aarch64; use clock"):
        built(box.tree)


def test_a_source_that_the_edits_do_not_fit(box: Toolbox) -> None:
    """Which version, which file, what was looked for, what was tested; no scratch is left."""
    (box.tree / "arch/x86/um/user-offsets.c").write_text("DEFINE_LONGS(HOST_FP_SIZE, 9);\n")
    with pytest.raises(MachineError) as caught:
        built(box.tree)
    text = str(caught.value)
    assert f"source of Linux {VERSION} in {box.tree} is not supported" in text
    assert "arch/x86/um/user-offsets.c: 'DEFINE_LONGS(HOST_FP_SIZE, 2696);' is not there" in text
    assert f"{recipe.TESTED_VERSION} was tested" in text
    assert source.WAY_OUT in text
    assert box.left() == []


def test_another_version_that_fits_is_built_with_a_warning(
    box: Toolbox, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The user hears that nobody tried it."""
    box.kernel("6.8.12-fabriclab")
    done, _ = build(write_tree(tmp_path / "older", "6.8.12"), Progress())
    assert done.version == "6.8.12"
    assert f"Linux 6.8.12 was never tried; {recipe.TESTED_VERSION} was" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["notes.tar", "linux-source-6.12.tar.xz"])
def test_a_tarball_of_something_else(box: Toolbox, tmp_path: Path, name: str) -> None:
    """Whether it is no tarball at all or one of another program."""
    (tmp_path / "else" / "src").mkdir(parents=True)
    (tmp_path / "else" / "src" / "a.c").write_text("int a;")
    path = tmp_path / name
    if name.endswith(".xz"):
        write_archive(tmp_path, tmp_path / "else")
    else:
        path.write_text("my notes\n" * 200)
    reason = "is no kernel source" if name.endswith(".xz") else "unpacking the source failed: tar"
    with pytest.raises(MachineError, match=reason):
        built(path)
    assert box.left() == []


def test_options_that_the_source_does_not_know_are_listed(box: Toolbox) -> None:
    """A kernel without them would fail in the middle of a run."""
    box.make(configure="echo CONFIG_NET=y > .config; echo CONFIG_MODULES=y >> .config")
    with pytest.raises(MachineError) as caught:
        built(box.tree)
    text = str(caught.value)
    assert "does not know or refuses" in text
    assert "CONFIG_UML_TIME_TRAVEL_SUPPORT=y" in text
    assert "CONFIG_MODULES=n" in text
    assert "CONFIG_NET=y" not in text


@pytest.mark.parametrize(
    ("printed", "shown"),
    [("  CC      a.o\na.c:3:1: error: expected ;\nmake: *** [a.o] Error 1", "a.c:3:1: error: exp"),
     ("a.c:9:10: fatal error: pty.h: No such file", "fatal error: pty.h"),
     ("make[2]: *** No rule to make target 'x.o'.  Stop.\nmake: *** Error 2", "No rule to make"),
     ("/bin/sh: 1: bc: not found\nsomething else", "bc: not found"),
     ("ld: a.o: undefined reference to `f'\ncollect2: bad", "undefined reference"),
     ("last words", "last words")],
)  # fmt: skip
def test_the_first_error_of_the_compiler_is_shown(box: Toolbox, printed: str, shown: str) -> None:
    """And where the whole log is, which stays; the scratch folder does not."""
    box.make(compiling=f"cat <<'END'\n{printed}\nEND\nexit 2")
    with pytest.raises(MachineError) as caught:
        built(box.tree)
    log = box.cache / workshop.LOG
    assert str(caught.value).startswith("compiling the kernel failed: ")
    assert shown in str(caught.value)
    assert str(caught.value).endswith(f"(all of it is in {log})")
    assert printed in log.read_text()
    assert box.left() == []


def test_a_disk_that_fills_up_is_named(box: Toolbox) -> None:
    """Whatever program noticed it; the room is free again afterwards."""
    full = "as: a.o: No space left on device"
    box.make(compiling=f"echo '{full}'; echo 'a.c: error: assembler failed'; exit 2")
    with pytest.raises(MachineError, match=r"the disk of .*cache is full; make room, or name"):
        built(box.tree)
    assert box.left() == []


def test_a_disk_that_fills_up_under_ourselves(
    box: Toolbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Copying the source, writing the log: the same message."""

    def copy(*_arguments: object, **_named: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(source, "copy_tree", copy)
    with pytest.raises(MachineError, match="is full"):
        built(box.tree)
    assert box.left() == []


def test_a_disk_without_room_is_refused_before_anything_is_unpacked(
    box: Toolbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the room that is needed and the room that there is."""
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: usage(2, 1, 50_000_000))
    with pytest.raises(MachineError, match=r"needs [0-9,]+ MB for the build, 50 MB are free"):
        built(box.tree)


def test_a_folder_that_makefiles_cannot_cope_with(
    box: Toolbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blanks and colons; the error says what to change."""
    monkeypatch.setenv("FABRICLAB_CACHE", str(tmp_path / "my cache"))
    with pytest.raises(MachineError, match=r"my cache: blanks or colons; name another folder in"):
        built(box.tree)


@pytest.mark.parametrize(
    ("version", "boots", "message"),
    [("5.4.0", "exit 0", "does not start here: 5.4.0"),
     (f"{VERSION}-fabriclab", "echo 'ptrace set fp regs failed'; exit 1",
      "runs no program here: ptrace set fp regs failed"),
     (f"{VERSION}-fabriclab", "exit 3", "runs no program here: no output")],
)  # fmt: skip
def test_a_kernel_that_does_not_work_here_is_not_kept(
    box: Toolbox, version: str, boots: str, message: str
) -> None:
    """It is started once before a run relies on it."""
    box.kernel(version, boots)
    with pytest.raises(MachineError, match=message):
        built(box.tree)
    assert kernel.find() is None
    assert box.left() == []


def test_progress_counts_what_is_compiled(
    box: Toolbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other lines do not count, and more steps than expected do not make it more than done."""
    monkeypatch.setattr(recipe, "COMPILED_STEPS", 2)
    monkeypatch.setattr(Progress, "_next_s", property(lambda _: 0.0, lambda *_: None), False)
    lines = "  CC      a.o\\nwarning\\n  AR      b.a\\n  LD      c\\n  LINK linux"
    box.make(compiling=f"printf '{lines}\\n'; cp {tmp_path}/program linux")
    stream = StringIO()
    build(box.tree, Progress(stream))
    shown = [line.strip() for line in stream.getvalue().splitlines() if "steps" in line]
    assert shown == [f"{share}% compiled, {n} of about 2 steps"
                     for n, share in ((1, 50), (2, 99), (3, 99), (4, 99))]  # fmt: skip


def test_a_cache_that_cannot_be_written(box: Toolbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says which, and how to name another."""

    def refuse(_path: Path, *_arguments: object, **_named: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(MachineError, match=r"kernel.lock cannot be written \(Permission denied\)"):
        built(box.tree)


@pytest.mark.parametrize("damage", ["no program", "not executable", "cut short", "no description",
                                    "garbled", "other fields", "other recipe"])  # fmt: skip
def test_a_damaged_kernel_is_none(box: Toolbox, damage: str) -> None:
    """It is as if it was not built, and the next build makes it good."""
    done, _ = built(box.tree)
    description = done.path.parent / kernel.DESCRIPTION
    fields = json.loads(description.read_text())
    spoil = {
        "no program": done.path.unlink,
        "not executable": lambda: done.path.chmod(0o644),
        "cut short": lambda: done.path.write_text("#!"),
        "no description": description.unlink,
        "garbled": lambda: description.write_text("{"),
        "other fields": lambda: description.write_text(json.dumps({**fields, "more": 1})),
        "other recipe": lambda: description.write_text(json.dumps({**fields, "recipe": "old"})),
    }
    spoil[damage]()
    assert kernel.find() is None
    with pytest.raises(MachineError, match=r"kernel is not built; run: fabriclab kernel build"):
        kernel.require()
    if damage != "other recipe":
        assert built(box.tree)[1]
        assert kernel.find() is not None
