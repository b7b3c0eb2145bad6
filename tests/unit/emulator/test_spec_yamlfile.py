"""Reading YAML strictly: what is text, what is refused, and where things stand."""

from __future__ import annotations

from pathlib import Path

import pytest

from emulator.spec.yamlfile import parse, parse_value, read_file
from topologies.errors import SpecError


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("on", "on"),
        ("yes", "yes"),
        ("true", True),
        ("012", 12),
        ("0x10", 16),
        ("1_000", "1_000"),
        ("12:30", "12:30"),
        ("2:1", "2:1"),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("2026-01-01", "2026-01-01"),
        ("400 KB", "400 KB"),
        ("1/8", "1/8"),
        ("~", None),
        ("none", "none"),
        ("", None),
        ("[1, two]", [1, "two"]),
        ("{a: 1}", {"a": 1}),
        ("'7'", "7"),
    ],
)
def test_scalars_are_those_of_yaml_1_2(text: str, value: object) -> None:
    """Words such as on and times such as 12:30 stay text; only true and false are booleans."""
    assert parse_value(text, "here") == value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\nb: 2\na: 3\n", "f.yaml:3:1: 'a' stands twice (first in line 1)"),
        ("a:\n  b: 1\n  b: 2\n", "f.yaml:3:3: 'b' stands twice (first in line 2)"),
        ("1: x\n", "f.yaml:1:1: 1 is not a name; write keys as plain words"),
        ("a: [1, 2\n", "f.yaml:2:1: YAML cannot be read: "),
        ("a: b: c\n", "f.yaml:1:5: YAML cannot be read: mapping values are not allowed here"),
        ("\ta: 1\n", "f.yaml:1:1: YAML cannot be read: found character '\\t'"),
        ("a: *x\n", "f.yaml:1:4: YAML cannot be read: found undefined alias 'x'"),
        ("a: !!python/name:os.system x\n", "f.yaml:1:4: YAML cannot be read: could not determine"),
        (
            "a: 1\n---\nb: 2\n",
            "f.yaml:2:1: YAML cannot be read: expected a single document in the stream, but found",
        ),
        ("a: \x01\n", "f.yaml:1: '\\x01' is a character that YAML does not allow"),
        ("a: &x [*x]\n", "is nested too deeply or repeats without end"),
        ("a: " + "[" * 60 + "]" * 60, "is nested too deeply or repeats without end"),
        ("a: " + "[" * 1500, "f.yaml: '...' is nested too deeply"),
        ("", "file: 'f.yaml' is empty"),
        ("# nothing\n", "file: 'f.yaml' is empty"),
        ("- a\n", "file: 'f.yaml' does not hold a mapping at its top level"),
    ],
)
def test_each_fault_is_one_line_with_its_place(text: str, message: str) -> None:
    """Whatever is wrong with the YAML, the message is a single line with file, line and column."""
    with pytest.raises(SpecError) as caught:
        parse(text, "f.yaml")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_aliases_that_multiply_are_refused() -> None:
    """A small file whose anchors unfold into millions of values is an error, not a hang."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    with pytest.raises(SpecError, match="repeats without end"):
        parse("\n".join(lines), "f.yaml")


def test_merge_keys_work_and_do_not_count_as_duplicates() -> None:
    """Anchors and merge keys, which users write to avoid repetition, are supported."""
    document = parse("base: &base {rate: 1, delay: 2}\nlink: {<<: *base, delay: 3}\n", "f.yaml")
    assert document.data["link"] == {"rate": 1, "delay": 3}


def test_places_name_file_and_line_of_every_key_path() -> None:
    """Each key path is known with its line, through mappings and lists."""
    places = parse("a:\n  b: 1\nc:\n  - {d: 2}\n  - e\n", "f.yaml").places
    assert places["a.b"] == "f.yaml:2"
    assert places["c[0].d"] == "f.yaml:4"
    assert places["c[1]"] == "f.yaml:5"


def test_files_that_cannot_be_read_say_why(tmp_path: Path) -> None:
    """Missing files, folders and binary files are told apart."""
    binary = tmp_path / "binary.yaml"
    binary.write_bytes(b"a: \xff\xfe\n")
    for path, rule in (
        (tmp_path / "missing.yaml", "does not exist"),
        (tmp_path, "is a folder"),
        (binary, "is not UTF-8 text (byte 3)"),
    ):
        with pytest.raises(SpecError) as caught:
            read_file(path)
        assert rule in str(caught.value)


def test_a_byte_order_mark_is_accepted(tmp_path: Path) -> None:
    """Editors on Windows write one in front of UTF-8 files."""
    path = tmp_path / "bom.yaml"
    path.write_bytes(b"\xef\xbb\xbfname: x\r\n")
    assert read_file(path).data == {"name": "x"}
