"""Finding the source of the virtual clock's kernel: named, installed, to be downloaded."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from emulator.clock.virtual import source
from emulator.clock.virtual.source import ARCHIVE, PACKAGE, TREE, Source
from tests.fakes.kernel_source import Toolbox, write_archive, write_tree
from topologies.errors import MachineError, SpecError


@pytest.fixture
def box(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Toolbox:
    """A machine with all tools and no source."""
    return Toolbox(tmp_path, monkeypatch)


def test_the_user_names_a_tree_or_a_tarball(box: Toolbox, tmp_path: Path) -> None:
    """Each is told by what it is, not by its name."""
    assert source.named(box.tree) == Source(TREE, str(box.tree))
    archive = write_archive(tmp_path, box.tree)
    assert source.named(archive) == Source(ARCHIVE, str(archive))


@pytest.mark.parametrize(
    ("name", "rule"), [("nowhere", "does not exist"), ("bin", "is no unpacked kernel source")]
)
def test_anything_else_is_refused(box: Toolbox, name: str, rule: str) -> None:
    """With the value, and what to name instead."""
    with pytest.raises(SpecError, match=rf"--source: .*{name}' {rule}; apt install linux-source-6"):
        source.named(box.bin.parent / name)


def test_an_installed_package_of_the_tested_series_comes_first(box: Toolbox) -> None:
    """Before newer ones, and before anything that would have to be downloaded."""
    box.archive("linux-source-6.12")
    box.install(name="linux-source-6.15")
    expected = box.install()
    assert source.choose() == Source(ARCHIVE, str(expected))


def test_the_tested_series_is_downloaded_rather_than_another_used(box: Toolbox) -> None:
    """What is installed need not fit."""
    box.install(name="linux-source-6.1")
    box.archive("linux-source-6.12")
    assert source.choose() == Source(PACKAGE, "linux-source-6.12")


def test_of_other_versions_the_newest_that_is_installed_is_tried(box: Toolbox) -> None:
    """Versions are compared as numbers."""
    box.archive("linux-source-6.20")
    for name in ("linux-source-6.9", "linux-source-6.11.0", "linux-source-5.15"):
        box.install(name=name)
    assert source.choose().series == "6.11.0"


def test_other_versions_are_downloaded_when_nothing_is_installed(box: Toolbox) -> None:
    """Ubuntu has no package of the tested series; variants such as -rt are left alone."""
    box.archive("linux-source-6.8.0")
    assert source.choose() == Source(PACKAGE, "linux-source-6.8.0")


def test_no_source_at_all(box: Toolbox) -> None:
    """The error says both ways out."""
    with pytest.raises(MachineError, match=r"no kernel source.*apt install linux.*--source"):
        source.choose()


def test_a_package_that_unpacks_into_a_folder_is_found(box: Toolbox) -> None:
    """As Ubuntu's do; a link beside it that leads nowhere is not taken."""
    expected = write_archive(box.system / "linux-source-6.8.0", box.tree, "linux-source-6.8.0")
    (box.system / "linux-source-6.9.0.tar.bz2").symlink_to("nowhere")
    assert source.installed(box.system) == [Source(ARCHIVE, str(expected))]


def test_the_digest_of_a_tarball_is_that_of_its_content(box: Toolbox, tmp_path: Path) -> None:
    """Wherever it lies."""
    first, second = tmp_path / "a.tar", tmp_path / "b.tar"
    first.write_bytes(b"content")
    second.write_bytes(b"content")
    digests = [source.digest(source.named(path)) for path in (first, second)]
    assert digests[0] == digests[1]
    second.write_bytes(b"other")
    assert source.digest(source.named(second)) != digests[0]


def test_the_digest_of_a_tree_changes_with_any_file(box: Toolbox) -> None:
    """A file that was edited makes it another source, whatever the version says."""
    tree = source.named(box.tree)
    before = source.digest(tree)
    assert source.digest(tree) == before
    file = box.tree / "arch/um/kernel/time.c"
    file.write_text(file.read_text() + "\n")
    changed = source.digest(tree)
    assert changed != before
    os.utime(file, ns=(0, 0))
    assert source.digest(tree) not in (before, changed)


def test_a_tree_is_copied_without_what_builds_left_in_it(tmp_path: Path) -> None:
    """Nor what is not needed; links stay links, and the user's tree stays as it is."""
    tree = write_tree(tmp_path / "tree")
    made = ("init/main.o", "init/.main.o.cmd", ".config", "vmlinux", "linux",
            "include/generated/autoconf.h", "drivers/gpu/drm/a.c", ".git/HEAD")  # fmt: skip
    kept = ("include/linux/a.h", "arch/um/include/linux/b.h", "drivers/gpu/drm/Kconfig")
    for name in (*made, *kept):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text("x")
    (tree / "link").symlink_to("Makefile")
    copy = tmp_path / "copy"
    source.copy_tree(tree, copy)
    assert [name for name in made if (copy / name).exists()] == []
    assert all((copy / name).exists() for name in (*kept, "arch/um/kernel/time.c"))
    assert (copy / "link").is_symlink()
    assert (tree / "init/main.o").exists()
