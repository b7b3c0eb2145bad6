"""Trimming on the whole fabric: every packet that is cut comes to an end that is counted."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from emulator.programs import find_program
from tests.integration.harness import Ran, leaf_spine, run

INCAST = {"kind": "background", "name": "incast", "pattern": "incast", "hosts": 9, "class": 3,
          "bytes": "200 KB"}  # fmt: skip
SIZE = 80


def incast(tmp_path: Path, clock: str, **keys: Any) -> Ran:
    """Eight hosts send to a ninth at once; its port may queue 200 KB."""
    document = {
        "name": "trimmed", "fabric": leaf_spine(3, 2, 3, buffer="1 MB"), "workloads": [INCAST],
        "trim": {"threshold": "200 KB"}, "transport": {"window": "unlimited"}, "dilation": 5_000,
        "shrink": 1,
    }  # fmt: skip
    return run(document | keys, tmp_path, clock)


def counted(ran: Ran, kind: str) -> dict[tuple[str, int], int]:
    """Packets of a kind of events.csv by port and class."""
    found: dict[tuple[str, int], int] = {}
    for row in ran.reader.table("events").rows():
        if row["kind"] == kind:
            place = row["port"], int(row["tc"])
            found[place] = found.get(place, 0) + int(row["value"])
    return found


def test_every_packet_of_an_incast_comes_whole_or_as_headers(tmp_path: Path, clock: str) -> None:
    """Sent is delivered plus trimmed, nothing is dropped; and the places of the cuts add up."""
    ran = incast(tmp_path, clock)
    packets, classes = ran.summary["packets"], {row["tc"]: row for row in ran.summary["classes"]}
    assert ran.summary["verdict"] == "VALID", ran.summary["reasons"]
    assert ran.summary["background"][0]["completed"] == 8
    assert packets["trimmed"] > 0
    assert packets["dropped"] == ran.summary["fidelity"]["unaccounted_packets"] == 0
    assert packets["sent"] == packets["delivered"] + packets["trimmed"]
    cuts = counted(ran, "trim")
    assert sum(cuts.values()) == packets["trimmed"] == classes[3]["trimmed"]
    assert {tc for _, tc in cuts} == {3}
    assert counted(ran, "drop") == {}
    series = ran.reader.queues()
    assert series is not None
    assert int(series.arrays["trimmed"][-1].sum()) == packets["trimmed"]
    full, longest = 4_214, series.arrays["bytes_tc"][:, :, 3].max()
    assert 200_000 - full < longest <= 200_000


def test_without_trimming_the_same_incast_drops(tmp_path: Path, clock: str) -> None:
    """A queue may take half of the buffer, and what is more is lost."""
    ran = incast(tmp_path, clock, trim="none", fabric=leaf_spine(3, 2, 3, buffer="400 KB"))
    assert ran.summary["verdict"] == "VALID", ran.summary["reasons"]
    assert ran.summary["packets"]["dropped"] > 0
    assert ran.summary["packets"]["trimmed"] == 0
    assert counted(ran, "trim") == {}


def test_headers_in_a_capture_are_packets_without_a_fault(tmp_path: Path, clock: str) -> None:
    """tshark knows them by the length in the identification, and finds nothing malformed."""
    if not find_program("tshark"):
        pytest.skip("needs tshark")
    ran = incast(tmp_path, clock, pcap=["h1"])
    fields = ("frame.len", "ip.len", "ip.id", "udp.length", "ip.dsfield.dscp", "ip.checksum.status",
              "infiniband.bth.opcode")  # fmt: skip
    headers = shown(ran, "ip.id > ip.len", fields)
    assert len(headers) == ran.summary["packets"]["trimmed"] > 0
    assert {tuple(row[:2] + row[3:6]) for row in headers} == {("80", "66", "46", "43", "1")}
    lengths = {int(row[2], 16) for row in headers}
    assert 4_140 in lengths
    assert min(lengths) > 66
    assert {int(row[6]) for row in headers} <= {0, 1, 2, 4}
    assert shown(ran, "_ws.malformed || _ws.expert.severity == error", ("frame.number",)) == []


def shown(ran: Ran, wanted: str, fields: tuple[str, ...]) -> list[list[str]]:
    """Fields of the captured packets that a filter of tshark lets through."""
    command = ["tshark", "-r", str(ran.reader.path / "pcap" / "h1-eth1.pcap"), "-Y", wanted,
               "-o", "ip.check_checksum:TRUE", "-T", "fields"]  # fmt: skip
    for field in fields:
        command += ["-e", field]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return [line.split("\t") for line in done.stdout.splitlines()]
