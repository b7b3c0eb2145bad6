"""summary.json: which keys there are (design section 7), put together and checked. PURE.

Every key is always present; what does not apply to a run is null or an empty list.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from topologies.errors import SpecError, UnknownNameError

VALID = "VALID"
INVALID = "INVALID"

_TEXT: tuple[type, ...] = (str,)
_NUMBER: tuple[type, ...] = (int, float)
_FLAG: tuple[type, ...] = (bool,)


def _numbers(*names: str) -> dict[str, Any]:
    return dict.fromkeys(names, _NUMBER)


SCHEMA: Mapping[str, Any] = {
    "name": _TEXT,
    "policy": _TEXT,
    "profile": _TEXT,
    "seed": _NUMBER,
    "clock": _TEXT,
    "dilation": _NUMBER,
    "shrink": _NUMBER,
    "verdict": _TEXT,
    "reasons": [_TEXT],
    "fidelity": {
        **_numbers("rate_error_max", "unaccounted_packets", "cpu_idle_min"),
        "send_lateness_us": _numbers("p50", "p99"),
        **_numbers("rtt_error_max"),
    },
    "packets": _numbers("sent", "delivered", "dropped", "trimmed", "marked", "retransmitted"),
    "training": [
        {
            "name": _TEXT,
            **_numbers("iterations"),
            "iteration_ms": _numbers("mean", "p50", "p99"),
            **_numbers("algbw_gbps", "busbw_gbps", "busbw_fraction"),
            **_numbers("comm_fraction", "gpu_busy_fraction"),
        }
    ],
    "inference": [
        {
            "name": _TEXT,
            **_numbers("requests", "completed", "failed"),
            "ttft_ms": _numbers("p50", "p90", "p99"),
            "tpot_ms": _numbers("p50", "p99"),
            "kv_transfer_ms": _numbers("p50", "p99"),
            **_numbers("slo_met_fraction", "goodput_rps"),
        }
    ],
    "background": [
        {
            "name": _TEXT,
            **_numbers("flows", "completed", "goodput_gbps"),
            "fct_ms": _numbers("p50", "p99"),
        }
    ],
    "probes": [
        {
            **_numbers("class", "pairs", "sent", "lost"),
            "latency_us": _numbers("p50", "p90", "p99", "p999", "max"),
        }
    ],
    "pfc": {
        **_numbers("pauses", "paused_fraction"),
        "reaction_us": _numbers("p50", "p99"),
        **_numbers("watchdog_events"),
    },
    "classes": [{"tc": _NUMBER, "lossless": _FLAG, **_numbers("sent", "dropped", "marked")}],
    "hashes": {"schedule": _TEXT, "results": _TEXT},
}
"""Keys in file order. A tuple of types is a leaf, a mapping a group, a list a list of its item."""

OPTIONAL: Mapping[str, Mapping[str, tuple[type, ...]]] = {
    "training": {"iterations_planned": _NUMBER},
    "inference": {"peak_to_mean": _NUMBER},
    "classes": {"trimmed": _NUMBER},
}
"""Keys that the items of a list may have beside those of design section 7."""

LATER = ("background",)
"""Lists that folders of earlier versions lack; they are read as empty."""

_REQUIRED = ("name", "seed", "clock", "dilation", "shrink", "verdict")


@dataclass(frozen=True)
class SummaryParts:
    """What the parts of a run know; keys that are left out become null.

    Attributes:
        identity: name, policy, profile, seed, clock, dilation, shrink.
        verdict: ``VALID`` or ``INVALID``.
        reasons: why it is invalid; remarks of a valid run.
        fidelity: measured against design section 8.
        packets: totals over all NICs and ports.
        training: one mapping per training job.
        inference: one mapping per inference service.
        background: one mapping per background workload.
        probes: one mapping per probed traffic class.
        pfc: pause totals.
        classes: one mapping per traffic class.
        hashes: of the schedule and of the results.
    """

    identity: Mapping[str, Any]
    verdict: str
    reasons: Sequence[str] = ()
    fidelity: Mapping[str, Any] = field(default_factory=dict)
    packets: Mapping[str, Any] = field(default_factory=dict)
    training: Sequence[Mapping[str, Any]] = ()
    inference: Sequence[Mapping[str, Any]] = ()
    background: Sequence[Mapping[str, Any]] = ()
    probes: Sequence[Mapping[str, Any]] = ()
    pfc: Mapping[str, Any] = field(default_factory=dict)
    classes: Sequence[Mapping[str, Any]] = ()
    hashes: Mapping[str, Any] = field(default_factory=dict)


def assemble(parts: SummaryParts) -> dict[str, Any]:
    """The content of summary.json.

    Raises:
        SpecError: a key that design section 7 does not know, a wrong type, or an invalid
            run without a reason.
    """
    raw = {**vars(parts), **parts.identity}
    del raw["identity"]
    summary: dict[str, Any] = _fill(SCHEMA, raw, "summary")
    problems = validate_summary(summary)
    if problems:
        raise SpecError("summary", parts.identity.get("name"), "; ".join(problems))
    return summary


def unfinished_summary(identity: Mapping[str, Any], reason: str) -> dict[str, Any]:
    """A summary for a run that ended before it could write one: INVALID, all else null."""
    known = {key: identity.get(key) for key in ("name", "policy", "profile", "seed", "clock")}
    known |= {key: identity.get(key) for key in ("dilation", "shrink")}
    raw = {**known, "verdict": INVALID, "reasons": [reason]}
    filled: dict[str, Any] = _fill(SCHEMA, raw, "summary")
    return filled


def _fill(schema: Any, value: Any, path: str) -> Any:
    if isinstance(schema, list):
        items = () if value is None else value
        return [
            _fill(_item_schema(schema, item, path), item, f"{path}[{at}]")
            for at, item in enumerate(items)
        ]
    if isinstance(schema, Mapping):
        given = {} if value is None else value
        for key in given:
            if key not in schema:
                raise UnknownNameError(path, "key of summary.json", key, schema)
        return {key: _fill(item, given.get(key), f"{path}.{key}") for key, item in schema.items()}
    return _plain(value)


def _item_schema(schema: list[Any], item: Any, path: str) -> Any:
    """The schema of a list's item, with those of the optional keys that the item has."""
    optional = OPTIONAL.get(path.rpartition(".")[2], {})
    if not isinstance(schema[0], Mapping) or not isinstance(item, Mapping):
        return schema[0]
    return {**schema[0], **{key: types for key, types in optional.items() if key in item}}


