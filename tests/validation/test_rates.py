"""One flow on an idle fabric: the configured rate, and the predicted time."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.harness import leaf_spine, pairs, run, within
from traffic.wire import data_frame_bytes, wire_bytes

TARGET_BPS = 100_000_000_000
PAYLOAD_BYTES = 4096
WALL_S = 4


@pytest.mark.parametrize(
    ("clock", "emulated_mbps"),
    [
        *(pytest.param("live", rate, marks=pytest.mark.root) for rate in (10, 50, 100)),
        pytest.param("virtual", 100, marks=pytest.mark.guest),
    ],
)
def test_a_single_flow_runs_at_the_configured_rate(
    tmp_path: Path, clock: str, emulated_mbps: int
) -> None:
    """The wire rate is within 1 %, the unloaded round trip within 5 % of the plan's."""
    size = emulated_mbps * 1_000_000 // 8 * WALL_S
    ran = run(
        {"name": "single", "fabric": leaf_spine(2, 1, 1),
         "workloads": [pairs(("h1", "h2"), size=f"{size} B")],
         "dilation": TARGET_BPS / (emulated_mbps * 1e6), "shrink": 1},
        tmp_path, clock,
    )  # fmt: skip
    assert ran.summary["verdict"] == "VALID", ran.summary["reasons"]
    row = next(iter(ran.reader.table("flows").rows()))
    one_way_ns = next(
        entry["latency_ns"] for entry in ran.reader.manifest["unloaded_full"] if entry["hops"] == 3
    )
    packet_bits = wire_bytes(data_frame_bytes(PAYLOAD_BYTES)) * 8
    span_ns = int(row["done_ns"]) - int(row["first_tx_ns"]) - one_way_ns
    achieved = (int(row["packets"]) - 1) * packet_bits / span_ns * 1e9
    assert achieved == pytest.approx(TARGET_BPS, rel=within(clock, 0.01))
    assert ran.summary["fidelity"]["rtt_error_max"] <= within(clock, 0.05)
