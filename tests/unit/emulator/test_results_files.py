"""Writing that survives crashes and full disks."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import numpy as np
import pytest

from emulator.results.files import (
    RESERVE_BYTES,
    LineFile,
    SafeWriter,
    json_text,
    write_atomic,
)


def full_disk(*_: object) -> int:
    """What a write does when the disk is full."""
    raise OSError(errno.ENOSPC, "No space left on device")


def test_json_is_strict_and_readable() -> None:
    """NumPy numbers, tuples and paths become JSON; NaN and infinity become null."""
    value = {"a": np.int64(3), "b": (1, np.float64(0.5)), "c": float("nan"), "d": Path("x")}
    value |= {"e": np.array([1.0, float("inf")]), "f": True}
    text = json_text(value)
    assert json.loads(text) == {
        "a": 3, "b": [1, 0.5], "c": None, "d": "x", "e": [1.0, None], "f": True,
    }  # fmt: skip
    assert text.endswith("}\n")


def test_atomic_write_replaces_whole_file(tmp_path: Path) -> None:
    """A file is replaced, and nothing temporary stays."""
    target = tmp_path / "a.json"
    write_atomic(target, b"old")
    write_atomic(target, b"new")
    assert target.read_bytes() == b"new"
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


def test_failed_atomic_write_keeps_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When the disk fills in the middle, the old content stays and the temporary file goes."""
    target = tmp_path / "a.json"
    write_atomic(target, b"old")
    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(OSError, match="No space"):
        write_atomic(target, b"new")
    assert target.read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


def test_lines_reach_the_kernel_at_once(tmp_path: Path) -> None:
    """An appended line can be read through another handle before the file is closed."""
    file = LineFile(tmp_path / "a.csv")
    assert file.is_empty
    file.append("1,2\n3,4\n")
    assert (tmp_path / "a.csv").read_text() == "1,2\n3,4\n"
    assert file.lines == 2
    assert not file.is_empty
    file.close()
    file.close()


def test_half_a_line_is_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the disk takes one and a half lines, the whole one stays and the half one goes."""
    file = LineFile(tmp_path / "a.csv")
    file.append("first\n")
    answers = iter([9])
    real = os.write

    def write(fd: int, data: bytes) -> int:
        size = next(answers, None)
        return full_disk() if size is None else real(fd, bytes(data)[:size])

    monkeypatch.setattr(os, "write", write)
    with pytest.raises(OSError, match="No space"):
        file.append("second\nthird\n")
    assert (tmp_path / "a.csv").read_text() == "first\nsecond\n"
    assert file.lines == 2


def test_short_writes_are_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A write that the kernel takes in pieces arrives whole."""
    real = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: real(fd, bytes(data)[:3]))
    file = LineFile(tmp_path / "a.csv")
    file.append("abcdefgh\nij\n")
    assert (tmp_path / "a.csv").read_text() == "abcdefgh\nij\n"
    assert file.lines == 2


def test_first_failure_is_the_reason_and_frees_the_reserve(tmp_path: Path) -> None:
    """One reason is recorded, rows are not tried again, whole files are; the reserve is freed."""
    writer = SafeWriter(tmp_path, tmp_path / ".reserve")
    writer.hold_reserve()
    assert (tmp_path / ".reserve").stat().st_size == RESERVE_BYTES
    assert not writer.run("flows.csv", full_disk, retry=False)
    reason = writer.degraded
    assert reason is not None
    assert "the disk is full: flows.csv" in reason
    assert not (tmp_path / ".reserve").exists()
    tried: list[str] = []
    assert not writer.run("flows.csv", lambda: tried.append("rows"), retry=False)
    assert writer.run("summary.json", lambda: tried.append("file"))
    assert tried == ["file"]
    assert writer.degraded == reason
    assert writer.failed == ["flows.csv"]


def test_other_write_errors_are_named(tmp_path: Path) -> None:
    """A failure that is not a full disk is not called one."""
    writer = SafeWriter(tmp_path, tmp_path / ".reserve")

    def broken() -> None:
        raise OSError(errno.EIO, "Input/output error")

    assert not writer.run("queues.npz", broken)
    assert writer.degraded is not None
    assert writer.degraded.startswith("writing failed: queues.npz")


def test_programming_errors_are_not_swallowed(tmp_path: Path) -> None:
    """Only what the operating system refuses counts as degraded."""
    writer = SafeWriter(tmp_path, tmp_path / ".reserve")

    def wrong() -> None:
        raise KeyError("x")

    with pytest.raises(KeyError):
        writer.run("flows.csv", wrong)
    assert writer.degraded is None
