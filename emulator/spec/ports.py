"""Readers of the per-port sections: ``ecn``, ``scheduler``, ``buffers``, ``pcap``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from emulator.spec.keys import with_defaults
from topologies import units
from topologies.errors import SpecError
from topologies.model import Fabric, Port
from topologies.reading import (
    REQUIRED,
    Reader,
    Required,
    as_list,
    as_mapping,
    as_text,
    join,
)
from topologies.settings import (
    CLASSES,
    MAX_WEIGHT,
    BufferRule,
    ClassRule,
    EcnRule,
    select_ports,
)

EVERY_PORT = "all"
MIN_ALPHA, MAX_ALPHA = 1 / 256, 256.0
"""The data plane keeps alpha in steps of 1/256; switch chips go up to 2^7 (SAI dynamic_th)."""
MAX_THRESHOLD_BYTES = 2**32 - 1
_PER_RATE = re.compile(r"(.+?)\s*(?:\bper\b|/)\s*(?:1\s*)?(?:Gbit/s|Gbps|Gb/s|Gbit)\s*")
_GBPS = 1_000_000_000
NONE = (None, "none")
"""What switches an optional section off."""


@dataclass(frozen=True)
class Threshold:
    """A queue length, absolute or for each Gbit/s of the port's rate."""

    size_bytes: int
    per_gbps: bool

    def at(self, rate_bps: int) -> int:
        """The threshold at a port of this rate, bytes."""
        if not self.per_gbps:
            return self.size_bytes
        return (self.size_bytes * rate_bps + _GBPS // 2) // _GBPS


def parse_threshold(value: object, path: str) -> Threshold:
    """``400 KB`` or ``4 KB per Gbit/s``."""
    match = _PER_RATE.fullmatch(value) if isinstance(value, str) else None
    size_bytes = units.parse_size(match[1] if match else value, path, allow_zero=True)
    return Threshold(size_bytes, match is not None)


def read_classes(reader: Reader, default: Sequence[int] | Required) -> tuple[int, ...]:
    """The ``classes`` of an entry, each at most once."""
    classes = reader.integers("classes", default, minimum=0, maximum=CLASSES - 1)
    for position, tc in enumerate(classes):
        if tc in classes[:position]:
            raise SpecError(join(reader.at("classes"), position), tc, "stands twice", "remove it")
    return tuple(classes)


def read_ecn(raw: object, fabric: Fabric, classes: Sequence[int]) -> tuple[EcnRule, ...]:
    """The ``ecn`` section: one mapping, a list of them, or none; later entries win.

    Args:
        raw: the section as merged.
        fabric: whose ports mark.
        classes: traffic classes of an entry that names none.
    """
    if raw in NONE:
        return ()
    entries = [("ecn", raw)] if not isinstance(raw, list) else as_list(raw, "ecn")
    return tuple(rule for path, entry in entries for rule in _ecn(entry, path, fabric, classes))


def _ecn(raw: object, path: str, fabric: Fabric, classes: Sequence[int]) -> list[EcnRule]:
    with Reader(with_defaults("ecn[]", as_mapping(raw, path)), path) as reader:
        tcs = read_classes(reader, classes)
        selector = reader.text("ports")
        kmin = reader.get("kmin", parse_threshold, REQUIRED)
        kmax = reader.get("kmax", parse_threshold, REQUIRED)
        pmax = reader.fraction("pmax", allow_zero=False)
    ports = select_ports(fabric, selector, join(path, "ports"))
    for port in ports:
        _check_thresholds(reader, kmin, kmax, port, fabric)
    places = _by_rate(selector, ports, fabric, kmin.per_gbps or kmax.per_gbps)
    return [
        EcnRule(tc, kmin.at(rate_bps), kmax.at(rate_bps), pmax, place)
        for place, rate_bps in places
        for tc in tcs
    ]


def _by_rate(
    selector: str, ports: Sequence[Port], fabric: Fabric, relative: bool
) -> list[tuple[str, int]]:
    """(selector, rate) of each part of the ports that has the same thresholds."""
    rates = {port.name: fabric.link_of(port).rate_bps for port in ports}
    if not relative or len(set(rates.values())) == 1:
        return [(selector, next(iter(rates.values())))]
    return list(rates.items())


def _check_thresholds(
    reader: Reader, kmin: Threshold, kmax: Threshold, port: Port, fabric: Fabric
) -> None:
    rate_bps = fabric.link_of(port).rate_bps
    low, high = kmin.at(rate_bps), kmax.at(rate_bps)
    at = f"at {port.name} ({units.format_rate(rate_bps)})"
    if high > MAX_THRESHOLD_BYTES:
        raise SpecError(reader.at("kmax"), reader.raw("kmax"), f"is over 4 GiB {at}")
    if high < low:
        rule = f"is {units.format_size(high)} {at}, below kmin, {units.format_size(low)}"
        raise SpecError(reader.at("kmax"), reader.raw("kmax"), rule, "write kmin <= kmax")
    if low >= fabric.buffer_bytes:
        rule = (
            f"is {units.format_size(low)} {at}: a switch has only "
            f"{units.format_size(fabric.buffer_bytes)} of buffer, so nothing would be marked"
        )
        raise SpecError(reader.at("kmin"), reader.raw("kmin"), rule, "lower it")


def read_scheduler(raw: object, fabric: Fabric) -> tuple[ClassRule, ...]:
    """The ``scheduler`` section; classes that no entry for all ports names come first, equal."""
    rules: list[ClassRule] = []
    for path, entry in as_list(raw, "scheduler"):
        with Reader(with_defaults("scheduler[]", as_mapping(entry, path)), path) as reader:
            tcs = read_classes(reader, REQUIRED)
            priority = reader.integer("priority", minimum=0, maximum=CLASSES - 1)
            weight = reader.integer("weight", minimum=1, maximum=MAX_WEIGHT)
            selector = reader.text("ports")
        select_ports(fabric, selector, join(path, "ports"))
        rules += [ClassRule(tc, priority, weight, selector) for tc in tcs]
    return (*_unnamed(rules), *rules)


def _unnamed(rules: Sequence[ClassRule]) -> list[ClassRule]:
    entry = with_defaults("scheduler[]", {})
    named = {rule.tc for rule in rules if rule.ports == EVERY_PORT}
    return [
        ClassRule(tc, entry["priority"], entry["weight"], EVERY_PORT)
        for tc in range(CLASSES)
        if tc not in named
    ]


def read_buffers(raw: object) -> tuple[BufferRule, ...]:
    """The ``buffers`` section: alpha of each of the eight classes."""
    entries = [("buffers", raw)] if not isinstance(raw, list) else as_list(raw, "buffers")
    default = with_defaults("buffers[]", {})["alpha"]
    alphas: dict[int, float] = dict.fromkeys(range(CLASSES), float(default))
    named: set[int] = set()
    for path, entry in entries:
        with Reader(with_defaults("buffers[]", as_mapping(entry, path)), path) as reader:
            tcs = read_classes(reader, range(CLASSES))
            alpha = reader.get("alpha", parse_alpha, default)
        for tc in tcs:
            if tc in named:
                raise SpecError(reader.at("classes"), tc, "has its alpha in an earlier entry")
            named.add(tc)
            alphas[tc] = alpha
    return tuple(BufferRule(tc, alpha) for tc, alpha in alphas.items())


def parse_alpha(value: object, path: str) -> float:
    """A dynamic threshold's factor in the steps that the data plane has."""
    alpha = units.parse_fraction(value, path, maximum=MAX_ALPHA, allow_zero=False)
    if alpha < MIN_ALPHA:
        raise SpecError(path, value, "must be at least 1/256", "write e.g. 1/8")
    return alpha


def read_pcap(raw: object, fabric: Fabric) -> tuple[str, ...]:
    """The ``pcap`` key: names of the ports to capture, in port order."""
    if raw in (None, False, "none"):
        return ()
    selectors: list[tuple[str, Any]] = [("pcap", EVERY_PORT)]
    if raw is not True:
        selectors = as_list(raw, "pcap")
    chosen = {
        port.index
        for path, selector in selectors
        for port in select_ports(fabric, as_text(selector, path), path)
    }
    return tuple(fabric.port(index).name for index in sorted(chosen))
