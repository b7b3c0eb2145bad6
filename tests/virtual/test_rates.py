"""Line rates and unloaded round trips, from 10 to 400 Gbit/s, without any tolerance for a machine.

What is expected is computed here from first principles, not by the code under test.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from emulator.results.reader import RunReader
from tests.integration.harness import pairs, run

pytestmark = pytest.mark.guest

PAYLOAD_BYTES = 4096
FRAME_BYTES = 14 + 20 + 8 + 12 + PAYLOAD_BYTES + 4
"""Ethernet, IPv4, UDP, BTH, payload, ICRC."""
OVERHEAD_BYTES = 4 + 8 + 12
"""Check sequence, preamble, gap."""
PACKET_BITS = (FRAME_BYTES + OVERHEAD_BYTES) * 8
DELAY_NS, LATENCY_NS = 500, 500
LINKS, SWITCHES = 4, 3
HEADER_BITS = 64 * 8
PACKETS = 5000


@pytest.mark.parametrize("mode", ["store-and-forward", "cut-through"])
@pytest.mark.parametrize("gbps", [10, 100, 400])
def test_ports_and_round_trips_are_exact(tmp_path: Path, gbps: int, mode: str) -> None:
    """Rates within 0.1 % over a port's busy time, round trips within 1 % of the prediction."""
    link = {"rate": f"{gbps} Gbit/s", "delay": f"{DELAY_NS} ns"}
    ran = run(
        {"name": "exact", "shrink": 1,
         "fabric": {"kind": "leaf-spine", "leaves": 2, "spines": 1, "hosts_per_leaf": 1,
                    "host_link": link, "fabric_link": link},
         "switch": {"mode": mode, "latency": f"{LATENCY_NS} ns"},
         "workloads": [pairs(("h1", "h2"), size=f"{PACKETS * PAYLOAD_BYTES} B")]},
        tmp_path, "virtual",
    )  # fmt: skip
    assert ran.summary["verdict"] == "VALID", ran.summary["reasons"]
    assert ran.summary["fidelity"]["unaccounted_packets"] == 0
    assert ran.summary["fidelity"]["rate_error_max"] <= 0.001
    assert rate_of(ran.reader, "h1-eth1") == pytest.approx(gbps, rel=0.001)
    one_way_ns = idle_one_way_ns(gbps, mode)
    assert predicted_ns(ran.reader) == pytest.approx(one_way_ns, abs=0.1)
    assert ran.summary["fidelity"]["rtt_error_max"] <= 0.01
    assert end_to_end_gbps(ran.reader, one_way_ns) == pytest.approx(gbps, rel=0.001)


def rate_of(reader: RunReader, port: str) -> float:
    """What a port achieved while packets waited for it, Gbit/s of model time."""
    ports: dict[str, Any] = json.loads((reader.path / "ports.json").read_text())
    busy = ports[port]
    assert busy["busy_gaps"] > 0.9 * PACKETS, "it was hardly ever busy"
    return float(busy["busy_wire_bytes"] * 8 / busy["busy_ns"] * reader.manifest["dilation"])


def idle_one_way_ns(gbps: int, mode: str) -> float:
    """First bit out to last bit in, over four links and three switches."""
    packet_ns, header_ns = PACKET_BITS / gbps, HEADER_BITS / gbps
    again_ns = packet_ns if mode == "store-and-forward" else header_ns
    return packet_ns + LINKS * DELAY_NS + SWITCHES * (LATENCY_NS + again_ns)


def predicted_ns(reader: RunReader) -> float:
    """What the plan says about a full packet through three switches."""
    entries = reader.manifest["unloaded_full"]
    return float(next(entry["latency_ns"] for entry in entries if entry["hops"] == SWITCHES))


def end_to_end_gbps(reader: RunReader, one_way_ns: float) -> float:
    """Wire rate of the flow, from the arrival of its first packet to that of its last."""
    (row,) = reader.table("flows").rows()
    assert int(row["packets"]) == PACKETS
    span_ns = int(row["done_ns"]) - int(row["first_tx_ns"]) - one_way_ns
    return (PACKETS - 1) * PACKET_BITS / span_ns
