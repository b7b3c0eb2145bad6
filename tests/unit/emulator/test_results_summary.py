"""summary.json: its keys and its checks."""

from __future__ import annotations

import copy
import json
import re
from typing import Any

import numpy as np
import pytest

from emulator.results.files import json_text
from emulator.results.summary import (
    INVALID,
    LATER,
    SCHEMA,
    VALID,
    SummaryParts,
    assemble,
    completed,
    unfinished_summary,
    validate_summary,
)
from topologies.errors import SpecError, UnknownNameError

IDENTITY = {
    "name": "x", "policy": "ecmp", "profile": "rocev2", "seed": 7, "clock": "live",
    "dilation": 1000.0, "shrink": 16,
}  # fmt: skip

DESIGN = """
name policy profile seed clock dilation shrink verdict reasons[]
fidelity:  rate_error_max  unaccounted_packets  cpu_idle_min  send_lateness_us{p50,p99}  rtt_error_max
packets:   sent delivered dropped trimmed marked retransmitted
training[]:  name iterations iteration_ms{mean,p50,p99} algbw_gbps busbw_gbps busbw_fraction comm_fraction gpu_busy_fraction
inference[]: name requests completed failed ttft_ms{p50,p90,p99} tpot_ms{p50,p99} kv_transfer_ms{p50,p99} slo_met_fraction goodput_rps
probes[]:    class pairs sent lost latency_us{p50,p90,p99,p999,max}
pfc:       pauses paused_fraction reaction_us{p50,p99} watchdog_events
classes[]: tc lossless sent dropped marked
hashes:    schedule results
"""  # noqa: E501
"""The normative list of design section 7, as it stands there."""


def design_paths() -> list[str]:
    """Every leaf of the normative list as a dotted path, in order."""
    paths = []
    for line in DESIGN.strip().splitlines():
        head, colon, rest = line.partition(":")
        prefix, words = (f"{head}.", rest) if colon else ("", line)
        for word in words.split():
            match = re.fullmatch(r"([\w\[\]]+)(?:\{([\w,]+)\})?", word)
            assert match is not None
            name, members = match.groups()
            paths += [f"{prefix}{name}.{m}" for m in members.split(",")] if members else [
                prefix + name
            ]  # fmt: skip
    return paths


def schema_paths(schema: Any, path: str = "") -> list[str]:
    """Every leaf of the schema in the same notation."""
    if isinstance(schema, list):
        return schema_paths(schema[0], f"{path}[]")
    if isinstance(schema, dict):
        prefix = f"{path}." if path else ""
        return [p for key, item in schema.items() for p in schema_paths(item, prefix + key)]
    return [path]


def parts(**changes: Any) -> SummaryParts:
    """The parts of a plain valid run."""
    return SummaryParts(**{"identity": IDENTITY, "verdict": VALID, **changes})


def test_the_keys_are_those_of_the_design() -> None:
    """Tools rely on exactly these keys in this order; one section came later."""
    own = {key: value for key, value in SCHEMA.items() if key not in LATER}
    assert schema_paths(own) == design_paths()
    assert schema_paths({key: SCHEMA[key] for key in LATER}) == [
        "background[].name", "background[].flows", "background[].completed",
        "background[].goodput_gbps", "background[].fct_ms.p50", "background[].fct_ms.p99",
    ]  # fmt: skip


def test_summaries_of_earlier_versions_are_completed() -> None:
    """What they did not know is empty, at its place; all else stays, known or not."""
    whole = assemble(parts())
    old = {key: value for key, value in whole.items() if key not in LATER} | {"more": 1}
    assert completed(old) == whole | {"more": 1}
    assert list(completed(old)) == [*SCHEMA, "more"]
    assert completed(whole) == whole


def test_keys_that_do_not_apply_are_null_or_empty() -> None:
    """A run without anything still has every key."""
    summary = assemble(parts())
    assert summary["fidelity"]["send_lateness_us"] == {"p50": None, "p99": None}
    assert summary["training"] == []
    assert summary["pfc"]["reaction_us"] == {"p50": None, "p99": None}
    assert summary["hashes"] == {"schedule": None, "results": None}
    assert validate_summary(summary) == []
    assert json.loads(json_text(summary)) == summary


