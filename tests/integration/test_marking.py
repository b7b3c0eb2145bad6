"""ECN: no marks below the threshold, the curve above it, and what a capture shows."""

from __future__ import annotations

import json
import shutil
import subprocess
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.integration.harness import leaf_spine, pairs, run, within
from traffic.icrc import icrc_of
from traffic.wire import wire_bytes

SLOWED = 2000
KMIN, KMAX, PMAX = 1_000_000, 9_000_000, 0.8
BINS = 8
FRAME_BYTES = 4154


def ecn(kmin: int, kmax: int, pmax: float) -> dict[str, Any]:
    """An ``ecn:`` section for class 3."""
    return {"kmin": f"{kmin} B", "kmax": f"{kmax} B", "pmax": pmax, "classes": [3]}


def test_half_load_marks_nothing(tmp_path: Path, clock: str) -> None:
    """Random arrivals at half of a port's rate stay below a Kmin of 100 packets."""
    load = {"kind": "background", "name": "half", "pattern": "pairs", "pairs": [["h1", "h2"]],
            "load": 0.5, "sizes": "4 KB", "class": 3, "duration": "3 ms"}  # fmt: skip
    ran = run(
        {"name": "half", "fabric": leaf_spine(2, 1, 1), "workloads": [load],
         "ecn": ecn(400_000, 1_600_000, 0.2), "dilation": SLOWED, "shrink": 1},
        tmp_path, clock,
    )  # fmt: skip
    assert ran.summary["verdict"] == "VALID", ran.summary["reasons"]
    assert ran.summary["packets"]["sent"] > 3000
    assert ran.summary["packets"]["marked"] == 0


@pytest.mark.parametrize(
    ("clock", "times"),
    [
        pytest.param("live", 1, marks=pytest.mark.root),
        # Half the tolerance is 3 standard deviations with so many times the packets.
        pytest.param("virtual", 12, marks=pytest.mark.guest),
    ],
)
def test_marking_follows_the_curve(tmp_path: Path, clock: str, times: int) -> None:
    """A queue that grows from 0 past Kmax marks as Kmin, Kmax and Pmax say, within 5 points."""
    kmin, kmax = KMIN * times, KMAX * times
    ends = [(f"h{n}", "h4") for n in (1, 2, 3)]
    ran = run(
        {"name": "curve", "fabric": leaf_spine(4, 1, 1, buffer=f"{64 * times} MB"),
         "workloads": [pairs(*ends, size=f"{4500 * times} KB")], "buffers": {"alpha": 8},
         "transport": {"window": "unlimited"}, "ecn": ecn(kmin, kmax, PMAX),
         "dilation": SLOWED, "shrink": 1},
        tmp_path, clock,
    )  # fmt: skip
    assert ran.summary["verdict"] == "VALID", ran.summary["reasons"]
    depth, packets, marks = arrivals_of(ran, "spine1-eth4")
    edges = np.linspace(kmin, kmax, BINS + 1)
    for low, high in pairwise(edges):
        here = (depth > low) & (depth <= high)
        count = packets[here].sum()
        assert count > 100 * times, f"too few packets between {low:.0f} and {high:.0f} bytes"
        wanted = PMAX * (np.average(depth[here], weights=packets[here]) - kmin) / (kmax - kmin)
        assert marks[here].sum() / count == pytest.approx(wanted, abs=within(clock, 0.05))
    assert marks[depth < kmin * 0.95].sum() == 0


def arrivals_of(ran: Any, port: str) -> tuple[Any, Any, Any]:
    """Between samples: mean queue (bytes), packets that arrived, packets that were marked."""
    series = ran.reader.queues()
    queue = series.of_port("bytes", port).astype(float)
    sent = series.of_port("tx_bytes", port).astype(float)
    marked = series.of_port("marked", port).astype(float)
    arrived = np.diff(sent) / wire_bytes(FRAME_BYTES) + np.diff(queue) / FRAME_BYTES
    return (queue[1:] + queue[:-1]) / 2, arrived, np.diff(marked)


def test_a_capture_shows_ce_with_a_valid_icrc(tmp_path: Path, clock: str) -> None:
    """tshark sees RoCEv2 with CE at the receiver, nothing malformed, and every ICRC is right."""
    if shutil.which("tshark") is None:
        pytest.skip("needs tshark")
    ran = run(
        {"name": "capture", "fabric": leaf_spine(3, 1, 1), "pcap": ["h3-eth1"],
         "workloads": [pairs(("h1", "h3"), ("h2", "h3"), size="600 KB")],
         "transport": {"window": "unlimited"}, "ecn": ecn(20_000, 40_000, 1.0),
         "dilation": SLOWED, "shrink": 1},
        tmp_path, clock,
    )  # fmt: skip
    capture = ran.reader.path / "pcap" / "h3-eth1.pcap"
    packets = dissect(capture)
    to_h3 = [entry for entry in packets if entry["ip.dst"] == ["10.1.3.1"]]
    marked = [entry for entry in to_h3 if entry["ip.dsfield.ecn"] == ["3"]]
    assert len(marked) == ran.summary["packets"]["marked"] > 0
    assert all(entry["infiniband.bth.opcode"] for entry in to_h3)
    assert not any(entry.get("_ws.malformed") for entry in packets)
    assert frames_with_wrong_icrc(capture) == 0


def dissect(capture: Path) -> list[dict[str, Any]]:
    """tshark's view of every RoCEv2 packet."""
    fields = ("ip.dst", "ip.dsfield.ecn", "infiniband.bth.opcode", "_ws.malformed")
    command = ["tshark", "-r", str(capture), "-d", "udp.port==4791,infiniband",
               "-Y", "udp.port==4791", "-T", "json"]  # fmt: skip
    for field in fields:
        command += ["-e", field]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [entry["_source"]["layers"] for entry in json.loads(done.stdout)]


def frames_with_wrong_icrc(capture: Path) -> int:
    """How many RoCEv2 frames of a capture carry an ICRC that is not theirs."""
    from scapy.utils import RawPcapReader

    wrong = 0
    with RawPcapReader(str(capture)) as frames:
        for data, _ in frames:
            is_roce = data[12:14] == b"\x08\x00" and data[23] == 17 and data[36:38] == b"\x12\xb7"
            if is_roce:
                wrong += icrc_of(data[:-4]) != int.from_bytes(data[-4:], "little")
    return wrong
