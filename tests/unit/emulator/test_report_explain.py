"""Sentences and small tables of the report."""

from __future__ import annotations

from typing import Any

import pytest

from emulator.report import explain
from emulator.report.extract import Place
from emulator.results.summary import VALID, SummaryParts, assemble
from tests.fakes.run_folder import FakeRun, make_fabric

IDENTITY: dict[str, Any] = {
    "name": "x", "policy": "ecmp", "profile": "rocev2", "seed": 7, "clock": "live",
    "dilation": 1000.0, "shrink": 16,
}  # fmt: skip


def summary(**changes: Any) -> dict[str, Any]:
    """A summary with these parts."""
    return assemble(SummaryParts(**{"identity": IDENTITY, "verdict": VALID, **changes}))


def results(**fidelity: Any) -> dict[str, bool | None]:
    """Check -> result for a fidelity part."""
    return {check.name: check.ok for check in explain.checks(summary(fidelity=fidelity))}


@pytest.mark.parametrize(
    ("key", "name", "good", "bad"),
    [
        ("unaccounted_packets", "Unaccounted packets", 0, 1),
        ("rate_error_max", "Rate error, worst busy port", 0.03, 0.031),
        ("rtt_error_max", "Round-trip error, idle fabric", 0.05, 0.051),
    ],
)
def test_limits_are_those_of_the_design(key: str, name: str, good: float, bad: float) -> None:
    """Conservation is exact, rates within 3 %, round trips within 5 %."""
    assert results(**{key: good})[name] is True
    assert results(**{key: bad})[name] is False
    assert results()[name] is None


def test_lossless_classes_must_not_drop() -> None:
    """Drops in a lossless class fail; without such a class there is nothing to check."""
    name = "Packets lost in lossless classes"

    def result(**row: Any) -> tuple[bool | None, str]:
        check = next(c for c in explain.checks(summary(classes=[row])) if c.name == name)
        return check.ok, check.measured

    assert result(tc=3, lossless=True, dropped=0) == (True, "0")
    assert result(tc=3, lossless=True, dropped=2) == (False, "2")
    assert result(tc=3, lossless=False, dropped=2) == (None, "no such class")


def test_scale_one_needs_no_words() -> None:
    """A run at full size and speed has one sentence, on its clock."""
    plain = summary(identity=IDENTITY | {"dilation": 1, "shrink": 1, "clock": "virtual"})
    assert explain.scale_sentences({}, plain) == [
        "Virtual clock: time advances only when every process waits."
    ]
    assert len(explain.scale_sentences({}, summary())) == 3


def manifest(run: FakeRun, rate_bps: int = 10**11) -> dict[str, Any]:
    """A manifest with the ports of a synthetic fabric; the first link has its own rate."""
    fabric = make_fabric(run)
    ports = [
        {
            "name": port.name,
            "node": port.node,
            "peer": fabric.port(port.peer).name,
            "rate_bps": rate_bps if port.link == 0 else 10**11,
        }
        for port in fabric.ports
    ]
    return {"ports": ports}


@pytest.mark.parametrize(
    ("run", "rate_bps", "words"),
    [
        (FakeRun(), 10**11, "8 hosts, 4 leaves, 2 spines; links of 100 Gbit/s"),
        (FakeRun(leaves=1, spines=1), 10**11, "2 hosts, 1 leaf, 1 spine; links of 100 Gbit/s"),
        (FakeRun(planes=2), 4 * 10**11,
         "8 hosts, 8 leaves, 4 spines in 2 planes; links of 100 Gbit/s to 400 Gbit/s"),
    ],
)  # fmt: skip
def test_fabric_in_words(run: FakeRun, rate_bps: int, words: str) -> None:
    """Numbers, planes and rates in one line."""
    assert explain.fabric_words(manifest(run, rate_bps)) == words


def test_unknown_facts_are_left_out() -> None:
    """A bare manifest gives only what is known."""
    terms = dict(explain.what_was_run({}, summary(), {}))
    assert set(terms) == {"Profile", "Policy", "Seed"}
    spec = {"workloads": [{"name": "a", "kind": "training"}, "odd"]}
    terms = dict(explain.what_was_run({"wall_s": 61.5}, summary(), spec))
    assert terms["Workloads"] == "a (training)"
    assert terms["Took"] == "61.5 s of wall time"


def test_many_places_are_summed_up() -> None:
    """Twenty places are listed, the others are one row with their sums."""
    found = [Place(f"p{n}", None if n == 0 else 3, 1000 - n, 0, n) for n in range(50)]
    rows = explain.place_rows(found, {"p0": "leaf1 to h1 (p0)"})
    assert len(rows) == 21
    assert rows[0] == ["leaf1 to h1 (p0)", "all", "1,000", "0", "0"]
    drops, marks = (sum(getattr(p, kind) for p in found[20:]) for kind in ("drop", "mark"))
    assert rows[-1] == ["30 more places", "", f"{drops:,}", "0", f"{marks:,}"]


def test_changed_sysctls_are_listed() -> None:
    """What a run changed in the kernel is in its report."""
    rows = explain.version_rows(
        {
            "versions": {"ovs": "3.1"},
            "kernel": "6.1",
            "machine": {"cpus": 2},
            "sysctls": {"changed": [{"name": "a.b", "from": 1, "to": 2}, "c.d"]},
        }
    )
    assert rows == [
        ("ovs", "3.1"), ("kernel", "6.1"), ("machine: cpus", "2"),
        ("sysctl changed", "name a.b, from 1, to 2"), ("sysctl changed", "c.d"),
    ]  # fmt: skip
    assert explain.version_rows({}) == []
