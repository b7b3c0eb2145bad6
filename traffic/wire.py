"""What a RoCEv2 frame looks like on the wire: sizes, offsets, code points and addresses.

Plain numbers without Scapy or NumPy, for planning, for `traffic.headers` (which builds frames) and
for `traffic.template` (which patches them). Sizes are bytes. Sources: IBTA volume 1 section 9 and
annex A17 (RoCEv2), RFC 791, RFC 768, RFC 2474, RFC 3168, IEEE 802.3.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

ETHERNET_BYTES = 14
IPV4_BYTES = 20
UDP_BYTES = 8
BTH_BYTES = 12
AETH_BYTES = 4
CNP_RESERVED_BYTES = 16
ICRC_BYTES = 4
FCS_BYTES = 4
PREAMBLE_AND_GAP_BYTES = 20
MIN_FRAME_BYTES = 60
"""The shortest Ethernet frame, frame check sequence not counted."""

HEADER_BYTES = ETHERNET_BYTES + IPV4_BYTES + UDP_BYTES + BTH_BYTES
"""Ethernet to BTH: what stands before the payload of a data frame."""

ACK_HEADER_BYTES = HEADER_BYTES + AETH_BYTES
SACK_BYTES = 20
"""What a selective acknowledgement has behind its AETH (`traffic.sack`)."""
SACK_HEADER_BYTES = ACK_HEADER_BYTES + SACK_BYTES
IP_OVERHEAD_BYTES = IPV4_BYTES + UDP_BYTES + BTH_BYTES + ICRC_BYTES
"""What a data packet adds to its payload inside the IP MTU."""

ETHERTYPE_IPV4 = 0x0800
ETHERTYPE_MAC_CONTROL = 0x8808
PAUSE_ADDRESS = "01:80:c2:00:00:01"
"""Where pause frames go; no bridge forwards them (IEEE 802.1Q)."""
MAX_QUANTA = 0xFFFF
"""Longest pause of one frame, units of 512 bit times (IEEE 802.3 annex 31B)."""
IP_PROTOCOL_UDP = 17
IP_TTL = 64
ROCE_PORT = 4791
ENTROPY_BASE = 0xC000
ENTROPY_MASK = 0x3FFF
PSN_MASK = 0xFFFFFF
QP_MASK = 0xFFFFFF
MSN_MASK = 0xFFFFFF
ECT0 = 0b10
CE = 0b11
ECN_MASK = 0b11
CONTROL_DSCP = 48
"""Code point of acknowledgements and congestion notifications: class selector 6."""
SYNDROME_ACK = 0x00
SYNDROME_NAK_SEQUENCE = 0x60
SYNDROME_NAK_TRIMMED = 0x7F
"""A NAK of a code that the IBTA has reserved: packets came cut to their headers."""

# Offsets of the first byte of each field in an untagged frame.
AT_DST_MAC = 0
AT_SRC_MAC = 6
AT_ETHERTYPE = 12
AT_IP = ETHERNET_BYTES
AT_TOS = AT_IP + 1
AT_IP_LENGTH = AT_IP + 2
AT_TTL = AT_IP + 8
AT_PROTOCOL = AT_IP + 9
AT_IP_CHECKSUM = AT_IP + 10
AT_SRC_IP = AT_IP + 12
AT_DST_IP = AT_IP + 16
AT_UDP = AT_IP + IPV4_BYTES
AT_SPORT = AT_UDP
AT_DPORT = AT_UDP + 2
AT_UDP_LENGTH = AT_UDP + 4
AT_UDP_CHECKSUM = AT_UDP + 6
AT_BTH = AT_UDP + UDP_BYTES
AT_OPCODE = AT_BTH
AT_BTH_FLAGS = AT_BTH + 1
AT_FECN_BECN = AT_BTH + 4
AT_DEST_QP = AT_BTH + 5
AT_ACK_REQUEST = AT_BTH + 8
AT_PSN = AT_BTH + 9
AT_AETH = AT_BTH + BTH_BYTES
AT_SYNDROME = AT_AETH
AT_MSN = AT_AETH + 1
AT_SACK = AT_AETH + AETH_BYTES

ICRC_MASKED = (
    AT_TOS,
    AT_TTL,
    AT_IP_CHECKSUM,
    AT_IP_CHECKSUM + 1,
    AT_UDP_CHECKSUM,
    AT_UDP_CHECKSUM + 1,
    AT_FECN_BECN,
)
"""Bytes that the ICRC takes as 0xFF because switches may change them."""


class Opcode(IntEnum):
    """BTH opcodes of the reliable connection service that fabriclab uses, and the CNP."""

    SEND_FIRST = 0x00
    SEND_MIDDLE = 0x01
    SEND_LAST = 0x02
    SEND_ONLY = 0x04
    ACKNOWLEDGE = 0x11
    CNP = 0x81


SEND_OPCODES = (Opcode.SEND_FIRST, Opcode.SEND_MIDDLE, Opcode.SEND_LAST, Opcode.SEND_ONLY)


@dataclass(frozen=True, slots=True)
class FlowAddress:
    """Everything in a frame's headers that belongs to its flow rather than to the packet.

    Attributes:
        src_mac: sender's MAC address, ``02:00:0a:01:02:03``.
        dst_mac: receiver's MAC address.
        src_ip: sender's IPv4 address, ``10.1.2.3``.
        dst_ip: receiver's IPv4 address.
        entropy: 14-bit number of the connection; the UDP source port is 0xC000 plus it.
        dest_qp: 24-bit number of the receiver's queue pair.
        dscp: 6-bit code point; its upper 3 bits are the traffic class.
        ect: the two ECN bits at the sender, ECT(0) by default.
    """

    src_mac: str
    dst_mac: str
    src_ip: str
    dst_ip: str
    entropy: int
    dest_qp: int
    dscp: int = 0
    ect: int = ECT0

    def __post_init__(self) -> None:
        for name, limit in _LIMITS.items():
            value = getattr(self, name)
            if not 0 <= value <= limit:
                raise ValueError(f"{name} {value} is outside 0..{limit}")

    @property
    def sport(self) -> int:
        """UDP source port, 0xC000-0xFFFF (RoCEv2 entropy)."""
        return ENTROPY_BASE | self.entropy

    @property
    def tos(self) -> int:
        """The IPv4 type-of-service byte: DSCP and ECN bits."""
        return self.dscp << 2 | self.ect

    def reverse(self, dest_qp: int, dscp: int | None = None) -> FlowAddress:
        """The way back: addresses swapped, same entropy, the sender's queue pair as target."""
        back_dscp = self.dscp if dscp is None else dscp
        ends = (self.dst_mac, self.src_mac, self.dst_ip, self.src_ip)
        return FlowAddress(*ends, self.entropy, dest_qp, back_dscp, self.ect)


