"""A collective at full size: what a live run would need minutes for."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.harness import leaf_spine, run

pytestmark = pytest.mark.guest

RANKS, SIZE_BYTES = 8, 64 << 20
PAYLOAD_BYTES = 4096


def test_a_ring_of_64_mib_reaches_97_percent_of_its_bound(tmp_path: Path) -> None:
    """Eight ranks at 100 Gbit/s, side by side on a fabric that has room for all."""
    ring = {"kind": "training", "name": "ring", "ranks": RANKS, "placement": "contiguous",
            "collective": "all-reduce", "algorithm": "ring", "bytes": f"{SIZE_BYTES} B",
            "compute": "1 us", "iterations": 1}  # fmt: skip
    ran = run(
        {"name": "ring", "fabric": leaf_spine(4, 2, 2), "workloads": [ring], "shrink": 1},
        tmp_path, "virtual",
    )  # fmt: skip
    summary = ran.summary
    assert summary["verdict"] == "VALID", summary["reasons"]
    # Each rank sends all but an eighth of the data twice: once to reduce, once to spread.
    data_packets = 2 * (RANKS - 1) * SIZE_BYTES // PAYLOAD_BYTES
    assert summary["packets"]["sent"] >= data_packets
    assert summary["packets"]["retransmitted"] == 0
    training = summary["training"][0]
    assert training["busbw_fraction"] >= 0.97
    moved_bits = 2 * (RANKS - 1) / RANKS * SIZE_BYTES * 8
    busbw_gbps = moved_bits / (training["iteration_ms"]["mean"] * 1e6)
    assert training["busbw_gbps"] == pytest.approx(busbw_gbps, rel=0.001)
