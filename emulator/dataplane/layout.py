"""NumPy dtypes of the structures in bpf/mmu.bpf.c; a test holds the two against each other."""

from __future__ import annotations

import numpy as np

MAX_PORTS = 4096
MAX_SWITCHES = 512
CLASSES = 8
GAP_BUCKETS = 16
FLAG_SWITCH = 1
FLAG_TAGS = 2
FLAG_RECEIVER = 4
KICK_MARK = 0x7AB1AB01
KICK_LENGTH = 60
WAKE_MARK = 0x7AB1AB02
EVENT_XOFF = 1
EVENT_XON = 2
EVENT_FRAME = 3
ALPHA_ONE = 256
PROBABILITY_ONE = 65536
FIRST_INTERFACE = 1000
"""Interface index of port 0, which does not exist; `wire_delay` tells ports by it."""
NUMBER_WORDS = 8
"""32-bit words of a set of leaf or host numbers, 0-255."""

CLASS_CONFIG = np.dtype(
    [
        ("kmin", "<u4"),
        ("kmax", "<u4"),
        ("pmax", "<u4"),
        ("alpha", "<u4"),
        ("trim_bytes", "<u4"),
        ("trim_above", "<u4"),
        ("trim_dscp", "<u4"),
        ("reserved", "<u4"),
    ],
    align=True,
)
PORT_CONFIG = np.dtype(
    [
        ("flags", "<u4"),
        ("switch_id", "<u4"),
        ("peer", "<u4"),
        ("seed", "<u4"),
        ("ns_per_kib", "<u8"),
        ("classes", CLASS_CONFIG, (CLASSES,)),
        ("link_ns", "<u4"),
        ("header_ns", "<u4"),
        ("ps_per_byte", "<u4"),
        ("leaf", "<u4"),
        ("whole_hosts", "<u4", (NUMBER_WORDS,)),
        ("whole_leaves", "<u4", (NUMBER_WORDS,)),
    ],
    align=True,
)
CLASS_STATE = np.dtype(
    [
        ("in_packets", "<u8"),
        ("in_bytes", "<u8"),
        ("out_packets", "<u8"),
        ("out_bytes", "<u8"),
        ("drop_packets", "<u8"),
        ("drop_bytes", "<u8"),
        ("mark_packets", "<u8"),
        ("peak_bytes", "<u8"),
        ("trim_packets", "<u8"),
        ("trim_bytes", "<u8"),
        ("trim_drops", "<u8"),
    ],
    align=True,
)
PORT_STATE = np.dtype(
    [
        ("classes", CLASS_STATE, (CLASSES,)),
        ("last_out_ns", "<u8"),
        ("last_out_wire_bytes", "<u8"),
        ("run", "<u8"),
        ("busy_ns", "<u8"),
        ("busy_wire_bytes", "<u8"),
        ("busy_gaps", "<u8"),
        ("overruns", "<u8"),
        ("received_packets", "<u8"),
        ("trimmed_packets", "<u8"),
        ("last_byte_ns", "<u8"),
        ("late_gaps", "<u8", (GAP_BUCKETS,)),
    ],
    align=True,
)
SWITCH_STATE = np.dtype(
    [
        ("buffer_bytes", "<u8"),
        ("in_bytes", "<u8"),
        ("out_bytes", "<u8"),
        ("peak_bytes", "<u8"),
        ("reserved_bytes", "<u8"),
        ("headroom_bytes", "<u8"),
    ],
    align=True,
)
PAUSE_CONFIG = np.dtype(
    [
        ("alpha", "<u4"),
        ("xoff", "<u4"),
        ("xon_offset", "<u4"),
        ("headroom", "<u4"),
        ("discard", "<u4"),
        ("reserved", "<u4"),
    ],
    align=True,
)
PAUSE_CONFIGS = np.dtype([("classes", PAUSE_CONFIG, (CLASSES,)), ("closed", "<u8")], align=True)
PAUSE_STATE = np.dtype(
    [
        ("bytes", "<u8"),
        ("headroom", "<u8"),
        ("peak_headroom", "<u8"),
        ("changes", "<u8"),
        ("drop_packets", "<u8"),
        ("lost_events", "<u8"),
    ],
    align=True,
)
PAUSE_STATES = np.dtype([("classes", PAUSE_STATE, (CLASSES,))], align=True)
RECEIVER_CONFIG = np.dtype(
    [
        ("ns_per_kib", "<u8"),
        ("from_ns", "<u8"),
        ("until_ns", "<u8"),
        ("xoff", "<u4"),
        ("xon", "<u4"),
        ("classes", "<u4"),
        ("reserved", "<u4"),
    ],
    align=True,
)
LEVEL = np.dtype([("bytes", "<u8"), ("time_ns", "<u8"), ("changes", "<u8")], align=True)
RECEIVER_STATE = np.dtype([("classes", LEVEL, (CLASSES,))], align=True)
PAUSE_EVENT = np.dtype(
    [
        ("time_ns", "<u8"),
        ("changes", "<u8"),
        ("bytes", "<u8"),
        ("headroom", "<u8"),
        ("limit", "<u8"),
        ("port", "<u4"),
        ("tc", "u1"),
        ("kind", "u1"),
        ("pad", "u1", (10,)),
    ],
    align=True,
)
NIC_RECORD = np.dtype(
    [
        ("time_ns", "<u8"),
        ("psn", "<u4"),
        ("dest_qp", "<u4"),
        ("aeth", "<u4"),
        ("src_ip", "<u4"),
        ("port", "<u2"),
        ("length", "<u2"),
        ("udp_source", "<u2"),
        ("opcode", "u1"),
        ("tos", "u1"),
        ("ack_request", "u1"),
        ("becn", "u1"),
        ("trimmed", "u1"),
        ("pad", "u1"),
        ("sack_word", ">u4"),
        ("sack_received", ">u8"),
        ("sack_marked", ">u8"),
    ],
    align=True,
)
RING_RECORD = np.dtype([("header", "<u4"), ("page", "<u4"), ("record", NIC_RECORD)])
PAUSE_RING_RECORD = np.dtype([("header", "<u4"), ("page", "<u4"), ("record", PAUSE_EVENT)])
