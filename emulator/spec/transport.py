"""Reader of the section ``transport``: how NICs deliver messages."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from emulator.spec.model import (
    AUTO,
    CREDIT,
    DCQCN,
    DCTCP,
    GO_BACK_N,
    NO_CONTROL,
    UET,
    UNLIMITED,
    TransportSpec,
)
from emulator.spec.ports import NONE
from topologies.errors import SpecError, UnknownNameError
from topologies.model import Fabric
from topologies.reading import Reader, as_choice, as_flag, as_integer, as_number
from topologies.units import parse_duration, parse_fraction, parse_rate, parse_size
from traffic import dcqcn_params, dctcp_params, uet_params, wire
from traffic.dcqcn_params import DcqcnParams
from traffic.dctcp_params import DctcpParams
from traffic.entropies import MOST
from traffic.uet_params import NSCC, RCCC, SPRAYS, UetParams

MAX_PAYLOAD_BYTES = 4096
"""Largest path MTU of RDMA (IBTA volume 1, 11.2.5)."""
MIN_PAYLOAD_BYTES = 64
AETH_RESERVE_BYTES = wire.AETH_BYTES
"""Room that an automatic payload leaves, so that every packet type fits the MTU."""
MAX_WINDOW = 2**23
"""Half of the 24-bit sequence numbers (IBTA volume 1, 9.7.2)."""

BOTH = f"{NSCC}+{RCCC}"
"""Control of ``uet``: the sender's window and the receiver's credits."""

Params = type[DcqcnParams] | type[DctcpParams] | type[UetParams]


@dataclass(frozen=True)
class Kind:
    """What a kind of transport offers.

    Attributes:
        controls: congestion controls, the default first.
        sets: published parameter sets by name, the default first; empty = there is nothing to set.
        params: what a set is.
        marked: controls that need switches which mark.
    """

    controls: tuple[str, ...]
    sets: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    params: Params | None = None
    marked: tuple[str, ...] = ()


def _first(name: str, sets: Mapping[str, Any]) -> dict[str, Any]:
    """The sets, one of them first."""
    return {name: sets[name], **sets}


KINDS = {
    GO_BACK_N: Kind(
        (NO_CONTROL, DCQCN), _first("hpcc", dcqcn_params.PARAMETER_SETS), DcqcnParams, (DCQCN,)
    ),
    DCTCP: Kind((DCTCP,), dctcp_params.PARAMETER_SETS, DctcpParams, (DCTCP,)),
    UET: Kind((NSCC, RCCC, BOTH, NO_CONTROL), uet_params.PARAMETER_SETS, UetParams, (NSCC, BOTH)),
    CREDIT: Kind((NO_CONTROL,)),
}
"""Every kind of transport by its name."""


def read_transport(raw: object, fabric: Fabric) -> TransportSpec:
    """The ``transport`` section.

    Raises:
        SpecError: a value is wrong, or does not go with the kind of transport.
    """
    with Reader(raw, "transport") as reader:
        name = reader.choice("kind", KINDS, what="transport")
        kind = KINDS[name]
        return TransportSpec(
            kind=name,
            control=reader.get("control", _one_of(kind.controls, f"control of {name}"), AUTO),
            params=_read_set(reader, name),
            overrides=_read_overrides(reader, name),
            payload_bytes=_read_payload(reader, fabric.mtu_bytes),
            window=reader.get("window", _window, AUTO),
            retransmit_timeout_ns=reader.get("retransmit_timeout", _timeout, None),
        )


def _one_of(known: tuple[str, ...], what: str) -> Callable[[object, str], str]:
    """A parser of one of some names; ``auto`` is the first."""

    def parse(value: object, path: str) -> str:
        if value == AUTO:
            return known[0]
        if not isinstance(value, str) or value not in known:
            raise UnknownNameError(path, what, value, (AUTO, *known))
        return value

    return parse


def _read_set(reader: Reader, name: str) -> str:
    sets = tuple(KINDS[name].sets)
    if sets:
        return str(reader.get("params", _one_of(sets, f"parameter set of {name}"), AUTO))
    value = reader.raw("params")
    if value != AUTO:
        rule = f"names a parameter set, and {name} has none"
        raise SpecError(reader.at("params"), value, rule, "leave it out")
    return AUTO


def _window(value: object, path: str) -> int | str:
    if value in (AUTO, UNLIMITED):
        return str(value)
    if isinstance(value, str):
        raise UnknownNameError(path, "window", value, (AUTO, UNLIMITED, "a number of packets"))
    return as_integer(value, path, minimum=1, maximum=MAX_WINDOW)


def _timeout(value: object, path: str) -> int | None:
    return None if value == AUTO else parse_duration(value, path, allow_zero=False)


def _read_payload(reader: Reader, mtu_bytes: int) -> int:
    """Payload of a full packet: as written, or the largest multiple of 4 that fits."""
    largest = wire.max_payload_bytes(mtu_bytes)
    if reader.raw("payload") == AUTO:
        payload_bytes = min(
            MAX_PAYLOAD_BYTES, wire.max_payload_bytes(mtu_bytes - AETH_RESERVE_BYTES)
        )
        if payload_bytes < MIN_PAYLOAD_BYTES:
            rule = f"leaves no room for a payload of {MIN_PAYLOAD_BYTES} bytes"
            way_out = f"write at least {MIN_PAYLOAD_BYTES + _overhead()} B"
            raise SpecError("fabric.mtu", mtu_bytes, rule, way_out)
        return payload_bytes
    payload_bytes = reader.size("payload")
    value, path = reader.raw("payload"), reader.at("payload")
    if payload_bytes > largest:
        rule = f"does not fit: the MTU is {mtu_bytes} B and headers take {wire.IP_OVERHEAD_BYTES} B"
        raise SpecError(path, value, rule, f"write at most {largest} B, or raise fabric.mtu")
    if payload_bytes < MIN_PAYLOAD_BYTES or payload_bytes > MAX_PAYLOAD_BYTES or payload_bytes % 4:
        rule = f"must be a multiple of 4 from {MIN_PAYLOAD_BYTES} to {MAX_PAYLOAD_BYTES}"
        raise SpecError(path, value, rule, "write e.g. 4096 B, or auto")
    return payload_bytes


def _overhead() -> int:
    return wire.IP_OVERHEAD_BYTES + AETH_RESERVE_BYTES


def _read_overrides(reader: Reader, name: str) -> tuple[tuple[str, Any], ...]:
    """Single parameters, by the fields of the kind's parameter sets without their unit."""
    with reader.mapping("overrides", {}) as inner:
        found = []
        for field in override_fields(name):
            key = override_key(field.name)
            if inner.has(key):
                found.append((field.name, _parameter(inner.raw(key), inner.at(key), field)))
    return tuple(found)


