"""Two run folders: what they have in common, and what exactly they do not."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from emulator.results import sameness, sameness_text
from emulator.results.sameness import DIFFERENT, EQUAL, ONE_SIDED, Change, changes, compare
from tests.fakes.run_folder import FakeRun, write_run
from topologies.errors import SpecError

DEPENDS = {"seed": 7, "versions": {"numpy": "2.4.6", "python": "3.11.2"}, "kernel": "ab12"}
SMALL: dict[str, Any] = {"samples": 20, "probes": 30, "requests": 5, "iterations": 1}
WHO = ("first run", "repeated")


def made(root: Path, run_id: str, **changes: Any) -> Path:
    """A run folder."""
    run = FakeRun(run_id=run_id, extra_manifest={"depends_on": DEPENDS}, **SMALL | changes)
    return write_run(root, run)


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    """A run and its repetition: another id, another folder, other wall times."""
    first, second = made(tmp_path / "a", "aaaaaa"), made(tmp_path / "b", "bbbbbb")
    for folder, seconds in ((first, 1.0), (second, 2.0)):
        (folder / "wall.json").write_text(json.dumps({"steps_s": {"guest is up": seconds}}))
        (folder / "report.html").write_text(f"{seconds}")
        (folder / "logs").mkdir()
        (folder / "logs" / "controller.log").write_text(f"state in {folder.name}/x\n")
        (folder / f".{seconds}.tmp").write_text("left behind")
    return first, second


def edit_json(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Changes a JSON file."""
    value = json.loads(path.read_text())
    change(value)
    path.write_text(json.dumps(value))


def test_a_repetition_is_identical(pair: tuple[Path, Path]) -> None:
    """Identity, wall times, the page and what is hidden do not count; all other files do."""
    found = compare(*pair)
    assert found.identical
    assert [file for file in found.files if file.state != EQUAL] == []
    names = {file.name for file in found.files}
    assert {"flows.csv", "queues.npz", "manifest.json", "logs/controller.log"} <= names
    assert not names & {"wall.json", "report.html"}
    assert found.recorded
    assert found.depends_on == []


def test_the_same_queues_in_other_bytes_are_the_same(pair: tuple[Path, Path]) -> None:
    """An archive that was packed otherwise, and JSON that was indented otherwise."""
    with np.load(pair[1] / "queues.npz") as data:
        arrays = dict(data)
    np.savez(pair[1] / "queues.npz", **arrays)
    edit_json(pair[1] / "summary.json", lambda value: None)
    assert (pair[0] / "queues.npz").read_bytes() != (pair[1] / "queues.npz").read_bytes()
    assert compare(*pair).identical


def only(pair: tuple[Path, Path], name: str) -> tuple[str, str]:
    """State and details of the one file that is not equal."""
    (file,) = compare(*pair).differing
    assert file.name == name
    return file.state, "; ".join(file.details)


def test_a_changed_line_is_named(pair: tuple[Path, Path]) -> None:
    """With its number, and how many there are."""
    path = pair[1] / "probes.csv"
    lines = path.read_text().splitlines()
    lines[4] += "0"
    lines[6] += "0"
    path.write_text("\n".join(lines) + "\n")
    assert only(pair, "probes.csv") == (DIFFERENT, "2 lines differ, the first is line 5")
    lines[4] = lines[4][:-1]
    path.write_text("\n".join(lines) + "\n")
    assert only(pair, "probes.csv") == (DIFFERENT, "line 7 differs")


def test_missing_lines_are_counted(pair: tuple[Path, Path]) -> None:
    """A table that ends earlier."""
    path = pair[1] / "probes.csv"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:-1]))
    state, details = only(pair, "probes.csv")
    assert state == DIFFERENT
    assert details.startswith(f"{len(lines)} and {len(lines) - 1} lines")


def test_a_missing_last_newline_is_a_difference(pair: tuple[Path, Path]) -> None:
    """Nothing is lost in it, yet the bytes are not equal."""
    path = pair[1] / "spec.yaml"
    path.write_text(path.read_text().rstrip("\n"))
    state, details = only(pair, "spec.yaml")
    assert state == DIFFERENT
    assert details


def test_values_of_json_are_named_by_their_path(pair: tuple[Path, Path]) -> None:
    """At most five of them."""

    def change(value: dict[str, Any]) -> None:
        value["wall_s"] = 1.5
        value["ports"][2]["rate_bps"] = 1
        for port in value["ports"][3:9]:
            port["delay_ns"] = 7

    edit_json(pair[1] / "manifest.json", change)
    state, details = only(pair, "manifest.json")
    assert state == DIFFERENT
    assert details.startswith(
        "wall_s: 61.5, 1.5; ports.2.rate_bps: 100000000000, 1; ports.3.delay_ns"
    )
    assert details.endswith("and 3 more")


def test_arrays_are_compared_by_value(pair: tuple[Path, Path]) -> None:
    """Which array, how many values; another number of samples."""
    with np.load(pair[1] / "queues.npz") as data:
        arrays = dict(data)
    arrays["marked"][3:5, 0] += 1
    arrays["buffer_used"] = arrays["buffer_used"][:-1]
    del arrays["dropped"]
    np.savez(pair[1] / "queues.npz", **arrays)
    _, details = only(pair, "queues.npz")
    assert "buffer_used has the shapes (20, 6), (19, 6)" in details
    assert "dropped is in one only" in details
    assert f"marked differs in 2 of {arrays['marked'].size} values" in details


