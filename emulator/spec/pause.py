"""Reader of the section ``pfc``: which classes are lossless, and when their senders are paused."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from controller.policies import pausing
from emulator.spec.keys import with_defaults
from emulator.spec.model import AUTO
from emulator.spec.ports import NONE, parse_alpha, read_classes
from topologies import units
from topologies.errors import SpecError
from topologies.model import Fabric
from topologies.pause import frame_bytes, reserved_bytes, settled
from topologies.reading import Reader, as_list, as_mapping, join
from topologies.settings import (
    SWITCH,
    WATCHDOG_ACTIONS,
    PauseWatchdog,
    PfcRule,
    select_ports,
)

T = TypeVar("T")
Entry = tuple[str, Mapping[str, Any], PfcRule]
"""(key path, entry as written, rule of its first class)."""


def read_pfc(
    raw: object, fabric: Fabric, classes: Sequence[int], pipeline_ns: int
) -> tuple[PfcRule, ...]:
    """The ``pfc`` section: one mapping, a list of them, or none; later entries win.

    Args:
        raw: the section as merged.
        fabric: whose switches pause.
        classes: lossless classes of an entry that names none.
        pipeline_ns: latency of the switches.

    Raises:
        SpecError: a value is wrong, XON lies above XOFF, or the headroom exceeds a buffer.
    """
    if raw in NONE:
        return ()
    entries = [("pfc", raw)] if not isinstance(raw, list) else as_list(raw, "pfc")
    rules: list[PfcRule] = []
    for path, entry in entries:
        found = _entry(as_mapping(entry, path), path, fabric, classes)
        rules += found
        _check_room(rules, found[0], as_mapping(entry, path), path, fabric, pipeline_ns)
    return tuple(rules)


def _entry(
    raw: Mapping[str, object], path: str, fabric: Fabric, classes: Sequence[int]
) -> list[PfcRule]:
    with Reader(with_defaults("pfc[]", raw), path) as reader:
        tcs = read_classes(reader, classes)
        selector = reader.text("ports")
        _check_ports(selector, fabric, reader.at("ports"))
        alpha, xoff_bytes = _xoff(reader, raw)
        offset = _xon_offset(reader, raw, xoff_bytes)
        headroom_bytes = reader.get("headroom", _auto(units.parse_size), None)
        response_ns = reader.get("response", _auto(units.parse_duration), None)
        watchdog = _watchdog(reader.raw("watchdog", {}), reader.at("watchdog"))
        control = reader.choice("control", (SWITCH, *pausing.names()), what="who pauses")
    return [
        PfcRule(
            tc, alpha, xoff_bytes, offset, headroom_bytes, response_ns, watchdog, selector, control
        )
        for tc in tcs
    ]


def _auto(parse: Callable[[object, str], T]) -> Callable[[object, str], T | None]:
    return lambda value, path: None if value == AUTO else parse(value, path)


def _optional(parse: Callable[[object, str], T]) -> Callable[[object, str], T | None]:
    return lambda value, path: None if value in NONE else parse(value, path)


def _check_ports(selector: str, fabric: Fabric, path: str) -> None:
    for port in select_ports(fabric, selector, path):
        if not fabric.by_name[port.node].is_switch:
            rule = f"names {port.name}, a host's port, and pause protects buffers of switches"
            raise SpecError(path, selector, rule, "write e.g. switches")


def _xoff(reader: Reader, raw: Mapping[str, object]) -> tuple[float | None, int | None]:
    """(alpha, static XOFF): exactly one of them; alpha's default counts where neither is given."""
    alpha = reader.get("alpha", _optional(parse_alpha), None)
    xoff_bytes = reader.get("xoff", _optional(units.parse_size), None)
    if xoff_bytes is not None:
        if raw.get("alpha") not in NONE:
            rule = "excludes alpha, which is also given"
            raise SpecError(reader.at("xoff"), reader.raw("xoff"), rule, "give only one of them")
        return None, xoff_bytes
    if alpha is None:
        way_out = "write alpha: 1/8, or xoff: 200 KB"
        raise SpecError(reader.at("alpha"), None, "is none, and there is no xoff either", way_out)
    return alpha, None


def _xon_offset(reader: Reader, raw: Mapping[str, object], xoff_bytes: int | None) -> int | None:
    """Distance of XON below XOFF; None = automatic."""
    offset = reader.get("xon_offset", _auto(lambda v, p: units.parse_size(v, p, allow_zero=True)),
                        None)  # fmt: skip
    xon = reader.get("xon", _optional(lambda v, p: units.parse_size(v, p, allow_zero=True)), None)
    if xon is None:
        _check_offset(reader, offset, xoff_bytes)
        return offset
    if raw.get("xon_offset", AUTO) != AUTO:
        rule = "excludes xon_offset, which is also given"
        raise SpecError(reader.at("xon"), reader.raw("xon"), rule, "give only one of them")
    if xoff_bytes is None:
        rule = "needs a static xoff to lie below"
        raise SpecError(reader.at("xon"), reader.raw("xon"), rule, "write xon_offset instead")
    if xon > xoff_bytes:
        rule = f"is above xoff, {units.format_size(xoff_bytes)}: nothing would ever be resumed"
        raise SpecError(reader.at("xon"), reader.raw("xon"), rule, "write xon <= xoff")
    return xoff_bytes - xon


def _check_offset(reader: Reader, offset: int | None, xoff_bytes: int | None) -> None:
    if offset is not None and xoff_bytes is not None and offset > xoff_bytes:
        rule = f"is above xoff, {units.format_size(xoff_bytes)}, and puts XON below 0"
        value = reader.raw("xon_offset")
        raise SpecError(reader.at("xon_offset"), value, rule, "write xon_offset <= xoff")


def _watchdog(value: object, path: str) -> PauseWatchdog | None:
    if value in NONE:
        return None
    with Reader(with_defaults("pfc[].watchdog", as_mapping(value, path)), path) as reader:
        return PauseWatchdog(
            reader.duration("detect", allow_zero=False),
            reader.duration("restore", allow_zero=False),
            reader.choice("action", WATCHDOG_ACTIONS, what="watchdog action"),
        )


def _check_room(
    rules: Sequence[PfcRule],
    rule: PfcRule,
    raw: Mapping[str, object],
    path: str,
    fabric: Fabric,
    pipeline_ns: int,
) -> None:
    """The headroom must leave something of every buffer to share, and XOFF lie within that."""
    resolved = settled(rules, fabric, pipeline_ns)
    for switch, reserved in reserved_bytes(resolved, fabric).items():
        shared = fabric.buffer_bytes - reserved
        if shared < frame_bytes(fabric.mtu_bytes):
            raise _no_room(switch, reserved, raw, path, fabric)
        here = any(resolved.get(port.index) for port in fabric.ports_of[switch])
        if rule.xoff_bytes is not None and here and rule.xoff_bytes > shared:
            text = f"is more than the {units.format_size(shared, 4)} that {switch} shares"
            way_out = "lower it, or raise fabric.buffer"
            raise SpecError(join(path, "xoff"), raw.get("xoff"), text, way_out)


def _no_room(
    switch: str, reserved: int, raw: Mapping[str, object], path: str, fabric: Fabric
) -> SpecError:
    rule = (
        f"reserves {units.format_size(reserved, 4)} for all ports and classes of {switch}, which "
        f"has {units.format_size(fabric.buffer_bytes)} of buffer"
    )
    way_out = "raise fabric.buffer, lower the headroom, or name fewer classes"
    return SpecError(join(path, "headroom"), raw.get("headroom", AUTO), rule, way_out)
