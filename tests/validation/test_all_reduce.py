"""Ring all-reduce against its bound and against table V10 (max-min model of ECMP collisions).

The band of V10 is what one draw of paths may be off, so it is the same under both clocks.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.integration.harness import leaf_spine, run, within


def ring(ranks: int, placement: str, size: str, iterations: int = 1) -> dict[str, Any]:
    """A training workload without computation."""
    return {"kind": "training", "name": "ring", "ranks": ranks, "placement": placement,
            "collective": "all-reduce", "algorithm": "ring", "bytes": size, "compute": "1 us",
            "iterations": iterations}  # fmt: skip


def test_contiguous_ring_reaches_the_host_rate(tmp_path: Path, clock: str) -> None:
    """Eight ranks side by side on a 1:1 fabric: at least 95 % of the rate less headers."""
    ran = run(
        {"name": "contiguous", "fabric": leaf_spine(4, 2, 2),
         "workloads": [ring(8, "contiguous", "64 MiB")], "dilation": 4000, "shrink": 1},
        tmp_path, clock,
    )  # fmt: skip
    assert ran.summary["verdict"] == "VALID", ran.summary["reasons"]
    assert ran.summary["training"][0]["busbw_fraction"] >= 1 - within(clock, 0.05)


@pytest.mark.parametrize("seed", [1, 2])
def test_strided_ring_under_ecmp_is_in_the_band(tmp_path: Path, clock: str, seed: int) -> None:
    """V10, 4 leaves, 2 spines, 4 hosts each, 1:1, a path per flow: 0.60 +- 2 x 0.09 of the rate."""
    fabric = leaf_spine(4, 2, 4)
    fabric["fabric_link"] = {"rate": "200 Gbit/s", "delay": "1 us"}
    ran = run(
        {"name": "strided", "seed": seed, "fabric": fabric,
         "workloads": [ring(16, "strided", "12 MB")], "transport": {"window": "auto"},
         "dilation": 5000, "shrink": 1},
        tmp_path, clock,
    )  # fmt: skip
    assert ran.summary["verdict"] == "VALID", ran.summary["reasons"]
    assert ran.summary["training"][0]["busbw_fraction"] == pytest.approx(0.60, abs=0.18)
