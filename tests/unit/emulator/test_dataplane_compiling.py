"""Compiling the eBPF program: once per content, with an error that helps."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from emulator.dataplane import compiling
from topologies.errors import MachineError


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder."""
    monkeypatch.setenv("FABRICLAB_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small program in place of the real one."""
    file = tmp_path / "small.bpf.c"
    file.write_text("int answer(void) { return 42; }\n")
    monkeypatch.setattr(compiling, "SOURCE", file)
    return file


needs_clang = pytest.mark.skipif(shutil.which("clang") is None, reason="needs clang")


@needs_clang
def test_the_program_is_compiled_once(
    cache: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second time it comes from the cache, without a compiler; no scratch file is left."""
    first = compiling.object_file()
    assert first.read_bytes()[:4] == b"\x7fELF"
    monkeypatch.setattr(compiling, "compiler", lambda: pytest.fail("compiled again"))
    assert compiling.object_file() == first
    assert [path.name for path in cache.iterdir()] == [first.name]


@needs_clang
def test_another_content_is_another_object(cache: Path, source: Path) -> None:
    """The old one stays for whoever still uses it."""
    first = compiling.object_file()
    source.write_text("int answer(void) { return 43; }\n")
    second = compiling.object_file()
    assert second != first
    assert first.exists()
    assert second.exists()


@needs_clang
def test_a_header_is_part_of_the_content(cache: Path, source: Path) -> None:
    """A change in what the program includes makes another object."""
    header = source.with_name("answer.h")
    source.write_text('#include "answer.h"\nint answer(void) { return ANSWER; }\n')
    header.write_text("#define ANSWER 42\n")
    first = compiling.object_file()
    header.write_text("#define ANSWER 43\n")
    assert compiling.object_file() != first


@needs_clang
@pytest.mark.parametrize("text", ["int answer(void) { return x; }", "int f(void) { int unused; }"])
def test_what_clang_refuses_is_told(cache: Path, source: Path, text: str) -> None:
    """Warnings are errors; nothing is left in the cache."""
    source.write_text(text)
    with pytest.raises(MachineError, match=r"clang refused small\.bpf\.c: .*(error|warning)"):
        compiling.object_file()
    assert list(cache.iterdir()) == []


@needs_clang
def test_the_real_program_compiles(cache: Path) -> None:
    """Without a warning, for the machine at hand."""
    if not Path("/usr/include/bpf/bpf_helpers.h").exists():
        pytest.skip("needs libbpf's headers")
    assert compiling.object_file().stat().st_size > 1_000


def test_without_clang_the_way_out_is_told(
    cache: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What to install."""
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(MachineError, match="apt install clang libbpf-dev"):
        compiling.object_file()
