"""Files and columns of a run folder, as data (design section 7).

All numbers are in target units: times are model nanoseconds since the run's start, sizes bytes,
rates bit/s. An empty field means "did not happen" (such as ``done_ns`` of an unfinished flow).
"""

from __future__ import annotations

from collections.abc import Mapping

FORMAT = "fabriclab-run"
FORMAT_VERSION = 1

ROOT = "results"
"""Folder of all runs, unless the user says otherwise."""

SPEC = "spec.yaml"
MANIFEST = "manifest.json"
SUMMARY = "summary.json"
QUEUES = "queues.npz"
QUEUE_CHUNKS = "queues"
REPORT = "report.html"
RESERVE = ".reserve"
WALL = "wall.json"
"""Wall times of a run in a guest: the one file that no two runs have in common."""
DEPENDS_ON = "depends_on"
"""Key of the manifest: what the results depend on."""

TEXT = "text"
NUMBER = "number"

FLOWS: Mapping[str, str] = {
    "id": NUMBER,
    "job": TEXT,
    "tag": TEXT,
    "kind": TEXT,
    "src": TEXT,
    "dst": TEXT,
    "plane": NUMBER,
    "bytes": NUMBER,
    "dscp": NUMBER,
    "ready_ns": NUMBER,
    "first_tx_ns": NUMBER,
    "done_ns": NUMBER,
    "packets": NUMBER,
    "retransmitted": NUMBER,
    "marked": NUMBER,
    "status": TEXT,
}
COMPUTES: Mapping[str, str] = {
    "id": NUMBER,
    "job": TEXT,
    "tag": TEXT,
    "resource": TEXT,
    "start_ns": NUMBER,
    "done_ns": NUMBER,
}
REQUESTS: Mapping[str, str] = {
    "job": TEXT,
    "request": NUMBER,
    "client": TEXT,
    "prefill": TEXT,
    "decode": TEXT,
    "context_tokens": NUMBER,
    "generated_tokens": NUMBER,
    "arrival_ns": NUMBER,
    "kv_start_ns": NUMBER,
    "kv_done_ns": NUMBER,
    "first_token_ns": NUMBER,
    "last_token_ns": NUMBER,
    "status": TEXT,
}
PROBES: Mapping[str, str] = {
    "class": NUMBER,
    "src": TEXT,
    "dst": TEXT,
    "seq": NUMBER,
    "sent_ns": NUMBER,
    "latency_ns": NUMBER,
    "lost": NUMBER,
}
EVENTS: Mapping[str, str] = {
    "time_ns": NUMBER,
    "kind": TEXT,
    "node": TEXT,
    "port": TEXT,
    "tc": NUMBER,
    "value": NUMBER,
    "detail": TEXT,
}

CSV_TABLES: Mapping[str, Mapping[str, str]] = {
    "flows": FLOWS,
    "computes": COMPUTES,
    "requests": REQUESTS,
    "probes": PROBES,
    "events": EVENTS,
}
"""Table name -> its columns in file order; the file is ``<name>.csv``."""

STATUS_DONE = "done"
STATUS_UNFINISHED = "unfinished"

COUNTED_EVENTS = ("drop", "trim", "mark")
"""Kinds of events.csv whose ``value`` is a number of packets since the place's event before."""

PAUSE, RESUME, STORM, RESTORE = "pause", "resume", "storm", "restore"
"""Kinds of events.csv about paused queues. ``value`` is what the pausing port holds in its switch,
bytes, or the length of the pause that ends, ns; ``detail`` says who pauses."""

QUEUE_ARRAYS: Mapping[str, str] = {
    "time_ns": "T",
    "bytes": "TP",
    "bytes_tc": "TPC",
    "tx_bytes": "TP",
    "dropped": "TP",
    "trimmed": "TP",
    "marked": "TP",
    "buffer_used": "TS",
}
"""Sampled arrays of queues.npz and their axes: times, ports, 8 traffic classes, switches."""

LATER_QUEUE_ARRAYS = ("trimmed",)
"""Arrays that run folders of earlier versions lack; they are read as zeros."""

QUEUE_NAMES: Mapping[str, str] = {"ports": "P", "switches": "S"}
"""Name arrays of queues.npz and the axis that they name."""

TRAFFIC_CLASSES = 8


def csv_name(table: str) -> str:
    """File name of a table: ``flows`` -> ``flows.csv``."""
    return f"{table}.csv"
