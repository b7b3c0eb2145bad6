"""Reader of the section ``trim``: which packets are cut to their headers instead of dropped."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from emulator.spec.keys import with_defaults
from emulator.spec.model import AUTO
from emulator.spec.ports import MAX_THRESHOLD_BYTES, NONE, Threshold, parse_threshold, read_classes
from topologies.errors import SpecError
from topologies.model import Fabric
from topologies.reading import Reader, as_integer, as_list, as_mapping
from topologies.settings import (
    CLASSES,
    MAX_DSCP,
    MIN_TRIM_BYTES,
    ClassRule,
    PfcRule,
    TrimRule,
    resolve,
    select_ports,
    trimmed_dscp,
)
from topologies.units import format_rate, format_size
from traffic.wire import CONTROL_DSCP, ETHERNET_BYTES, traffic_class

Entry = tuple[Reader, list[TrimRule]]


def read_trim(
    raw: object,
    fabric: Fabric,
    classes: Sequence[int],
    pfc: Sequence[PfcRule],
    scheduler: Sequence[ClassRule],
) -> tuple[TrimRule, ...]:
    """The ``trim`` section: one mapping, a list of them, or none; later entries win.

    Args:
        raw: the section as merged.
        fabric: whose switches cut packets.
        classes: trimmable classes of an entry that names none.
        pfc: what is lossless.
        scheduler: what is served before what.

    Raises:
        SpecError: a value is wrong, or a class is both trimmable and something that excludes it.
    """
    if raw in NONE:
        return ()
    written = [("trim", raw)] if not isinstance(raw, list) else as_list(raw, "trim")
    entries = [_entry(as_mapping(entry, path), path, fabric, classes) for path, entry in written]
    cut = {rule.tc for _, rules in entries for rule in rules}
    lossless = {rule.tc for rule in pfc}
    service = resolve(scheduler, fabric)
    for reader, rules in entries:
        _check_class(reader, rules, lossless)
        for rule in rules:
            _check_target(reader, rule, cut, lossless)
            _check_service(reader, rule, fabric, service)
    return tuple(rule for _, rules in entries for rule in rules)


def _entry(raw: Mapping[str, object], path: str, fabric: Fabric, classes: Sequence[int]) -> Entry:
    with Reader(with_defaults("trim[]", raw), path) as reader:
        tcs = read_classes(reader, classes)
        selector = reader.text("ports")
        dscp = _code_point(reader, raw)
        size_bytes = _size(reader, fabric)
        threshold = reader.get("threshold", _threshold, None)
    places = _places(reader, selector, threshold, fabric)
    if dscp // CLASSES in tcs:
        rule = f"goes on in class {dscp // CLASSES}, which is trimmable: its queue is the full one"
        raise SpecError(*_target(reader), rule, "choose another class")
    return reader, [
        TrimRule(tc, dscp, size_bytes, limit, place) for place, limit in places for tc in tcs
    ]


def _code_point(reader: Reader, raw: Mapping[str, object]) -> int:
    """``dscp``, or that of ``to_class``; both only where they agree."""
    to_class = reader.integer("to_class", minimum=0, maximum=CLASSES - 1)
    if reader.raw("dscp") == AUTO:
        return trimmed_dscp(to_class)
    dscp = as_integer(reader.raw("dscp"), reader.at("dscp"), minimum=0, maximum=MAX_DSCP)
    if "to_class" in raw and dscp // CLASSES != to_class:
        rule = f"is in class {dscp // CLASSES} (its upper three bits), and to_class is {to_class}"
        raise SpecError(reader.at("dscp"), dscp, rule, "give only one of them")
    return dscp


def _target(reader: Reader) -> tuple[str, object]:
    """Key path and value of what chose the class of cut packets."""
    key = "to_class" if reader.raw("dscp") == AUTO else "dscp"
    return reader.at(key), reader.raw(key)


def _size(reader: Reader, fabric: Fabric) -> int:
    """What is kept of a frame: at least its headers, and less than a full one."""
    size_bytes = reader.size("size")
    full = fabric.mtu_bytes + ETHERNET_BYTES
    if not MIN_TRIM_BYTES <= size_bytes < full:
        rule = f"must be from {MIN_TRIM_BYTES} B, the headers, to less than {full} B, a full frame"
        raise SpecError(reader.at("size"), reader.raw("size"), rule, "write e.g. 80 B")
    return size_bytes


def _threshold(value: object, path: str) -> Threshold | None:
    return None if value == AUTO else parse_threshold(value, path)


def _places(
    reader: Reader, selector: str, threshold: Threshold | None, fabric: Fabric
) -> list[tuple[str, int | None]]:
    """(selector, threshold) of each part of the ports that has the same threshold."""
    limits: dict[str, int | None] = {}
    for port in select_ports(fabric, selector, reader.at("ports")):
        if not fabric.by_name[port.node].is_switch:
            rule = f"names {port.name}, a host's port, and only switches cut packets"
            raise SpecError(reader.at("ports"), selector, rule, "write e.g. switches")
        if threshold is not None:
            rate_bps = fabric.link_of(port).rate_bps
            limits[port.name] = threshold.at(rate_bps)
            _check_threshold(reader, limits[port.name] or 0, port.name, rate_bps, fabric)
    if len(set(limits.values())) > 1:
        return list(limits.items())
    return [(selector, next(iter(limits.values()), None))]


def _check_threshold(reader: Reader, limit: int, name: str, rate_bps: int, fabric: Fabric) -> None:
    at = f"is {format_size(limit)} at {name} ({format_rate(rate_bps)})"
    full = fabric.mtu_bytes + ETHERNET_BYTES
    if limit < full:
        rule = f"{at}, less than a full frame, {full} B: every full packet would be cut"
        raise SpecError(reader.at("threshold"), reader.raw("threshold"), rule, "raise it")
    if limit > MAX_THRESHOLD_BYTES:
        raise SpecError(reader.at("threshold"), reader.raw("threshold"), f"{at}, over 4 GiB")
    if limit > fabric.buffer_bytes:
        rule = f"{at}: a switch has only {format_size(fabric.buffer_bytes)} of buffer"
        raise SpecError(reader.at("threshold"), reader.raw("threshold"), rule, "write auto")


def _check_class(reader: Reader, rules: Sequence[TrimRule], lossless: Collection[int]) -> None:
    """Packets of lossless classes are not dropped, and control packets are nothing but headers."""
    for rule in rules:
        if rule.tc == traffic_class(CONTROL_DSCP):
            text = "is the class of acknowledgements and congestion notifications, never cut"
            raise SpecError(reader.at("classes"), rule.tc, text, "name classes of data")
        if rule.tc in lossless:
            text = "is lossless (pfc): its packets wait, and are neither dropped nor cut"
            way_out = "name other classes here or in pfc.classes"
            raise SpecError(reader.at("classes"), rule.tc, text, way_out)


def _check_target(
    reader: Reader, rule: TrimRule, cut: Collection[int], lossless: Collection[int]
) -> None:
    """Cut packets go on where nothing is cut again and nothing is paused."""
    if rule.to_class in cut:
        text = f"goes on in class {rule.to_class}, which another entry makes trimmable"
        raise SpecError(*_target(reader), text, "choose a class that is not trimmable anywhere")
    if rule.to_class in lossless:
        text = (
            f"goes on in class {rule.to_class}, which is lossless (pfc): pausing it holds up "
            f"nobody who sends in class {rule.tc}, so headers would be lost all the same"
        )
        raise SpecError(*_target(reader), text, "choose a lossy class")


def _check_service(
    reader: Reader, rule: TrimRule, fabric: Fabric, service: Mapping[int, Mapping[int, ClassRule]]
) -> None:
    """The headers must not wait until the queue that they could not enter is empty."""
    for port in select_ports(fabric, rule.ports):
        classes = service.get(port.index, {})
        own, other = classes.get(rule.tc), classes.get(rule.to_class)
        if own is not None and other is not None and other.priority > own.priority:
            text = (
                f"goes on in class {rule.to_class}, which {port.name} serves only after class "
                f"{rule.tc} (priority {other.priority} after {own.priority})"
            )
            raise SpecError(*_target(reader), text, "choose a class of the same priority or before")
