"""docs/config.md documents every key that any reader asks for, with its default."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from controller.policies import registry as policies
from emulator.spec import profiles
from emulator.spec.keys import KEYS, NO_DEFAULT
from emulator.spec.transport import KINDS, override_fields, override_key
from tests.unit.emulator.spec_samples import EXAMPLES, FABRIC, FLOW, ROOT, experiment
from topologies import registry as fabrics
from topologies.reading import Reader
from traffic.workloads import kinds
from traffic.workloads.collectives import algorithms, collectives

TEXT = (ROOT / "docs" / "config.md").read_text(encoding="utf-8")
TRACE = str(EXAMPLES / "data" / "azure_conv_excerpt.csv")
HALF: dict[str, Any] = {"leaves": 2, "spines": 1, "hosts_per_leaf": 2}


def _rows(text: str) -> dict[str, list[str]]:
    """Key -> cells of its table row, the first one where several tables have it."""
    rows = {}
    for line in reversed(text.splitlines()):
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| `"):
            for key in re.findall(r"`([^`]+)`", cells[0]):
                rows[key] = cells
    return rows


def _section(title: str) -> str:
    """The text below a heading, up to the next one."""
    match = re.search(rf"^#+ {re.escape(title)}$(.*?)(?=^#|\Z)", TEXT, re.MULTILINE | re.DOTALL)
    assert match, f"docs/config.md has no section {title!r}"
    return match[1]


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.path)
def test_every_key_is_documented_with_its_default(key: Any) -> None:
    """The table row of a key shows the default that the code uses."""
    row = _rows(TEXT)[key.path]
    if key.default is not NO_DEFAULT:
        shown = {None: "none", False: "false"}.get(key.default, key.default) if not isinstance(
            key.default, (list, dict)) else key.default  # fmt: skip
        assert f"`{shown}`" in row[1], f"{key.path}: {row[1]} does not show {shown}"


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.path)
def test_every_key_says_what_it_takes_and_does(key: Any) -> None:
    """The table in the code is complete, too."""
    assert key.form
    assert key.meaning


FABRICS: dict[str, list[dict[str, Any]]] = {
    "leaf-spine": [
        {**FABRIC, "links": [{"between": ["h1", "leaf1"], "rate": "1 Gbit/s"}]},
        {**FABRIC, "oversubscription": 2},
    ],
    "three-tier": [
        {
            "kind": "three-tier",
            "pods": 1,
            "leaves_per_pod": 1,
            "aggs_per_pod": 1,
            "spines": 1,
            "hosts_per_leaf": 2,
        }
    ],
    "front-back": [{"kind": "front-back", "front": HALF, "back": HALF}],
}
WORKLOADS: dict[str, list[dict[str, Any]]] = {
    "training": [
        {"kind": "training", "ranks": 2, "bytes": "1 MB", "class": 3},
        {"kind": "training", "ranks": 2, "bytes": "1 MB", "collective": "broadcast"},
        {"kind": "training", "hosts": ["h1", "h2"], "bytes": "1 MB"},
    ],
    "inference": [
        {"kind": "inference", "trace": TRACE, "requests": 2},
        {"kind": "inference", "mode": "aggregated", "trace": TRACE, "requests": 2},
        {"kind": "inference", "prefill": 1, "decode": 1, "requests": 2,
         "arrivals": {"process": "gamma", "rate": "5 /s", "generated_tokens": {"mean": 5}}},
        {"kind": "inference", "requests": 2,
         "model": {"parameters": 1e9, "kv_bytes_per_token": 1000},
         "arrivals": {"process": "bursts", "burst": 2, "every": "1 s",
                      "context_tokens": {"fixed": 3}}},
    ],
    "background": [
        FLOW,
        {"kind": "background", "pattern": "permutation", "bytes": "1 MB"},
        {"kind": "background", "load": 0.1, "duration": "100 us", "sizes": "websearch"},
    ],
}  # fmt: skip
COMMON_KEYS = {"kind", "name", "class", "dscp", "plane", "start"}


def _asked(document: dict[str, Any], section: str, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Key paths below a section that readers ask for while a document loads."""
    asked: set[str] = set()
    has = Reader.has

    def noting(self: Reader, key: str) -> bool:
        asked.add(self.at(key))
        return has(self, key)

    monkeypatch.setattr(Reader, "has", noting)
    experiment(**document)
    return {path.removeprefix(section) for path in asked if path.startswith(section)}


def _cases() -> Iterator[Any]:
    for kind, examples in FABRICS.items():
        for number, fabric in enumerate(examples):
            workload = {**FLOW, "pairs": [["h1", "h2"]]}
            yield pytest.param(kind, "fabric.", {"fabric": fabric, "workloads": [workload]},
                               id=f"{kind}-{number}")  # fmt: skip
    for kind, examples in WORKLOADS.items():
        for number, workload in enumerate(examples):
            yield pytest.param(
                kind, "workloads[0].", {"workloads": [workload]}, id=f"{kind}-{number}"
            )


@pytest.mark.parametrize(("kind", "section", "document"), list(_cases()))
def test_keys_of_fabrics_and_workloads_are_documented(
    kind: str, section: str, document: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever a builder or a workload reads stands in the table of its kind."""
    rows = _rows(_section(f"`kind: {kind}`"))
    for path in _asked(document, section, monkeypatch) - COMMON_KEYS:
        key = re.sub(r"\[\d+\]", "[]", path)
        if kind == "front-back":  # its sections take the keys of leaf-spine
            key = key.split(".")[0]
        below = any(row.startswith(f"{key}.") for row in rows)
        assert key in rows or below, f"{kind}: {path} has no row"


def test_common_keys_of_workloads_are_documented() -> None:
    """Once, for all kinds."""
    assert set(_rows(_section("Workloads"))) >= COMMON_KEYS


@pytest.mark.parametrize(
    ("names", "section"),
    [
        (fabrics.kinds(), TEXT),
        (kinds(), TEXT),
        (profiles.names(), _section("Profiles")),
        (policies.names(), _section("`routing`")),
        (KINDS, _section("`transport`")),
        ([name for kind in KINDS.values() for name in kind.controls], _section("`transport`")),
        ([name for kind in KINDS.values() for name in kind.sets], _section("`transport`")),
        (
            [override_key(f.name) for kind in KINDS for f in override_fields(kind)],
            _section("`transport`"),
        ),
        (collectives(), _section("`kind: training`")),
        ([name for c in collectives() for name in algorithms(c)], _section("`kind: training`")),
    ],
)
def test_every_name_of_a_registry_is_documented(names: Any, section: str) -> None:
    """A new kind, policy, profile or algorithm needs its words in the reference."""
    assert names
    for name in names:
        assert re.search(rf"`(kind: )?{re.escape(name)}`", section), name
