"""Reads one YAML document strictly: plain data, and where each key path stands in the file.

Stricter than PyYAML's safe loader: duplicate keys, keys that are not text, several documents and
endless aliases are errors, and only YAML 1.2's spellings of numbers and booleans are taken, so that
``on``, ``012`` and ``12:30`` stay the text that the user wrote.
"""

from __future__ import annotations

import re
from collections.abc import Hashable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from topologies.errors import SpecError

MAX_VALUES = 100_000
MAX_DEPTH = 50


@dataclass(frozen=True)
class Document:
    """The content of one file.

    Attributes:
        data: the top-level mapping, plain Python values.
        places: key path such as ``workloads[0].ranks`` -> ``file:line``.
        name: the file, as messages call it.
    """

    data: dict[str, Any]
    places: dict[str, str] = field(default_factory=dict)
    name: str = ""


class _Loader(yaml.SafeLoader):
    """Safe loader with the resolvers of YAML 1.2's core schema."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """A mapping whose keys are all text and all different."""
        seen: dict[Any, yaml.Node] = {}
        for key_node, _ in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":
                continue
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, str):
                raise _Trouble(key_node, repr(key), "is not a name", "write keys as plain words")
            if key in seen:
                line = seen[key].start_mark.line + 1
                raise _Trouble(key_node, repr(key), f"stands twice (first in line {line})", "")
            seen[key] = key_node
        return super().construct_mapping(node, deep)


class _Trouble(yaml.YAMLError):
    """A rule of this module that a node breaks."""

    def __init__(self, node: yaml.Node, value: str, rule: str, way_out: str) -> None:
        self.mark, self.value, self.rule, self.way_out = node.start_mark, value, rule, way_out
        super().__init__(rule)


RESOLVERS = tuple(
    (f"tag:yaml.org,2002:{tag}", re.compile(f"^(?:{pattern})$"), list(first))
    for tag, pattern, first in (
        ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
        ("int", r"[-+]?[0-9]+|0x[0-9a-fA-F]+", "-+0123456789"),
        ("float", r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", "-+.0123456789"),
        ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
        ("merge", r"<<", "<"),
    )
)
"""(tag, pattern, first characters) of what is not text (YAML 1.2.2, section 10.3)."""

for _resolver in RESOLVERS:
    _Loader.add_implicit_resolver(*_resolver)


def _decimal(loader: _Loader, node: yaml.ScalarNode) -> int:
    """YAML 1.2 integers: a leading 0 does not mean octal."""
    text = str(loader.construct_scalar(node))
    return int(text, 16) if text.startswith("0x") else int(text)


_Loader.add_constructor("tag:yaml.org,2002:int", _decimal)


def read_file(path: Path) -> Document:
    """The document in a file; SpecError when it cannot be read or is no YAML mapping."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise SpecError("file", str(path), "does not exist", "check the path") from None
    except IsADirectoryError:
        raise SpecError("file", str(path), "is a folder", "name the YAML file in it") from None
    except UnicodeDecodeError as error:
        rule = f"is not UTF-8 text (byte {error.start})"
        raise SpecError("file", str(path), rule, "save it as UTF-8") from None
    except OSError as error:
        rule = f"cannot be read ({error.strerror})"
        raise SpecError("file", str(path), rule, "check its permissions") from None
    return parse(text, str(path))


def parse(text: str, name: str) -> Document:
    """The document in a text; `name` stands for the file in messages."""
    node = _compose(text, name)
    if not isinstance(node, yaml.MappingNode):
        what = "is empty" if node is None else "does not hold a mapping at its top level"
        raise SpecError("file", name, what, "write keys such as 'fabric:' and 'workloads:'")
    places: dict[str, str] = {}
    _walk(node, "", name, places, 0)
    return Document(_construct(node, name), places, name)


def parse_value(text: str, name: str) -> Any:
    """One YAML value, as in ``--set key=value``."""
    node = _compose(text, name)
    return None if node is None else _construct(node, name)


def _compose(text: str, name: str) -> yaml.Node | None:
    loader = _Loader(text) if _printable(text, name) else _Loader("")
    try:
        return loader.get_single_node()
    except (yaml.YAMLError, RecursionError) as error:
        raise _as_spec_error(error, name) from None
    finally:
        loader.dispose()


def _printable(text: str, name: str) -> bool:
    """True, or SpecError when the text holds characters that YAML forbids."""
    bad = yaml.reader.Reader.NON_PRINTABLE.search(text)
    if bad:
        line = text.count("\n", 0, bad.start()) + 1
        rule = "is a character that YAML does not allow"
        raise SpecError(f"{name}:{line}", bad.group(), rule, "is this a text file?")
    return True


def _construct(node: yaml.Node, name: str) -> Any:
    loader = _Loader("")
    try:
        return loader.construct_document(node)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise _as_spec_error(error, name) from None
    finally:
        loader.dispose()


def _as_spec_error(error: Exception, name: str) -> SpecError:
    """One line ``file:line:column: what`` for whatever PyYAML complains about."""
    if isinstance(error, RecursionError):
        return SpecError(name, "...", "is nested too deeply", f"at most {MAX_DEPTH} levels")
    mark = getattr(error, "problem_mark", None) or getattr(error, "mark", None)
    place = f"{name}:{mark.line + 1}:{mark.column + 1}" if mark else name
    if isinstance(error, _Trouble):
        return SpecError(place, _Literal(error.value), error.rule, error.way_out)
    problem = str(getattr(error, "problem", None) or error)
    if problem.startswith("but "):
        problem = f"{getattr(error, 'context', '')}, {problem}"
    return SpecError(place, _Literal("YAML"), f"cannot be read: {' '.join(problem.split())}")


class _Literal(str):
    """Text that stands in a message as it is, without quotes around it."""

    def __repr__(self) -> str:
        return str(self)


def _walk(node: yaml.Node, path: str, name: str, places: dict[str, str], depth: int) -> None:
    """Notes where every key path stands; refuses documents that never end."""
    places.setdefault(path, f"{name}:{node.start_mark.line + 1}")
    if depth > MAX_DEPTH or len(places) > MAX_VALUES:
        rule = "is nested too deeply or repeats without end"
        raise SpecError(
            places[path], _Literal(path[:40] + "..."), rule, "write it flat, without anchors"
        )
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            inner = str(key.value)
            below = f"{path}.{inner}" if path else inner
            places.setdefault(below, f"{name}:{key.start_mark.line + 1}")
            _walk(value, below, name, places, depth + 1)
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            _walk(value, f"{path}[{index}]", name, places, depth + 1)