def test_files_of_one_run_only(pair: tuple[Path, Path]) -> None:
    """The run that has it is named."""
    (pair[0] / "pcap").mkdir()
    (pair[0] / "pcap" / "h1-eth1.pcap").write_bytes(b"x")
    assert only(pair, "pcap/h1-eth1.pcap") == (ONE_SIDED, "only in the first run")


def test_other_bytes_say_where(pair: tuple[Path, Path]) -> None:
    """Captures have neither lines nor keys."""
    for folder, content in zip(pair, (b"abcdef", b"abcxef!"), strict=True):
        (folder / "h1.pcap").write_bytes(content)
    assert only(pair, "h1.pcap") == (DIFFERENT, "6 and 7 bytes, equal up to byte 3")


@pytest.mark.parametrize("name", ["queues.npz", "engine.json"])
def test_damaged_files_are_a_difference(pair: tuple[Path, Path], name: str) -> None:
    """Not an exception."""
    for folder in pair:
        (folder / name).write_bytes(folder.name.encode() * 2 + b"{")
    (pair[1] / name).write_bytes(b"PK nothing")
    assert only(pair, name) == (DIFFERENT, "cannot be read, and the bytes differ")


def test_what_they_depend_on_is_compared_on_its_own(pair: tuple[Path, Path]) -> None:
    """It is no difference of the manifest, and names version by version."""
    depends = {**DEPENDS, "versions": {"numpy": "2.4.7", "python": "3.11.2"}, "kernel": None}
    edit_json(pair[1] / "manifest.json", lambda value: value.update(depends_on=depends))
    found = compare(*pair)
    assert found.depends_on == [
        Change("versions.numpy", "2.4.6", "2.4.7"), Change("kernel", "ab12", None),
    ]  # fmt: skip
    assert found.identical
    text = sameness_text.dependence(found, WHO)
    assert text.splitlines()[0] == "What the results depend on is not the same:"
    assert [line.split() for line in text.splitlines()[3:]] == [
        ["versions.numpy", "2.4.6", "2.4.7"], ["kernel", "ab12", "none"],
    ]  # fmt: skip


def test_runs_of_earlier_versions_say_nothing_about_it(pair: tuple[Path, Path]) -> None:
    """Then it is not known whether it is the same."""
    edit_json(pair[0] / "manifest.json", lambda value: value.pop("depends_on"))
    found = compare(*pair)
    assert not found.recorded
    assert found.depends_on == []
    assert "one is of an earlier version" in sameness_text.dependence(found, WHO)


def test_another_hash_is_not_the_same(pair: tuple[Path, Path]) -> None:
    """Both hashes are shown; nothing else decides."""
    edit_json(pair[1] / "summary.json", lambda value: value["hashes"].update(results="1111"))
    found = compare(*pair)
    assert found.same(sameness.SCHEDULE)
    assert not found.same(sameness.RESULTS)
    assert not found.identical
    rows = [line.split() for line in sameness_text.hash_table(found, WHO).splitlines()]
    assert rows[1:] == [
        ["run", "aaaaaa", "bbbbbb"],
        ["hashes.schedule", "9f2c41d7", "9f2c41d7", "equal"],
        ["hashes.results", "0be18a55", "1111", "NOT", "EQUAL"],
    ]


def test_missing_hashes_are_never_equal(pair: tuple[Path, Path]) -> None:
    """Two runs without one have nothing in common."""
    for folder in pair:
        edit_json(folder / "summary.json", lambda value: value["hashes"].update(results=None))
    assert not compare(*pair).same(sameness.RESULTS)


def test_the_files_are_summed_up(pair: tuple[Path, Path]) -> None:
    """How many are equal, what was left out, what differs."""
    (pair[1] / "flows.csv").write_text("")
    lines = sameness_text.file_lines(compare(*pair)).splitlines()
    assert lines[0].startswith("9 of 10 files are equal; not compared: wall.json (wall times)")
    assert lines[1].startswith("  flows.csv: ")


def test_what_is_no_finished_run_is_refused(pair: tuple[Path, Path], tmp_path: Path) -> None:
    """Nothing to compare with."""
    with pytest.raises(SpecError, match="does not exist"):
        compare(pair[0], tmp_path / "none")
    shutil.copytree(pair[1], tmp_path / "cut")
    (tmp_path / "cut" / "summary.json").unlink()
    with pytest.raises(SpecError, match="was cut short"):
        compare(pair[0], tmp_path / "cut")


@pytest.mark.parametrize(
    ("first", "second", "found"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": {"b": [1, {"c": 2}]}}, {"a": {"b": [1, {"c": 3}]}}, [Change("a.b.1.c", 2, 3)]),
        ({"a": [1]}, {"a": [1, 2]}, [Change("a", [1], [1, 2])]),
        ({"a": 1}, {"b": 2}, [Change("a", 1, None), Change("b", None, 2)]),
        ({"a": {}}, {"a": None}, [Change("a", {}, None)]),
    ],
)
def test_changes_have_paths(
    first: dict[str, Any], second: dict[str, Any], found: list[Change]
) -> None:
    """Of mappings and lists of one length; what one lacks is none."""
    assert changes(first, second) == found


def test_long_values_are_cut() -> None:
    """A line stays a line."""
    assert str(Change("a", "x" * 100, None)) == f"a: {'x' * 57}..., none"
