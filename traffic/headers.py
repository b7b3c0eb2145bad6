"""RoCEv2 frames built by Scapy: the reference that every patched frame must equal.

The only module of `traffic` that imports Scapy, and narrowly: `scapy.all` takes a second and
touches the machine's interfaces. Building a frame costs about a millisecond, so the NIC engine
builds each kind once and lets `traffic.template` patch it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scapy.contrib.mac_control import MACControlClassBasedFlowControl
from scapy.contrib.roce import AETH, BTH, cnp
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from traffic.wire import (
    IP_TTL,
    MIN_FRAME_BYTES,
    MSN_MASK,
    PAUSE_ADDRESS,
    PSN_MASK,
    ROCE_PORT,
    SACK_BYTES,
    SEND_OPCODES,
    SYNDROME_ACK,
    SYNDROME_NAK_SEQUENCE,
    FlowAddress,
    Opcode,
    pad_bytes,
)

PROBE_PAYLOAD_BYTES = 16


def data_frame(
    address: FlowAddress,
    opcode: Opcode,
    psn: int,
    payload_bytes: int,
    ack_request: bool = False,
) -> bytes:
    """One packet of a SEND message with a payload of zeros, padded to a multiple of 4."""
    return bytes(data_packet(address, opcode, psn, payload_bytes, ack_request))


def data_packet(
    address: FlowAddress,
    opcode: Opcode,
    psn: int,
    payload_bytes: int,
    ack_request: bool = False,
) -> Any:
    """The same as a Scapy packet that is not built yet."""
    if opcode not in SEND_OPCODES:
        raise ValueError(f"{opcode!r} is not a SEND opcode")
    pad = pad_bytes(payload_bytes)
    bth = BTH(
        opcode=int(opcode),
        padcount=pad,
        dqpn=address.dest_qp,
        ackreq=int(ack_request),
        psn=psn & PSN_MASK,
    )
    return _udp(address) / bth / bytes(payload_bytes + pad)


def probe_frame(address: FlowAddress, psn: int, payload_bytes: int = PROBE_PAYLOAD_BYTES) -> bytes:
    """A latency probe: a small SEND Only that asks for no acknowledgement."""
    return data_frame(address, Opcode.SEND_ONLY, psn, payload_bytes)


def ack_frame(address: FlowAddress, psn: int, msn: int) -> bytes:
    """A positive acknowledgement up to and including `psn` (AETH syndrome 0)."""
    return _acknowledge(address, psn, SYNDROME_ACK, msn)


def nak_frame(address: FlowAddress, psn: int, msn: int) -> bytes:
    """A NAK "PSN sequence error" that names the expected `psn` (AETH syndrome 0x60)."""
    return _acknowledge(address, psn, SYNDROME_NAK_SEQUENCE, msn)


def sack_frame(address: FlowAddress, psn: int, answer: int) -> bytes:
    """A selective acknowledgement: an ACK or NAK with 20 bytes behind its AETH (`traffic.sack`)."""
    behind, aeth = divmod(answer, 1 << 32)
    frame = _acknowledgement(address, psn, aeth >> 24, aeth) / behind.to_bytes(SACK_BYTES, "big")
    return bytes(frame)


def cnp_frame(address: FlowAddress) -> bytes:
    """A congestion notification packet (annex A17.9.3): BECN set, 16 reserved bytes."""
    return bytes(_udp(address) / cnp(address.dest_qp))


def pause_frame(src_mac: str, quanta: Mapping[int, int]) -> bytes:
    """A priority flow control frame (IEEE 802.1Qbb), padded to the least Ethernet frame.

    Args:
        src_mac: address of the port that sends it.
        quanta: traffic class -> pause time, units of 512 bit times; 0 = go on.
    """
    fields: dict[str, Any] = {f"c{tc}_enabled": 1 for tc in quanta}
    fields |= {f"c{tc}_pause_time": time for tc, time in quanta.items()}
    ethernet = Ether(src=src_mac, dst=PAUSE_ADDRESS)
    return bytes(ethernet / MACControlClassBasedFlowControl(**fields)).ljust(MIN_FRAME_BYTES, b"\0")


def _acknowledge(address: FlowAddress, psn: int, syndrome: int, msn: int) -> bytes:
    return bytes(_acknowledgement(address, psn, syndrome, msn))


def _acknowledgement(address: FlowAddress, psn: int, syndrome: int, msn: int) -> Any:
    bth = BTH(opcode=int(Opcode.ACKNOWLEDGE), dqpn=address.dest_qp, psn=psn & PSN_MASK)
    return _udp(address) / bth / AETH(syndrome=syndrome, msn=msn & MSN_MASK)


def _udp(address: FlowAddress) -> Any:
    """Ethernet to UDP. IP id 0 is right for a datagram that is never fragmented (RFC 6864)."""
    ethernet = Ether(src=address.src_mac, dst=address.dst_mac)
    ip = IP(src=address.src_ip, dst=address.dst_ip, id=0, flags="DF", ttl=IP_TTL, tos=address.tos)
    return ethernet / ip / UDP(sport=address.sport, dport=ROCE_PORT, chksum=0)
