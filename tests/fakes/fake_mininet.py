"""Mininet's modules for machines without Mininet; they record what is made of them."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest

MADE: list[Any] = []


class Mininet:
    """A network that only remembers what was done to it."""

    inited = False

    def __init__(self, **options: Any) -> None:
        self.options, self.events = options, ["made"]
        MADE.append(self)

    def start(self) -> None:
        """As the real one, but its initialisation must have been left out."""
        assert Mininet.inited, "its initialisation would change settings of the machine"
        self.events.append("start")

    def stop(self) -> None:
        """Takes nothing away."""
        self.events.append("stop")


class Topo:
    """Hosts and links as they were added."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self.hosts: list[str] = []
        self.links: list[dict[str, Any]] = []
        self.build(*arguments, **options)

    def build(self, *_: Any, **__: Any) -> None:
        """What a topology overrides."""

    def addHost(self, name: str, **_: Any) -> None:  # noqa: N802 - Mininet's name
        """A host."""
        self.hosts.append(name)

    def addSwitch(self, *_: Any, **__: Any) -> None:  # noqa: N802 - Mininet's name
        """Not remembered."""

    def addLink(self, *_: Any, **options: Any) -> None:  # noqa: N802 - Mininet's name
        """A link."""
        self.links.append(options)


_MODULES: dict[str, dict[str, Any]] = {
    "mininet": {},
    "mininet.net": {"Mininet": Mininet},
    "mininet.topo": {"Topo": Topo},
    "mininet.node": {"OVSSwitch": object},
    "mininet.link": {"TCLink": "TCLink"},
}


def install(monkeypatch: pytest.MonkeyPatch, *importers: str) -> list[Any]:
    """Puts the modules in place for a test, in which `importers` are imported anew.

    Returns:
        The networks that are made from now on.
    """
    for name, content in _MODULES.items():
        module = ModuleType(name)
        vars(module).update(content)
        monkeypatch.setitem(sys.modules, name, module)
    for name in importers:
        # So that what the test imports is forgotten with the test.
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
        del sys.modules[name]
    monkeypatch.setattr(Mininet, "inited", False)
    MADE.clear()
    return MADE