def _plain(value: Any) -> Any:
    """NumPy scalars as Python's own; NaN and infinity as None (JSON has neither)."""
    value = value.item() if hasattr(value, "item") else value
    return None if isinstance(value, float) and not math.isfinite(value) else value


def completed(summary: Mapping[str, Any]) -> dict[str, Any]:
    """A summary that was read, with the lists that its version did not have, in file order."""
    known = {**{key: [] for key in LATER}, **summary}
    return {key: known.pop(key) for key in SCHEMA if key in known} | known


def validate_summary(summary: Mapping[str, Any]) -> list[str]:
    """Problems of a summary against design section 7, as sentences; empty when there are none."""
    problems = _check(SCHEMA, summary, "")
    if problems:
        return problems
    problems = [f"{key} must not be null" for key in _REQUIRED if summary[key] is None]
    if summary["verdict"] not in (VALID, INVALID):
        problems.append(f"verdict must be {VALID} or {INVALID}, is {summary['verdict']!r}")
    if summary["verdict"] == INVALID and not summary["reasons"]:
        problems.append(f"an {INVALID} run must give a reason")
    return problems


def _check(schema: Any, value: Any, path: str) -> list[str]:
    if isinstance(schema, list):
        if not isinstance(value, list):
            return [f"{path} must be a list"]
        return [
            problem
            for at, item in enumerate(value)
            for problem in _check(_item_schema(schema, item, path), item, f"{path}[{at}]")
        ]
    if isinstance(schema, Mapping):
        return _check_group(schema, value, path)
    return _check_leaf(schema, value, path)


def _check_group(schema: Mapping[str, Any], value: Any, path: str) -> list[str]:
    if not isinstance(value, Mapping):
        return [f"{path or 'summary'} must be a mapping"]
    prefix = f"{path}." if path else ""
    problems = [f"{prefix}{key} is not a known key" for key in value if key not in schema]
    for key, item in schema.items():
        if key in value:
            problems += _check(item, value[key], f"{prefix}{key}")
        else:
            problems.append(f"{prefix}{key} is missing")
    return problems


def _check_leaf(types: tuple[type, ...], value: Any, path: str) -> list[str]:
    if value is None:
        return []
    is_flag = isinstance(value, bool)
    if not isinstance(value, types) or (is_flag and types is not _FLAG):
        return [f"{path} must be {' or '.join(item.__name__ for item in types)}, is {value!r}"]
    return []
