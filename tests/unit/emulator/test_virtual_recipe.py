"""What the virtual clock's kernel is made of: its configuration and the edits of its source."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from emulator.clock.virtual import recipe
from emulator.clock.virtual.recipe import Edit
from tests.fakes.kernel_source import VERSION, write_tree

EDIT = Edit("a.c", "old()", "new()", "because")


def test_the_fragment_says_each_option_once_with_its_purpose() -> None:
    """The kernel's tool would silently take the last of two."""
    lines = recipe.fragment().splitlines()
    names = [line.partition("=")[0] for line in lines if line.startswith("CONFIG_")]
    assert len(names) == len(set(names)) == len(recipe.options())
    assert [line[2:] for line in lines if line.startswith("# ")] == [
        group.why for group in recipe.OPTIONS
    ]


@pytest.mark.parametrize(
    "line",
    ["CONFIG_UML_TIME_TRAVEL_SUPPORT=y", "CONFIG_OPENVSWITCH=y", "CONFIG_UML_RANDOM=n",
     "CONFIG_MODULES=n", "CONFIG_PANIC_ON_OOPS=y", "CONFIG_KERNEL_STACK_ORDER=4"],
)  # fmt: skip
def test_the_fragment_has_what_runs_cannot_do_without(line: str) -> None:
    """Time travel, switches, no randomness from outside, an end at the first fault."""
    assert line in recipe.fragment().splitlines()


def test_what_the_kernel_s_tool_takes_is_compared_with_what_was_asked() -> None:
    """Missing, other and wrongly set options are named; an option that is off may be absent."""
    wanted = {"A": "y", "B": "y", "C": "n", "D": "n", "E": "4", "F": '"x"'}
    taken = 'CONFIG_A=y\n# CONFIG_B is not set\nCONFIG_C=y\nCONFIG_E=2\nCONFIG_F="x"\n'
    assert recipe.dropped(taken, wanted) == ["CONFIG_B=y", "CONFIG_C=n", "CONFIG_E=4"]
    assert recipe.dropped(recipe.fragment()) == []


def test_an_edit_is_made() -> None:
    """Nothing else changes, and several edits of one file are made in turn."""
    second = Edit("a.c", "new();", "newer();", "because")
    assert recipe.edited("x\nold();\ny\n", [EDIT]) == "x\nnew();\ny\n"
    assert recipe.edited("x\nold();\ny\n", [EDIT, second]) == "x\nnewer();\ny\n"


@pytest.mark.parametrize(
    ("text", "reason"), [("nothing\n", "is not there"), ("old(); old();\n", "is there 2 times")]
)
def test_an_edit_that_does_not_fit_is_refused(text: str, reason: str) -> None:
    """Its text must be there exactly once: guessing would make a kernel that lies about time."""
    with pytest.raises(recipe.EditError, match=rf"'old\(\)' {reason}"):
        recipe.edited(text, [EDIT])


def test_every_edit_says_why_and_changes_something(tmp_path: Path) -> None:
    """All of them fit the source that they were made for, in their order."""
    tree = write_tree(tmp_path)
    for file, edits in recipe.edited_files().items():
        text = (tree / file).read_text()
        changed = recipe.edited(text, edits)
        for edit in edits:
            assert edit.why
            assert edit.put.strip() in changed
        assert changed != text


def test_the_seed_function_is_there_before_it_is_called(tmp_path: Path) -> None:
    """It stands in front of the function that calls it, and knows the parameter's name."""
    file = "arch/um/kernel/um_arch.c"
    text = recipe.edited((write_tree(tmp_path) / file).read_text(), recipe.edited_files()[file])
    assert text.index("static bool __init fabriclab_boot_seed(") < text.index("setup_arch(")
    assert f'"{recipe.SEED_PARAMETER}="' in text
    assert "os_getrandom" not in text


@pytest.mark.parametrize(
    ("makefile", "version"),
    [("VERSION = 6\nPATCHLEVEL = 12\nSUBLEVEL = 117\nEXTRAVERSION =\nNAME = Owl\n", "6.12.117"),
     ("VERSION = 7\nPATCHLEVEL = 0\nSUBLEVEL = 0\nEXTRAVERSION = -rc3\n", "7.0.0-rc3"),
     ("all:\n\techo\n", "")],
)  # fmt: skip
def test_the_version_is_read_from_the_makefile(makefile: str, version: str) -> None:
    """As the kernel itself puts it together; empty where there is none."""
    assert recipe.version_of(makefile) == version


@pytest.mark.parametrize(
    ("version", "tested"),
    [(VERSION, True), (recipe.TESTED_SERIES, True), ("6.12.3", True), ("6.1", False),
     ("6.120", False), ("6.8.0", False), ("", False)],
)  # fmt: skip
def test_the_tested_series_is_known(version: str, tested: bool) -> None:
    """Point releases belong to it, versions that only begin alike do not."""
    assert recipe.is_tested(version) is tested


@pytest.mark.parametrize("name", ["OPTIONS", "EDITS", "MAKE_VARIABLES", "BUILD_ENVIRONMENT"])
def test_any_change_of_the_recipe_is_another_recipe(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kernel of an earlier release is never taken for one of this."""
    before = recipe.digest()
    assert re.fullmatch(r"[0-9a-f]{16}", before)
    value = getattr(recipe, name)
    monkeypatch.setattr(recipe, name, {} if isinstance(value, dict) else value[1:])
    assert recipe.digest() != before


def left_out(path: str) -> bool:
    """Whether a path is not unpacked; tar's patterns and fnmatch's mean the same here."""
    return any(fnmatchcase(f"linux/{path}", pattern) for pattern in recipe.NOT_UNPACKED)


@pytest.mark.parametrize(
    "path",
    ["drivers/net/veth.c", "drivers/net/ifb.c", "drivers/char/random.c", "drivers/base/core.c",
     "drivers/tty/tty_io.c", "drivers/gpu/drm/Kconfig", "drivers/scsi/Makefile", "sound/Kconfig",
     "arch/um/kernel/time.c", "arch/x86/um/user-offsets.c", "arch/arm/Kconfig",
     "tools/include/linux/types.h", "include/linux/skbuff.h", "fs/hostfs/hostfs_kern.c",
     "net/openvswitch/datapath.c", "Documentation/Makefile", "scripts/kconfig/conf.c"],
)  # fmt: skip
def test_what_a_build_reads_is_unpacked(path: str) -> None:
    """Sources of what is compiled, and all files that the configuration refers to."""
    assert not left_out(path)


@pytest.mark.parametrize(
    "path",
    ["drivers/gpu/drm/amd/amdgpu/amdgpu_device.c", "drivers/net/ethernet/intel/e1000/e1000_main.c",
     "drivers/scsi/sd.h", "arch/arm64/boot/dts/a/b.dtsi", "arch/arm64/kernel/head.S",
     "sound/core/pcm.c", "tools/testing/selftests/net/a.sh", "tools/perf/builtin-top.c",
     "Documentation/admin-guide/index.rst"],
)  # fmt: skip
def test_what_no_kernel_of_ours_is_made_of_stays_packed(path: str) -> None:
    """It would take five times the room."""
    assert left_out(path)