def test_partly_known_items_are_filled() -> None:
    """An item of a list gets the keys that it lacks, and NumPy numbers become plain ones."""
    job = {"name": "a", "iterations": np.int64(3), "busbw_gbps": np.float64(80.5)}
    job["algbw_gbps"] = float("nan")
    summary = assemble(parts(training=[job]))
    filled = summary["training"][0]
    assert (filled["iterations"], type(filled["iterations"])) == (3, int)
    assert filled["busbw_gbps"] == 80.5
    assert filled["algbw_gbps"] is None
    assert filled["iteration_ms"] == {"mean": None, "p50": None, "p99": None}


def test_optional_keys_are_kept_where_they_are_given() -> None:
    """Planned iterations and the peak of arrivals may be there, and need not."""
    summary = assemble(
        parts(
            training=[{"name": "a", "iterations_planned": 5}, {"name": "b"}],
            inference=[{"name": "c", "peak_to_mean": 2.5}],
        )
    )
    assert summary["training"][0]["iterations_planned"] == 5
    assert "iterations_planned" not in summary["training"][1]
    assert summary["inference"][0]["peak_to_mean"] == 2.5
    assert validate_summary(summary) == []


@pytest.mark.parametrize(
    "changes",
    [
        {"fidelity": {"rate_error": 0.1}},
        {"training": [{"name": "a", "speed": 1}]},
        {"inference": [{"name": "a", "ttft_ms": {"p95": 1}}]},
        {"probes": [{"class": 0, "peak_to_mean": 1}]},
    ],
)
def test_unknown_keys_are_an_error(changes: dict[str, Any]) -> None:
    """A misspelt metric is refused, with the known names."""
    with pytest.raises(UnknownNameError, match="known"):
        assemble(parts(**changes))


def test_an_invalid_run_needs_a_reason() -> None:
    """No verdict INVALID without saying why; a valid run may carry remarks."""
    with pytest.raises(SpecError, match="must give a reason"):
        assemble(parts(verdict=INVALID))
    assert assemble(parts(reasons=["repeated at twice the dilation"]))["verdict"] == VALID


@pytest.mark.parametrize("verdict", ["valid", "", "MAYBE"])
def test_only_two_verdicts(verdict: str) -> None:
    """A verdict is VALID or INVALID."""
    with pytest.raises(SpecError, match="verdict must be"):
        assemble(parts(verdict=verdict, reasons=["x"]))


@pytest.mark.parametrize("key", ["name", "seed", "clock", "dilation", "shrink"])
def test_what_identifies_a_run_must_be_known(key: str) -> None:
    """A run can be repeated only when these are recorded."""
    with pytest.raises(SpecError, match=f"{key} must not be null"):
        assemble(parts(identity={**IDENTITY, key: None}))


def wrong_summaries() -> list[tuple[str, Any, str]]:
    """(path to change, value, expected problem)."""
    return [
        ("seed", "7", "seed must be int or float"),
        ("seed", True, "seed must be int or float"),
        ("name", 5, "name must be str"),
        ("training", {}, "training must be a list"),
        ("packets", [], "packets must be a mapping"),
        ("packets.sent", "many", "packets.sent must be"),
        ("classes", [{"tc": 1}], r"classes[0].lossless is missing"),
        ("extra", 1, "extra is not a known key"),
    ]


@pytest.mark.parametrize(("path", "value", "problem"), wrong_summaries())
def test_validation_names_the_place(path: str, value: Any, problem: str) -> None:
    """Each problem says which key it is about."""
    summary = copy.deepcopy(assemble(parts()))
    *groups, leaf = path.split(".")
    target = summary
    for group in groups:
        target = target[group]
    target[leaf] = value
    assert any(problem in found for found in validate_summary(summary))


def test_missing_groups_are_named() -> None:
    """A key that is missing is a problem, also a whole group."""
    summary = assemble(parts())
    del summary["pfc"]
    del summary["verdict"]
    assert validate_summary(summary) == ["verdict is missing", "pfc is missing"]


def test_unfinished_runs_are_invalid_with_the_reason() -> None:
    """A run that was cut short gets a summary that cannot be mistaken for a result."""
    summary = unfinished_summary({**IDENTITY, "wall_s": 3}, "killed")
    assert (summary["verdict"], summary["reasons"]) == (INVALID, ["killed"])
    assert summary["seed"] == 7
    assert summary["packets"]["sent"] is None
