"""Lays defaults, profile, file and ``--set`` over each other, and remembers where values came from.

Mappings of the sections in `KEY_BY_KEY` are merged key by key; everything else is replaced whole
by the later layer. Options of a routing policy stay with their policy, the control of a transport
with its kind.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from emulator.spec import keys, yamlfile
from topologies.errors import SpecError
from topologies.reading import join

KEY_BY_KEY = (
    *("ecn", "pfc", "pfc.watchdog", "trim", "buffers", "routing"),
    *("transport", "transport.overrides", "switch"),
)
ALTERNATIVES = {
    "pfc": (("alpha", "xoff"), ("xon", "xon_offset")),
    "trim": (("to_class", "dscp"),),
}
"""Section -> groups of keys that say the same in different ways: a layer's choice replaces those
of the layers below."""
OF_KIND = ("control", "params", "overrides")
"""Keys of ``transport`` that belong to its kind: another kind begins with the defaults."""
FLAG = "--set"
_STEP = re.compile(r"\.?([A-Za-z_][\w-]*)|\[([\w.-]+)\]")


@dataclass
class Merged:
    """A document under construction.

    Attributes:
        data: the values so far.
        origins: key path -> where its value came from (``default``, ``profile x``, ``file:line``).
    """

    data: dict[str, Any] = field(default_factory=dict)
    origins: dict[str, str] = field(default_factory=dict)

    def overlay(self, layer: Mapping[str, Any], where: Callable[[str], str]) -> None:
        """Lay another document on top; `where` says where one of its key paths stands."""
        for key, value in layer.items():
            self._put(self.data, key, key, value, where)

    def _put(
        self, target: dict[str, Any], key: str, path: str, value: Any, where: Callable[[str], str]
    ) -> None:
        old = target.get(key)
        if isinstance(old, dict) and isinstance(value, Mapping) and _joins(path, old, value):
            self.origins[path] = where(path)
            self._displace(old, path, value)
            for inner, item in value.items():
                self._put(old, inner, join(path, inner), item, where)
        else:
            target[key] = copy.deepcopy(value)
            self._claim(path, value, where)

    def _claim(self, path: str, value: Any, where: Callable[[str], str]) -> None:
        """Note the origin of a value and of all that is below it, and forget what was there."""
        for stale in [known for known in self.origins if is_below(known, path)]:
            del self.origins[stale]
        self.origins[path] = where(path)
        if isinstance(value, Mapping):
            members = [(join(path, key), item) for key, item in value.items()]
        elif isinstance(value, list):
            members = [(join(path, index), item) for index, item in enumerate(value)]
        else:
            return
        for below, item in members:
            self._claim(below, item, where)

    def set(self, key: str, text: str) -> None:
        """Apply one ``--set key=text``; the text is read as YAML.

        Raises:
            SpecError: the key is no key path, or leads through something that has no members.
        """
        origin = f"{FLAG} {key}={text}"
        value = yamlfile.parse_value(text, origin)
        *way, last = _steps(key)
        target: Any = self.data
        path = ""
        for step in way:
            place = _place(target, step, path, key)
            if isinstance(target, dict) and target.get(place) is None:
                target[place] = {}
            target, path = target[place], join(path, place)
        place = _place(target, last, path, key)
        if isinstance(target, dict):
            self._displace(target, path, {place: value})
        target[place] = value
        self._claim(join(path, place), value, lambda _: origin)

    def _displace(self, old: dict[str, Any], path: str, new: Mapping[str, Any]) -> None:
        """Take away what a layer's new keys of a section replace."""
        for group in ALTERNATIVES.get(path.partition("[")[0], ()):
            if any(name in new for name in group):
                for name in group:
                    old.pop(name, None)
        if path == "transport" and new.get("kind", old.get("kind")) != old.get("kind"):
            for name in OF_KIND:
                self._reset(old, path, name)

    def _reset(self, old: dict[str, Any], path: str, name: str) -> None:
        """Back to the default, unless the command line says something else."""
        place = join(path, name)
        if not (origin_of(place, self.origins) or "").startswith(FLAG):
            old[name] = keys.default_of(place)
            self._claim(place, old[name], lambda _: "default")


def _joins(path: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Whether two layers of a section are merged key by key."""
    if path == "routing" and new.get("policy", old.get("policy")) != old.get("policy"):
        return False
    return path in KEY_BY_KEY


def is_below(path: str, ancestor: str) -> bool:
    """Whether a key path is the other one or lies inside it."""
    return path == ancestor or path.startswith((f"{ancestor}.", f"{ancestor}["))


def _steps(key: str) -> list[str]:
    """``workloads[0].ranks`` -> ``workloads``, ``0``, ``ranks``."""
    steps, at = [], 0
    while at < len(key):
        match = _STEP.match(key, at)
        if not match or (at == 0) == key.startswith((".", "["), at):
            break
        steps.append(match[1] or match[2])
        at = match.end()
    if at < len(key) or not steps:
        raise SpecError(FLAG, key, "is not a key path", "write e.g. workloads[0].ranks=4")
    return steps


def _place(target: Any, step: str, path: str, key: str) -> Any:
    """What a step means where it stands: a key of a mapping, a position in a list."""
    if isinstance(target, dict):
        return step
    if isinstance(target, list):
        return _position(target, step, path, key)
    rule = f"leads through {path}, which is {target!r} and has no members"
    raise SpecError(FLAG, key, rule, "see docs/config.md for the keys")


def _position(target: list[Any], step: str, path: str, key: str) -> int:
    """Position of a list entry, given by its number or by its name."""
    names = [entry.get("name") if isinstance(entry, dict) else None for entry in target]
    if step.isdigit() and int(step) < len(target):
        return int(step)
    if step in names:
        return names.index(step)
    known = [f"0 to {len(target) - 1}" if target else "nothing", *filter(None, names)]
    rule = f"names no entry of {path}"
    raise SpecError(FLAG, key, rule, f"known: {', '.join(map(str, known))}")


def origin_of(path: str, origins: Mapping[str, str]) -> str | None:
    """Where a key path's value came from: its own origin or that of what contains it."""
    while path:
        if path in origins:
            return origins[path]
        path = path[: max(path.rfind("."), path.rfind("["), 0)]
    return None


def defaults() -> Merged:
    """The lowest layer."""
    merged = Merged()
    merged.overlay(keys.default_document(), lambda _: "default")
    return merged