def override_fields(name: str) -> list[dataclasses.Field[Any]]:
    """The fields of a kind's parameter sets that a file may change."""
    params = KINDS[name].params
    fields = () if params is None else dataclasses.fields(params)
    return [f for f in fields if f.name not in ("name", "source")]


def override_key(field: str) -> str:
    """``cnp_interval_ns`` -> ``cnp_interval``, ``min_rate_bps`` -> ``min_rate``."""
    name, _, unit = field.rpartition("_")
    return name if unit in ("ns", "bps", "packets", "times") else field


def _parameter(value: object, path: str, field: dataclasses.Field[Any]) -> Any:
    """One parameter, read by the unit in its field's name or by its type."""
    kind = str(field.type)
    if "None" in kind and value in NONE:
        return None
    kind, unit = kind.split(" ", maxsplit=1)[0], field.name.rsplit("_", 1)[-1]
    parse = next(_PARSERS[name] for name in (unit, f"{kind} {unit}", kind) if name in _PARSERS)
    return parse(value, path)


def _pool(value: object, path: str) -> int:
    """Size of a pool of entropies."""
    size = as_integer(value, path, minimum=1, maximum=MOST)
    if size & (size - 1):
        raise SpecError(path, value, "is no power of two", "write e.g. 64")
    return size


_PARSERS: dict[str, Callable[[Any, str], Any]] = {
    "ns": parse_duration,
    "bps": parse_rate,
    "bytes": parse_size,
    "bool": as_flag,
    "int": lambda value, path: as_integer(value, path, minimum=1),
    "float": parse_fraction,
    "float packets": lambda value, path: as_number(value, path, minimum=0),
    "float times": lambda value, path: as_number(value, path, minimum=0),
    "int entropies": _pool,
    "str spray": lambda value, path: as_choice(value, path, SPRAYS, "order of entropies"),
}
"""By the last word of a field's name, by its type and that word, or by its type."""
