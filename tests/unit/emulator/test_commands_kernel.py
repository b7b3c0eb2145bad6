"""``fabriclab kernel``: build, status, remove, as a user sees them."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from emulator import remarks
from emulator.cli import main
from emulator.clock.virtual import kernel, workshop
from emulator.commands.kernel import age
from emulator.doctor import OK, REMARK
from tests.fakes.kernel_source import VERSION, Toolbox

Output = pytest.CaptureFixture[str]


@pytest.fixture
def box(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Toolbox:
    """A machine with all tools and no source."""
    return Toolbox(tmp_path, monkeypatch)


def rows(text: str) -> dict[str, str]:
    """First word(s) of a line -> the rest; columns are two blanks apart at least."""
    cells = (line.strip().split("  ", 1) for line in text.splitlines() if "  " in line.strip())
    return {first: rest.strip() for first, rest in cells}


def test_build_says_what_it_made(box: Toolbox, capsys: Output) -> None:
    """And the second time that it is there; code 0 both times."""
    assert main(["kernel", "build", "--source", str(box.tree)]) == 0
    path = kernel.require().path
    shown = capsys.readouterr()
    assert shown.out.startswith(f"built Linux {VERSION} in ")
    assert shown.out.endswith(f": {path}\n")
    assert "unpacking" in shown.err
    assert main(["kernel", "build"]) == 0
    shown = capsys.readouterr()
    assert shown.out == f"is built already (--force builds it again): {path}\n"
    assert shown.err == ""


def test_quiet_prints_the_result_only(box: Toolbox, capsys: Output) -> None:
    """For scripts."""
    assert main(["kernel", "build", "--quiet", "--force", "--source", str(box.tree)]) == 0
    shown = capsys.readouterr()
    assert (len(shown.out.splitlines()), shown.err) == (1, "")


def test_a_failure_is_one_line_and_code_2(box: Toolbox, capsys: Output) -> None:
    """On standard error."""
    assert main(["kernel", "build", "--source", "nowhere"]) == 2
    shown = capsys.readouterr()
    assert shown.err.startswith("fabriclab: error: --source: 'nowhere' does not exist; ")
    assert (len(shown.err.splitlines()), shown.out) == (1, "")


def test_status_before_and_after(box: Toolbox, capsys: Output) -> None:
    """Code 1 with what to do, then code 0 with what it is; and what building would take."""
    archive = box.install()
    assert main(["kernel", "status"]) == 1
    shown = rows(capsys.readouterr().out)
    assert shown["kernel"] == "not built; run: fabriclab kernel build"
    assert shown["source"] == f"installed: {archive}"
    main(["kernel", "build", "--quiet"])
    capsys.readouterr()
    assert main(["kernel", "status"]) == 0
    shown = rows(capsys.readouterr().out)
    built = kernel.require()
    assert shown["kernel"] == "built"
    assert shown["path"] == str(built.path)
    assert shown["version"] == f"Linux {VERSION}, from {archive}"
    assert shown["built"].startswith("just now in ")
    assert shown["sha256"] == built.sha256
    assert "not used" not in shown


def test_status_says_what_is_missing_to_build(box: Toolbox, capsys: Output) -> None:
    """Tools, or a source; a kernel that is built works all the same."""
    assert main(["kernel", "status"]) == 1
    assert rows(capsys.readouterr().out)["to build"].startswith("compiler and tools are there")
    main(["kernel", "build", "--quiet", "--source", str(box.tree)])
    box.take("flex", "bison")
    capsys.readouterr()
    assert main(["kernel", "status"]) == 0
    shown = rows(capsys.readouterr().out)
    assert shown["to build"].endswith("lacks flex, bison; apt install flex bison")


def test_status_without_a_source_says_where_to_get_one(box: Toolbox, capsys: Output) -> None:
    """Or that it would be downloaded."""
    main(["kernel", "status"])
    assert rows(capsys.readouterr().out)["source"].startswith("no kernel source is installed")
    box.archive("linux-source-6.12")
    main(["kernel", "status"])
    assert rows(capsys.readouterr().out)["source"] == "to be downloaded: linux-source-6.12"


def test_remove_takes_all_of_it_away(box: Toolbox, capsys: Output) -> None:
    """Kernels of other releases, scratch folders of killed builds and the log as well."""
    main(["kernel", "build", "--quiet", "--source", str(box.tree)])
    built = kernel.require().path.parent
    others = [box.cache / name for name in ("kernel-0123456789abcdef", "building-x")]
    for folder in others:
        folder.mkdir()
    keep = box.cache / "mmu-x86_64.o"
    keep.touch()
    capsys.readouterr()
    assert main(["kernel", "remove"]) == 0
    gone = [built, *others, box.cache / workshop.LOG]
    shown = capsys.readouterr().out.splitlines()
    assert sorted(shown) == sorted(f"removed: {path}" for path in gone)
    assert not any(path.exists() for path in gone)
    assert keep.exists()
    assert main(["kernel", "remove"]) == 0
    assert capsys.readouterr().out == "nothing to remove\n"


def test_remove_is_refused_while_one_is_built(box: Toolbox, capsys: Output) -> None:
    """It would take the scratch folder away."""
    with workshop.alone(None):
        assert main(["kernel", "remove"]) == 2
    assert "another build of the kernel is under way (process" in capsys.readouterr().err


def test_an_unused_kernel_is_shown(box: Toolbox, capsys: Output) -> None:
    """So that nobody wonders what fills the cache."""
    folder = box.cache / "kernel-0123456789abcdef"
    folder.mkdir(parents=True)
    main(["kernel", "status"])
    assert rows(capsys.readouterr().out)["not used"].startswith(f"{folder}: of another release")


def test_doctor_has_a_line_on_it(box: Toolbox) -> None:
    """A remark while it is not built: runs with the live clock need none."""
    (finding,) = remarks._virtual_clock()
    assert (finding.what, finding.state) == ("virtual clock's kernel", REMARK)
    assert "fabriclab kernel build" in finding.detail
    main(["kernel", "build", "--quiet", "--source", str(box.tree)])
    (finding,) = remarks._virtual_clock()
    assert (finding.state, finding.detail) == (OK, f"built, Linux {VERSION}")


@pytest.mark.parametrize(
    ("built", "words"),
    [("2026-03-02T12:00:00+00:00", "just now"), ("2026-03-02T11:59:00+00:00", "1 minute ago"),
     ("2026-03-02T09:00:00+00:00", "3 hours ago"), ("2026-03-01T12:00:00+00:00", "1 day ago"),
     ("2025-03-02T12:00:00+00:00", "365 days ago"), ("2026-03-02T12:00:09+00:00", "just now")],
)  # fmt: skip
def test_ages_are_told_in_their_largest_unit(built: str, words: str) -> None:
    """A clock that was set back in between does no harm."""
    assert age(built, datetime(2026, 3, 2, 12, 0, 5, tzinfo=UTC)) == words
