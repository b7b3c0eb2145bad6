"""From an `Experiment` back to a file: everything resolved, in units that people read."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar

import yaml

from emulator.spec import transport, yamlfile
from emulator.spec.model import AUTO, Experiment, ProbeSpec, TransportSpec
from emulator.spec.receivers import STUCK, ReceiverSpec
from topologies.settings import BufferRule, ClassRule, EcnRule, PauseWatchdog, PfcRule, TrimRule
from topologies.units import format_duration, format_event_rate, format_rate, format_size


class _Dumper(yaml.SafeDumper):
    """Safe dumper that quotes whatever YAML 1.1 or 1.2 would not read as text."""

    def ignore_aliases(self, data: Any) -> bool:
        """Write everything out."""
        return True


for _tag, _pattern, _first in yamlfile.RESOLVERS:
    _Dumper.add_implicit_resolver(_tag, _pattern, _first)


def to_yaml(experiment: Experiment) -> str:
    """The experiment as a file that `load` turns into an equal experiment.

    Fabric and workloads stand as in the user's file (``--set`` applied, file names absolute), every
    other setting as it was resolved from defaults, profile and file.
    """
    return document_to_yaml(to_document(experiment))


def document_to_yaml(document: dict[str, Any]) -> str:
    """The text of a mapping as `to_document` makes it."""
    return yaml.dump(
        document, Dumper=_Dumper, sort_keys=False, width=100, default_flow_style=None
    )  # fmt: skip


def to_document(experiment: Experiment) -> dict[str, Any]:
    """The mapping that `to_yaml` writes."""
    x = experiment
    return {
        "name": x.name,
        "seed": x.seed,
        "clock": x.clock,
        "dilation": _auto(x.dilation),
        "shrink": _auto(x.shrink),
        "budget": format_duration(x.budget_ns),
        "duration": "none" if x.duration_ns is None else format_duration(x.duration_ns),
        "fabric": copy.deepcopy(x.document["fabric"]),
        "profile": x.profile,
        "ecn": _ecn(x.ecn) or "none",
        "pfc": _pfc(x.pfc) or "none",
        "receivers": [_receiver(spec) for spec in x.receivers],
        "trim": _trim(x.trim) or "none",
        "scheduler": _scheduler(x.scheduler),
        "buffers": _buffers(x.buffers),
        "routing": x.routing.section,
        "transport": _transport(x.transport),
        "switch": {"mode": x.switch.mode, "latency": format_duration(x.switch.latency_ns)},
        "workloads": copy.deepcopy(x.document["workloads"]),
        "probes": _probes(x.probes) or "none",
        "pcap": list(x.pcap) or False,
    }


def _auto(value: float | None) -> float | int | str:
    if value is None:
        return AUTO
    return int(value) if value == int(value) else value


Rule = TypeVar("Rule", EcnRule, ClassRule, BufferRule, PfcRule, TrimRule)


def _runs(rules: Sequence[Rule]) -> list[list[Rule]]:
    """Neighbours that differ in their class only, each class once."""
    runs: list[list[Rule]] = []
    for rule in rules:
        last = runs[-1] if runs else []
        alike = last and replace(last[0], tc=rule.tc) == rule
        if alike and all(rule.tc != member.tc for member in last):
            last.append(rule)
        else:
            runs.append([rule])
    return runs


def _classes(run: Sequence[Rule]) -> list[int]:
    return [rule.tc for rule in run]


def _ecn(rules: Sequence[EcnRule]) -> list[dict[str, Any]]:
    return [
        {
            "classes": _classes(run),
            "kmin": format_size(run[0].kmin_bytes),
            "kmax": format_size(run[0].kmax_bytes),
            "pmax": run[0].pmax,
            "ports": run[0].ports,
        }
        for run in _runs(rules)
    ]


def _pfc(rules: Sequence[PfcRule]) -> list[dict[str, Any]]:
    return [
        {
            "classes": _classes(run),
            "alpha": "none" if run[0].alpha is None else run[0].alpha,
            "xoff": "none" if run[0].xoff_bytes is None else format_size(run[0].xoff_bytes),
            "xon_offset": _auto_size(run[0].xon_offset_bytes),
            "xon": "none",
            "headroom": _auto_size(run[0].headroom_bytes),
            "response": _auto_duration(run[0].response_ns),
            "control": run[0].control,
            "watchdog": _pause_watchdog(run[0].watchdog),
            "ports": run[0].ports,
        }
        for run in _runs(rules)
    ]


def _receiver(spec: ReceiverSpec) -> dict[str, Any]:
    duration_ns = spec.duration_ns
    return {
        "hosts": [spec.host],
        "rate": format_rate(spec.rate_bps) if spec.rate_bps else STUCK,
        "buffer": format_size(spec.buffer_bytes),
        "start": format_duration(spec.start_ns),
        "duration": "none" if duration_ns is None else format_duration(duration_ns),
    }


def _auto_size(size_bytes: int | None) -> str:
    return AUTO if size_bytes is None else format_size(size_bytes)


def _auto_duration(duration_ns: int | None) -> str:
    return AUTO if duration_ns is None else format_duration(duration_ns)


def _pause_watchdog(watchdog: PauseWatchdog | None) -> dict[str, str] | str:
    if watchdog is None:
        return "none"
    return {
        "detect": format_duration(watchdog.detect_ns),
        "restore": format_duration(watchdog.restore_ns),
        "action": watchdog.action,
    }


def _trim(rules: Sequence[TrimRule]) -> list[dict[str, Any]]:
    return [
        {
            "classes": _classes(run),
            "to_class": run[0].to_class,
            "dscp": run[0].dscp,
            "size": format_size(run[0].size_bytes),
            "threshold": _auto_size(run[0].threshold_bytes),
            "ports": run[0].ports,
        }
        for run in _runs(rules)
    ]


def _scheduler(rules: Sequence[ClassRule]) -> list[dict[str, Any]]:
    return [
        {
            "classes": _classes(run),
            "priority": run[0].priority,
            "weight": run[0].weight,
            "ports": run[0].ports,
        }
        for run in _runs(rules)
    ]


def _buffers(rules: Sequence[BufferRule]) -> list[dict[str, Any]]:
    return [{"classes": _classes(run), "alpha": run[0].alpha} for run in _runs(rules)]


def _transport(spec: TransportSpec) -> dict[str, Any]:
    return {
        "kind": spec.kind,
        "control": spec.control,
        "params": spec.params,
        "overrides": {transport.override_key(k): _parameter(k, v) for k, v in spec.overrides},
        "payload": format_size(spec.payload_bytes),
        "window": spec.window,
        "retransmit_timeout": _auto_duration(spec.retransmit_timeout_ns),
    }


def _parameter(field: str, value: Any) -> Any:
    if value is None:
        return "none"
    if field.endswith("_ns"):
        return format_duration(value)
    if field.endswith("_bps"):
        return format_rate(value)
    return format_size(value) if field.endswith("_bytes") else value


def _probes(spec: ProbeSpec | None) -> dict[str, Any] | None:
    if spec is None:
        return None
    pairs = spec.pairs if isinstance(spec.pairs, str) else [list(pair) for pair in spec.pairs]
    return {
        "pairs": pairs,
        "rate": format_event_rate(spec.rate_per_s),
        "classes": list(spec.classes),
        "size": format_size(spec.size_bytes),
        "arrivals": spec.arrivals,
    }
