"""Pause under the virtual clock, where it is exact: bounds, headroom, runs that repeat."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from emulator.clock.traits import VIRTUAL_CLOCK
from tests.integration.harness import Ran, leaf_spine, pairs, run
from topologies.model import Link
from topologies.pause import headroom_bytes, response_ns

pytestmark = pytest.mark.guest

RATE_BPS = 100_000_000_000
FRAME_BYTES = 4154
FRAME_OVER_PAYLOAD = 4178 / 4096
MTU_BYTES = 4200
LATENCY_NS = 500


def one_leaf(senders: int, delay_ns: int) -> dict[str, Any]:
    """A leaf with so many senders and a receiver."""
    link = {"rate": f"{RATE_BPS} bit/s", "delay": f"{delay_ns} ns"}
    return {"kind": "leaf-spine", "leaves": 1, "spines": 0, "hosts_per_leaf": senders + 1,
            "host_link": link, "buffer": "2 MB", "mtu": f"{MTU_BYTES} B"}  # fmt: skip


def incast(results: Path, fabric: dict[str, Any], senders: int, size: int, **more: Any) -> Ran:
    """All others to the last host at once."""
    ends = [(f"h{n}", f"h{senders + 1}") for n in range(1, senders + 1)]
    document = {"name": "incast", "fabric": fabric, "shrink": 1, "pfc": {"classes": [3]},
                "workloads": [pairs(*ends, size=f"{size} B")],
                "transport": {"window": "unlimited"}, **more}  # fmt: skip
    return run(document, results, VIRTUAL_CLOCK)


def last_ns(ran: Ran) -> int:
    """When the last flow ended."""
    return max(int(row["done_ns"]) for row in ran.reader.table("flows").rows())


def ingress(ran: Ran) -> list[dict[str, Any]]:
    """What ingress ports needed, from pfc.json."""
    rows: list[dict[str, Any]] = json.loads((ran.reader.path / "pfc.json").read_text())["ingress"]
    return rows


@pytest.mark.parametrize("senders", [8, 15])
def test_an_incast_ends_when_the_port_has_sent_all(tmp_path: Path, senders: int) -> None:
    """Nothing is lost, nothing is sent twice, and the last flow ends within 2 % of the bound."""
    fabric, size = leaf_spine(4, 2, 4, buffer="4 MB"), 8_000_000 // senders
    ran = incast(tmp_path, fabric, senders, size)
    assert ran.summary["verdict"] == "VALID", ran.summary["reasons"]
    packets = ran.summary["packets"]
    assert packets["dropped"] == packets["retransmitted"] == 0
    bound_ns = senders * size * FRAME_OVER_PAYLOAD * 8e9 / RATE_BPS
    assert bound_ns < last_ns(ran) < 1.02 * bound_ns
    assert ran.summary["pfc"]["pauses"] > 0


def test_a_gate_closes_when_it_should(tmp_path: Path) -> None:
    """99 of 100 within 0.2 us of the pause frame's way and the peer's response."""
    ran = incast(tmp_path, one_leaf(4, 500), 4, 500_000)
    details = json.loads((ran.reader.path / "pfc.json").read_text())
    for share in ("p50", "p99"):
        late_us = details["reaction_us"][share] - details["modelled_us"][share]
        assert 0 <= late_us < 0.2


@pytest.mark.parametrize("delay_ns", [25, 1_000])
def test_headroom_is_what_is_in_flight(tmp_path: Path, delay_ns: int) -> None:
    """With 5 m and 200 m of cable: the computed size suffices, and is not a frame too large."""
    computed = headroom_bytes(
        Link(0, "h1", "leaf1", RATE_BPS, delay_ns), MTU_BYTES, response_ns(RATE_BPS), LATENCY_NS
    )
    ran = incast(tmp_path, one_leaf(8, delay_ns), 8, 300_000, pfc={"xoff": "100 KB"})
    assert ran.summary["verdict"] == "VALID", ran.summary["reasons"]
    needed = max(row["peak_headroom_bytes"] for row in ingress(ran))
    assert computed - 2 * FRAME_BYTES < needed <= computed


def test_two_frames_less_are_too_little(tmp_path: Path) -> None:
    """The run is INVALID, and says which port and class had too little."""
    computed = headroom_bytes(
        Link(0, "h1", "leaf1", RATE_BPS, 25), MTU_BYTES, response_ns(RATE_BPS), LATENCY_NS
    )
    less = {"xoff": "100 KB", "headroom": f"{computed - 2 * FRAME_BYTES} B"}
    ran = incast(tmp_path, one_leaf(8, 25), 8, 300_000, pfc=less)
    assert ran.summary["verdict"] == "INVALID"
    reasons = " ".join(ran.summary["reasons"])
    assert "lossless class 3 lost" in reasons
    assert "the headroom of class 3 at leaf1-eth1 was too small for" in reasons


def test_pauses_repeat_to_the_byte(tmp_path: Path) -> None:
    """Two runs of one seed pause at the same nanoseconds."""
    runs = [incast(tmp_path, one_leaf(4, 500), 4, 200_000) for _ in range(2)]
    first, second = ((one.reader.path / "events.csv").read_bytes() for one in runs)
    assert first == second
    assert b",pause," in first
