"""PURE: the parts that the experiments of the cases are put together from, in target units."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from traffic import wire

Document = dict[str, Any]

PAYLOAD_BYTES = 4096
"""Payload of a full packet at the default MTU."""
FRAME_BYTES = wire.data_frame_bytes(PAYLOAD_BYTES)
PACKET_BYTES = wire.wire_bytes(FRAME_BYTES)
"""Line time of a full packet, bytes."""
PACKET_BITS = PACKET_BYTES * 8
DATA_CLASS = 3


def leaf_spine(
    leaves: int, spines: int, hosts_per_leaf: int | Sequence[int], **more: Any
) -> Document:
    """A ``fabric:`` section of the kind ``leaf-spine``."""
    hosts = hosts_per_leaf if isinstance(hosts_per_leaf, int) else list(hosts_per_leaf)
    return {"kind": "leaf-spine", "leaves": leaves, "spines": spines, "hosts_per_leaf": hosts,
            **more}  # fmt: skip


def link(rate_gbps: float, delay_ns: int) -> Document:
    """A ``host_link:`` or ``fabric_link:``."""
    return {"rate": f"{rate_gbps:g} Gbit/s", "delay": f"{delay_ns} ns"}


def flows(
    name: str, pairs: Sequence[tuple[str, str]], packets: int, start_ns: float = 0, **more: Any
) -> Document:
    """A workload: each pair sends one message of so many full packets."""
    return {
        "kind": "background", "name": name, "pattern": "pairs", "class": DATA_CLASS,
        "pairs": [list(pair) for pair in pairs], "bytes": f"{packets * PAYLOAD_BYTES} B",
        "start": f"{round(start_ns)} ns", **more,
    }  # fmt: skip


def hosts(first: int, count: int) -> list[str]:
    """``h4``, ``h5``, ..."""
    return [f"h{number}" for number in range(first, first + count)]


def experiment(fabric: Document, workloads: Sequence[Document], **more: Any) -> Document:
    """A document; `more` are its other sections."""
    return {"fabric": fabric, "workloads": list(workloads), **more}


def packets_ns(packets: float, rate_gbps: float = 100.0) -> float:
    """Line time of full packets, ns."""
    return packets * PACKET_BITS / rate_gbps
