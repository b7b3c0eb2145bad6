"""Kinds of fabrics by name: ``fabric.kind`` in an experiment file picks a builder from here.

Builders live one per file in `topologies.builders`, which registers them when it is imported;
`topologies/builders/_template.py` documents how to add one.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping

from topologies.checks import verify
from topologies.errors import UnknownNameError
from topologies.model import Fabric
from topologies.reading import Reader, as_mapping

Builder = Callable[[Mapping[str, object], str], Fabric]
"""Takes the raw ``fabric:`` mapping (its ``kind`` included) and its key path."""

_BUILDERS: dict[str, Builder] = {}


def register(kind: str) -> Callable[[Builder], Builder]:
    """Decorator that files a builder under a name; ValueError when the name is taken."""

    def file(builder: Builder) -> Builder:
        if kind in _BUILDERS:
            raise ValueError(f"fabric kind {kind!r} is registered twice")
        _BUILDERS[kind] = builder
        return builder

    return file


def unregister(kind: str) -> None:
    """Forget a kind; KeyError when there is none. For tests and plug-ins that replace one."""
    del _BUILDERS[kind]


def kinds() -> list[str]:
    """Names of all registered kinds, sorted."""
    importlib.import_module("topologies.builders")
    return sorted(_BUILDERS)


def builder(kind: object, path: str = "kind") -> Builder:
    """The builder of a kind; `UnknownNameError`, which lists all, when there is none."""
    known = kinds()
    if not isinstance(kind, str) or kind not in known:
        raise UnknownNameError(path, "kind of fabric", kind, known)
    return _BUILDERS[kind]


def build_fabric(raw: object, path: str = "fabric") -> Fabric:
    """The verified fabric that a ``fabric:`` mapping describes.

    Args:
        raw: the mapping as parsed; its key ``kind`` names the builder.
        path: where it stands in the file, for error messages.

    Raises:
        SpecError: a value is wrong, a key is unknown, or the result breaks a limit.
    """
    mapping = as_mapping(raw, path)
    reader = Reader(mapping, path)
    fabric = builder(reader.raw("kind"), reader.at("kind"))(mapping, path)
    verify(fabric, path)
    return fabric
