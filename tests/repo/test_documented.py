"""Every name that a user may write is documented, and nothing else is."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

import topologies.registry
from controller.policies import pausing
from controller.policies import registry as policies
from emulator.cli import main, make_parser
from emulator.spec import transport
from traffic.workloads import arrivals, background_spec, models, pairs, placement, sizes
from traffic.workloads import registry as workloads
from traffic.workloads.collectives import registry as collectives

ROOT = Path(__file__).resolve().parents[2]


def profiles() -> list[str]:
    """Names of the profiles that are shipped."""
    return [file.stem for file in (ROOT / "emulator" / "profiles").glob("*.yaml")]


def commands() -> list[str]:
    """Names of the commands of the command line."""
    for action in make_parser()._actions:
        if isinstance(action, argparse._SubParsersAction):
            return list(action.choices)
    raise AssertionError("the parser has no commands")


REGISTRIES: dict[str, Callable[[], Iterable[str]]] = {
    "Fabrics": topologies.registry.kinds,
    "Workloads": workloads.kinds,
    "Collectives": collectives.collectives,
    "Placements": lambda: placement.ORDERS,
    "Patterns": lambda: [*pairs.PATTERNS, background_spec.RANDOM_PAIRS],
    "Flow sizes": lambda: sizes.BUILT_IN,
    "Arrivals": lambda: arrivals.PROCESSES,
    "Models": lambda: models.MODELS,
    "Routing policies": policies.names,
    "Pause policies": pausing.names,
    "Transports": lambda: transport.KINDS,
    "Profiles": profiles,
}


def rows(title: str) -> dict[str, str]:
    """The table below a heading of docs/names.md: name -> the rest of its row."""
    text = (ROOT / "docs" / "names.md").read_text(encoding="utf-8")
    section = text.split(f"\n## {title}\n")[1].split("\n## ")[0]
    return dict(re.findall(r"^\| `([^`]+)` \| (.+) \|$", section, re.MULTILINE))


@pytest.mark.parametrize("title", REGISTRIES)
def test_every_registered_name_has_its_row_and_no_row_is_left_over(title: str) -> None:
    """docs/names.md lists exactly what the code knows."""
    assert set(rows(title)) == set(REGISTRIES[title]())


def test_no_section_of_the_names_is_unchecked() -> None:
    """A section that is added to the page is added to this test."""
    text = (ROOT / "docs" / "names.md").read_text(encoding="utf-8")
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == list(REGISTRIES)


def test_algorithms_of_collectives_stand_in_the_order_of_the_code() -> None:
    """The default comes first."""
    listed = {name: re.findall(r"`([^`]+)`", rest) for name, rest in rows("Collectives").items()}
    assert listed == {name: collectives.algorithms(name) for name in collectives.collectives()}


def test_models_are_listed_with_their_numbers() -> None:
    """Parameters and cache per token on the page are those of the code."""
    for name, rest in rows("Models").items():
        parameters, cache = rest.split(" | ")
        assert float(parameters) == models.MODELS[name].parameters
        assert int(cache.replace(",", "")) == models.MODELS[name].kv_bytes_per_token


def test_the_readme_lists_every_command() -> None:
    """The table of commands is complete, and every command in it exists."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `fabriclab ([a-z-]+)[^`]*` \|", readme, re.MULTILINE)
    assert sorted(listed) == sorted(commands())


def test_the_readme_s_experiment_is_valid(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What a reader copies from the README passes `fabriclab validate`."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```yaml\n(.+?)^```$", readme, re.MULTILINE | re.DOTALL)
    file = tmp_path / "experiment.yaml"
    file.write_text(block, encoding="utf-8")
    assert main(["validate", str(file)]) == 0, capsys.readouterr().err
