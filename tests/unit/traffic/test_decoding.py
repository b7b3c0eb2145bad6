"""What Wireshark makes of our frames: it reads all of them, and calls none malformed."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from scapy.utils import wrpcap

from traffic import headers, sack, wire
from traffic.wire import SYNDROME_NAK_TRIMMED, FlowAddress, Opcode

THERE = FlowAddress(
    "02:00:00:00:00:01", "02:00:00:00:00:02", "10.1.1.1", "10.1.2.2", 77, 0x105, dscp=24
)
BACK = THERE.reverse(0x104, 48)
ACK = sack.pack(sack.Answer(1, 3, 5, 0b1011, 0b1, wire.SYNDROME_ACK, 9))
NAK = sack.pack(sack.Answer(1, sack.NOBODY, 0, 0b1011, 0b100, SYNDROME_NAK_TRIMMED, 9))
FRAMES = {
    "Send First": headers.data_frame(THERE, Opcode.SEND_FIRST, 7, 1_024),
    "Send Only": headers.data_frame(THERE, Opcode.SEND_ONLY, 7, 16, ack_request=True),
    "Acknowledge": headers.ack_frame(BACK, 7, 3),
    "Acknowledge QP=0x000104": headers.nak_frame(BACK, 7, 3),
    "Acknowledge QP": headers.sack_frame(BACK, 7, ACK),
    "Acknowledge QP=": headers.sack_frame(BACK, 7, NAK),
    "QP=0x000104": headers.cnp_frame(BACK),
}


def tshark(*arguments: str) -> str:
    """What it prints; without it the test is skipped."""
    program = shutil.which("tshark")
    if program is None:
        pytest.skip("needs tshark")
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=True)
    return done.stdout


def test_every_frame_is_read_and_none_is_malformed(tmp_path: Path) -> None:
    """Data, acknowledgements, selective ones, NAKs and notifications, in this order."""
    capture = str(tmp_path / "frames.pcap")
    wrpcap(capture, list(FRAMES.values()), linktype=1)
    lines = tshark("-r", capture).splitlines()
    assert len(lines) == len(FRAMES)
    for line, expected in zip(lines, FRAMES, strict=True):
        assert expected in line
        assert "RRoCE" in line
    assert tshark("-r", capture, "-Y", "_ws.malformed") == ""


def test_the_fields_of_a_selective_acknowledgement_are_those_of_rocev2(tmp_path: Path) -> None:
    """PSN, queue pair, and the credits where RoCEv2 has the number of messages."""
    capture = str(tmp_path / "frames.pcap")
    wrpcap(capture, [FRAMES["Acknowledge QP"], FRAMES["Acknowledge QP="]], linktype=1)
    names = ("infiniband.bth.psn", "infiniband.bth.destqp", "infiniband.aeth.msn")
    options = [part for name in names for part in ("-e", name)]
    rows = tshark("-r", capture, "-T", "fields", *options).splitlines()
    assert rows == ["7\t0x00000104\t9"] * 2 or rows == ["7\t0x000104\t9"] * 2


def test_tiny_payloads_are_taken_for_another_protocol(tmp_path: Path) -> None:
    """As docs/wire-format.md says, and that it can be switched off."""
    capture = str(tmp_path / "frames.pcap")
    wrpcap(capture, [headers.data_frame(THERE, Opcode.SEND_ONLY, 7, 5)], linktype=1)
    off = ("--disable-protocol", "rpcordma")
    assert tshark("-r", capture, *off, "-Y", "_ws.malformed") == ""
