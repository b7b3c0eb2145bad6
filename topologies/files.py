"""Fabrics and rules as plain dictionaries that JSON can hold, and back without any loss.

The emulator hands the controller its fabric in this form, and a run folder keeps it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TypeVar

from topologies.errors import SpecError
from topologies.model import Fabric, Link, Node, Role
from topologies.reading import Reader, as_integer, as_list, as_number, as_text, placed
from topologies.settings import (
    DEFAULT_TRIM_BYTES,
    SWITCH,
    BufferRule,
    ClassRule,
    EcnRule,
    PauseWatchdog,
    PfcRule,
    TrimRule,
)

T = TypeVar("T")

FORMAT = 1
"""Number of the format; a reader refuses others."""


def fabric_to_dict(fabric: Fabric) -> dict[str, object]:
    """The fabric as lists, texts and numbers; `fabric_from_dict` gives an equal fabric."""
    return {
        "format": FORMAT,
        "kind": fabric.kind,
        "buffer_bytes": fabric.buffer_bytes,
        "mtu_bytes": fabric.mtu_bytes,
        "nodes": [
            {"name": n.name, "role": n.role.value, "plane": n.plane, "index": n.index}
            for n in fabric.nodes
        ],
        "links": [dataclasses.asdict(link) for link in fabric.links],
        "attachment": [
            [host, plane, leaf, number]
            for (host, plane), (leaf, number) in fabric.attachment.items()
        ],
    }


def fabric_from_dict(raw: object, path: str = "fabric") -> Fabric:
    """The fabric that `fabric_to_dict` wrote; `SpecError` for anything else."""
    with Reader(raw, path) as reader:
        written = reader.integer("format")
        if written != FORMAT:
            rule = f"is not format {FORMAT}, the one this version reads"
            raise SpecError(reader.at("format"), written, rule, "use the version that wrote it")
        return Fabric(
            kind=reader.text("kind"),
            nodes=tuple(_node(entry) for entry in reader.readers("nodes", minimum=1)),
            links=tuple(_link(entry) for entry in reader.readers("links")),
            buffer_bytes=reader.integer("buffer_bytes", minimum=1),
            mtu_bytes=reader.integer("mtu_bytes", minimum=1),
            attachment=dict(_seat(v, p) for p, v in reader.items("attachment")),
        )


def _node(reader: Reader) -> Node:
    with reader:
        return Node(
            name=reader.text("name"),
            role=Role(reader.choice("role", [role.value for role in Role], what="role")),
            plane=reader.integer("plane", minimum=0),
            index=reader.integer("index", minimum=1),
        )


def _link(reader: Reader) -> Link:
    with reader:
        return Link(
            id=reader.integer("id", minimum=0),
            a=reader.text("a"),
            b=reader.text("b"),
            rate_bps=reader.integer("rate_bps", minimum=1),
            delay_ns=reader.integer("delay_ns", minimum=0),
            plane=reader.integer("plane", minimum=1),
            lane=reader.integer("lane", minimum=1),
        )


def _seat(value: object, path: str) -> tuple[tuple[str, int], tuple[int, int]]:
    host, *numbers = as_list(value, path, minimum=4, maximum=4)
    plane, leaf, number = (as_integer(entry, place, minimum=1) for place, entry in numbers)
    return (as_text(host[1], host[0]), plane), (leaf, number)


def rule_to_dict(rule: EcnRule | ClassRule | BufferRule | PfcRule | TrimRule) -> dict[str, object]:
    """A rule as a mapping of its fields."""
    return dataclasses.asdict(rule)


def ecn_rule_from_dict(raw: object, path: str = "ecn") -> EcnRule:
    """The marking rule that `rule_to_dict` wrote; ``ports`` may be left out."""
    with Reader(raw, path) as reader:
        tc, ports = reader.integer("tc"), reader.text("ports", "switches")
        kmin_bytes, kmax_bytes = reader.integer("kmin_bytes"), reader.integer("kmax_bytes")
        pmax = reader.number("pmax")
    with placed(path):
        return EcnRule(tc, kmin_bytes, kmax_bytes, pmax, ports)


def class_rule_from_dict(raw: object, path: str = "scheduler") -> ClassRule:
    """The service rule that `rule_to_dict` wrote; ``ports`` may be left out."""
    with Reader(raw, path) as reader:
        tc, ports = reader.integer("tc"), reader.text("ports", "switches")
        priority, weight = reader.integer("priority"), reader.integer("weight")
    with placed(path):
        return ClassRule(tc, priority, weight, ports)


def buffer_rule_from_dict(raw: object, path: str = "buffer") -> BufferRule:
    """The buffer rule that `rule_to_dict` wrote."""
    with Reader(raw, path) as reader:
        tc, alpha = reader.integer("tc"), reader.number("alpha")
    with placed(path):
        return BufferRule(tc, alpha)


def pfc_rule_from_dict(raw: object, path: str = "pfc") -> PfcRule:
    """The pause rule that `rule_to_dict` wrote; ``ports`` may be left out."""
    with Reader(raw, path) as reader:
        tc, ports = reader.integer("tc"), reader.text("ports", "switches")
        alpha = reader.get("alpha", _optional(as_number), None)
        xoff_bytes = reader.get("xoff_bytes", _optional(as_integer), None)
        offset = reader.get("xon_offset_bytes", _optional(as_integer), None)
        headroom_bytes = reader.get("headroom_bytes", _optional(as_integer), None)
        response_ns = reader.get("response_ns", _optional(as_integer), None)
        watchdog = reader.get("watchdog", _optional(_watchdog), None)
        control = reader.text("control", SWITCH)
    with placed(path):
        return PfcRule(
            tc, alpha, xoff_bytes, offset, headroom_bytes, response_ns, watchdog, ports, control
        )


def trim_rule_from_dict(raw: object, path: str = "trim") -> TrimRule:
    """The trimming rule that `rule_to_dict` wrote; only ``tc`` and ``dscp`` must be there."""
    with Reader(raw, path) as reader:
        tc, dscp = reader.integer("tc"), reader.integer("dscp")
        size_bytes = reader.integer("size_bytes", DEFAULT_TRIM_BYTES)
        threshold_bytes = reader.get("threshold_bytes", _optional(as_integer), None)
        ports = reader.text("ports", "switches")
    with placed(path):
        return TrimRule(tc, dscp, size_bytes, threshold_bytes, ports)


def _watchdog(raw: object, path: str) -> PauseWatchdog:
    with Reader(raw, path) as reader:
        detect_ns, restore_ns = reader.integer("detect_ns"), reader.integer("restore_ns")
        action = reader.text("action")
    with placed(path):
        return PauseWatchdog(detect_ns, restore_ns, action)


def _optional(convert: Callable[[object, str], T]) -> Callable[[object, str], T | None]:
    return lambda value, path: None if value is None else convert(value, path)
