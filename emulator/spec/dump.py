"""From an `Experiment` back to a file: everything resolved, in units that people read."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

import yaml

from emulator.spec import network, yamlfile
from emulator.spec.model import AUTO, Experiment, ProbeSpec, TransportSpec
from topologies.settings import BufferRule, ClassRule, EcnRule
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
    return yaml.dump(
        to_document(experiment), Dumper=_Dumper, sort_keys=False, width=100, default_flow_style=None
    )


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


def _ecn(rules: Sequence[EcnRule]) -> list[dict[str, Any]]:
    """One entry for neighbours that differ in their class only."""
    entries = []
    for (kmin, kmax, pmax, ports), group in groupby(
        rules, lambda r: (r.kmin_bytes, r.kmax_bytes, r.pmax, r.ports)
    ):
        sizes = {"kmin": format_size(kmin), "kmax": format_size(kmax)}
        entries.append({"classes": _classes(group), **sizes, "pmax": pmax, "ports": ports})
    return entries


def _scheduler(rules: Sequence[ClassRule]) -> list[dict[str, Any]]:
    entries = []
    for (priority, weight, ports), group in groupby(
        rules, lambda r: (r.priority, r.weight, r.ports)
    ):
        service = {"priority": priority, "weight": weight, "ports": ports}
        entries.append({"classes": _classes(group), **service})
    return entries


def _buffers(rules: Sequence[BufferRule]) -> list[dict[str, Any]]:
    return [
        {"classes": _classes(group), "alpha": alpha}
        for alpha, group in groupby(rules, lambda rule: rule.alpha)
    ]


def _classes(rules: Iterable[EcnRule | ClassRule | BufferRule]) -> list[int]:
    return [rule.tc for rule in rules]


def _transport(spec: TransportSpec) -> dict[str, Any]:
    timeout = spec.retransmit_timeout_ns
    return {
        "kind": spec.kind,
        "control": spec.control,
        "params": spec.params,
        "overrides": {network.override_key(k): _parameter(k, v) for k, v in spec.overrides},
        "payload": format_size(spec.payload_bytes),
        "window": spec.window,
        "retransmit_timeout": AUTO if timeout is None else format_duration(timeout),
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
    }