_LIMITS = {"entropy": ENTROPY_MASK, "dest_qp": QP_MASK, "dscp": 0x3F, "ect": ECN_MASK}


def traffic_class(dscp: int) -> int:
    """Traffic class 0-7 of a DSCP: its upper three bits (RFC 2474 class selector)."""
    return dscp >> 3


def dscp_of(traffic_class_number: int) -> int:
    """The class-selector DSCP of a traffic class 0-7."""
    return traffic_class_number << 3


def pad_bytes(payload_bytes: int) -> int:
    """Zero bytes that bring a payload to a multiple of 4, the BTH pad count (IBTA 9.2.4)."""
    return -payload_bytes % 4


def data_frame_bytes(payload_bytes: int) -> int:
    """Frame length of a data packet, Ethernet header to ICRC, without the FCS."""
    return HEADER_BYTES + payload_bytes + pad_bytes(payload_bytes) + ICRC_BYTES


ACK_FRAME_BYTES = ACK_HEADER_BYTES + ICRC_BYTES
SACK_FRAME_BYTES = SACK_HEADER_BYTES + ICRC_BYTES
CNP_FRAME_BYTES = HEADER_BYTES + CNP_RESERVED_BYTES + ICRC_BYTES


def wire_bytes(frame_bytes: int) -> int:
    """Bytes of line time that a frame takes: padded to 60, FCS, preamble and gap (IEEE 802.3)."""
    return max(frame_bytes, MIN_FRAME_BYTES) + FCS_BYTES + PREAMBLE_AND_GAP_BYTES


def max_payload_bytes(mtu_bytes: int) -> int:
    """Largest payload, a multiple of 4, whose data packet fits the IP MTU."""
    return (mtu_bytes - IP_OVERHEAD_BYTES) // 4 * 4
