"""Profiles: named sets of settings that lie below those of the file, as YAML files of this package.

A profile has the keys of an experiment file that describe the network rather than the experiment
(`SECTIONS`), and a description.
"""

from __future__ import annotations

from importlib import resources

from emulator.spec.yamlfile import Document, parse
from topologies.errors import UnknownNameError

SECTIONS = ("ecn", "pfc", "trim", "scheduler", "buffers", "routing", "transport", "switch")


def names() -> list[str]:
    """Names of all profiles of this version."""
    folder = resources.files("emulator").joinpath("profiles")
    return sorted(
        entry.name.removesuffix(".yaml")
        for entry in folder.iterdir()
        if entry.name.endswith(".yaml")
    )


def read_profile(name: object, path: str = "profile") -> Document:
    """The settings of a profile, description included; SpecError when there is none."""
    known = names()
    if not isinstance(name, str) or name not in known:
        raise UnknownNameError(path, "profile", name, known)
    file = resources.files("emulator").joinpath("profiles", f"{name}.yaml")
    return parse(file.read_text(encoding="utf-8"), f"profile {name}")


def description(name: str) -> str:
    """What a profile stands for, one paragraph."""
    return " ".join(str(read_profile(name).data["description"]).split())
