"""How flows share a port: equally, by strict priority, by weight; and where an overload drops."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.integration.harness import leaf_spine, pairs, run, within

SLOWED = 2000
WINDOWED = {"transport": {"window": "auto"}}


def done_ns(ran: Any, job: str) -> list[int]:
    """When the flows of a job ended."""
    return [int(row["done_ns"]) for row in ran.reader.table("flows").rows() if row["job"] == job]


def test_two_flows_into_one_port_get_half_each(tmp_path: Path, clock: str) -> None:
    """Two equal flows from two hosts to one end together, after twice the time of one alone."""
    flows = [
        pairs(("h1", "h3"), size="10 MB", name="a"),
        pairs(("h2", "h3"), size="10 MB", name="b"),
    ]
    ran = run(
        {"name": "halves", "fabric": leaf_spine(2, 2, 2), "workloads": flows, "dilation": SLOWED,
         "shrink": 1, **WINDOWED},
        tmp_path, clock,
    )  # fmt: skip
    assert ran.summary["verdict"] == "VALID", ran.summary["reasons"]
    a, b = done_ns(ran, "a")[0], done_ns(ran, "b")[0]
    assert a == pytest.approx(b, rel=within(clock, 0.05))
    line_ns = 2 * 10_000_000 * 8 / 100 * 4178 / 4096
    assert max(a, b) == pytest.approx(line_ns, rel=within(clock, 0.05))


def test_the_higher_class_loses_nothing_and_gets_all_it_offers(tmp_path: Path, clock: str) -> None:
    """Class 5 at half load beside a bulk of class 3 that overloads the port and drops."""
    offered = {"kind": "background", "name": "urgent", "pattern": "pairs", "load": 0.5,
               "pairs": [["h1", "h4"]], "sizes": "64 KB", "class": 5,
               "duration": "1500 us"}  # fmt: skip
    bulk = pairs(("h2", "h4"), ("h3", "h4"), size="8 MB", name="bulk")
    ran = run(
        {"name": "strict", "fabric": leaf_spine(2, 2, 3, buffer="600 KB"),
         "workloads": [offered, bulk],
         "scheduler": [{"classes": [5, 6, 7], "priority": 0},
                       {"classes": [0, 1, 2, 3, 4], "priority": 1}],
         "dilation": SLOWED, "shrink": 1, **WINDOWED},
        tmp_path, clock,
    )  # fmt: skip
    assert ran.summary["verdict"] == "VALID", ran.summary["reasons"]
    classes = {row["tc"]: row for row in ran.summary["classes"]}
    assert classes[5]["dropped"] == 0
    assert classes[3]["dropped"] > 0
    rows = [row for row in ran.reader.table("flows").rows() if row["job"] == "urgent"]
    assert all(row["status"] == "done" for row in rows)
    sent = sum(int(row["bytes"]) for row in rows)
    span_ns = max(int(row["done_ns"]) for row in rows) - min(int(row["ready_ns"]) for row in rows)
    last_offered_ns = max(int(row["ready_ns"]) for row in rows)
    assert span_ns < last_offered_ns * (1 + within(clock, 0.1))
    assert sent * 8 / span_ns > 0.4 * 100


def test_weights_three_to_one_share_three_to_one(tmp_path: Path, clock: str) -> None:
    """Bulk of two classes with weights 3 and 1, the one with three times as much: equal ends."""
    heavy = pairs(("h1", "h3"), size="18 MB", name="heavy")
    light = pairs(("h2", "h3"), size="6 MB", name="light", **{"class": 4})
    ran = run(
        {"name": "weights", "fabric": leaf_spine(2, 2, 2), "workloads": [heavy, light],
         "scheduler": [{"classes": [6, 7], "priority": 0},
                       {"classes": [3], "priority": 1, "weight": 3},
                       {"classes": [0, 1, 2, 4, 5], "priority": 1, "weight": 1}],
         "dilation": SLOWED, "shrink": 1, **WINDOWED},
        tmp_path, clock,
    )  # fmt: skip
    assert ran.summary["verdict"] == "VALID", ran.summary["reasons"]
    heavy_ns, light_ns = done_ns(ran, "heavy")[0], done_ns(ran, "light")[0]
    assert heavy_ns == pytest.approx(light_ns, rel=within(clock, 0.05))


def test_an_overload_drops_at_its_port_and_every_packet_is_accounted_for(
    tmp_path: Path, clock: str
) -> None:
    """Four hosts behind four leaves send to a fifth: the spine's port to its leaf overflows."""
    ends = [(f"h{n}", "h5") for n in (1, 2, 3, 4)]
    ran = run(
        {"name": "overload", "fabric": leaf_spine(5, 1, 1, buffer="400 KB"),
         "workloads": [pairs(*ends, size="2 MB")], "dilation": SLOWED, "shrink": 1, **WINDOWED},
        tmp_path, clock,
    )  # fmt: skip
    summary = ran.summary
    assert summary["verdict"] == "VALID", summary["reasons"]
    assert summary["fidelity"]["unaccounted_packets"] == 0
    packets = summary["packets"]
    assert packets["dropped"] > 0
    assert packets["sent"] == packets["delivered"] + packets["dropped"]
    drops = [row for row in ran.reader.table("events").rows() if row["kind"] == "drop"]
    assert {row["port"] for row in drops} == {"spine1-eth5"}
    assert sum(int(row["value"]) for row in drops) == packets["dropped"]
