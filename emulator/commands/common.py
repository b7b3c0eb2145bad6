"""What several commands share: arguments that name an experiment, and reading it."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from pathlib import Path

from emulator.spec.load import load
from emulator.spec.merge import FLAG
from emulator.spec.model import Experiment
from topologies.errors import SpecError

OPTIONS = ("profile", "clock", "seed", "budget")
"""Options that stand for a key of the experiment file."""


def add_experiment_arguments(parser: argparse.ArgumentParser, many: bool = False) -> None:
    """``FILE`` (or several), ``--profile``, ``--clock``, ``--seed`` and ``--set``."""
    parser.add_argument(
        "file", metavar="FILE", type=Path, nargs="+" if many else None, help="experiment file, YAML"
    )
    parser.add_argument("--profile", metavar="NAME", help="use this profile")
    parser.add_argument("--clock", metavar="NAME", help="live or virtual")
    add_override_arguments(parser)


def add_override_arguments(parser: argparse.ArgumentParser) -> None:
    """``--seed`` and ``--set``."""
    parser.add_argument("--seed", metavar="N", help="use this seed")
    parser.add_argument(
        FLAG,
        dest="settings",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="change a value, such as fabric.leaves=8 or workloads[0].bytes=1GiB; repeatable",
    )


def overrides(arguments: argparse.Namespace) -> Mapping[str, str]:
    """Key path -> text of everything that the command line changes; the last one counts."""
    given = ((key, getattr(arguments, key, None)) for key in OPTIONS)
    changes = {key: value for key, value in given if value is not None}
    return changes | parse_settings(arguments.settings)


def parse_settings(settings: Iterable[str]) -> dict[str, str]:
    """``["a.b=c"]`` -> ``{"a.b": "c"}``."""
    parsed = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or not key.strip():
            raise SpecError(FLAG, setting, "is not KEY=VALUE", "write e.g. --set fabric.leaves=8")
        parsed[key.strip()] = value
    return parsed


def experiment_of(arguments: argparse.Namespace) -> Experiment:
    """The experiment that the arguments name."""
    return load(arguments.file, overrides(arguments))
