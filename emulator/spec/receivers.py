"""Reader of the section ``receivers``: hosts that take data slower than their links bring it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from emulator.spec.keys import with_defaults
from topologies import units
from topologies.errors import SpecError, UnknownNameError
from topologies.model import Fabric, Link
from topologies.pause import XON_OFFSET_FRAMES, frame_bytes, headroom_bytes, response_ns
from topologies.reading import REQUIRED, Reader, as_list, as_mapping, as_text, join
from topologies.settings import PfcRule

STUCK = "stuck"
_NONE = (None, "none")


@dataclass(frozen=True)
class ReceiverSpec:
    """A slow receiver: above XOFF of its NIC's buffer it pauses its leaf.

    Attributes:
        host: its name.
        rate_bps: how fast it takes data of each lossless class; 0 = not at all.
        buffer_bytes: of its NIC, for each lossless class.
        start_ns: from when on it is slow, model ns.
        duration_ns: for how long; None = to the end.
    """

    host: str
    rate_bps: int
    buffer_bytes: int
    start_ns: int = 0
    duration_ns: int | None = None

    def xoff_bytes(self, link: Link, mtu_bytes: int) -> int:
        """What its NIC holds when it pauses: the rest is headroom."""
        return self.buffer_bytes - headroom_bytes(link, mtu_bytes, response_ns(link.rate_bps))

    def xon_bytes(self, link: Link, mtu_bytes: int) -> int:
        """What its NIC holds when it lets its leaf go on."""
        return self.xoff_bytes(link, mtu_bytes) - XON_OFFSET_FRAMES * frame_bytes(mtu_bytes)


def read_receivers(raw: object, fabric: Fabric, pfc: Sequence[PfcRule]) -> tuple[ReceiverSpec, ...]:
    """The ``receivers`` section.

    Args:
        raw: the section as merged.
        fabric: with the hosts.
        pfc: the pause rules: without a lossless class a receiver cannot pause.
    """
    found: dict[str, ReceiverSpec] = {}
    for path, entry in as_list(raw, "receivers"):
        for spec in _entry(as_mapping(entry, path), path, fabric):
            if spec.host in found:
                raise SpecError(join(path, "hosts"), spec.host, "stands in two entries")
            found[spec.host] = spec
    if found and not pfc:
        rule = "pause their leaves, but no class is lossless"
        raise SpecError("receivers", sorted(found), rule, "add pfc: {classes: [3]}")
    return tuple(found.values())


def _entry(raw: Mapping[str, object], path: str, fabric: Fabric) -> list[ReceiverSpec]:
    with Reader(with_defaults("receivers[]", raw), path) as reader:
        hosts = reader.items("hosts", minimum=1)
        rate_bps = reader.get("rate", _rate, REQUIRED)
        buffer_bytes = reader.size("buffer")
        start_ns = reader.duration("start")
        duration_ns = reader.get("duration", _duration, None)
    names = [_host(value, place, fabric) for place, value in hosts]
    specs = [ReceiverSpec(name, rate_bps, buffer_bytes, start_ns, duration_ns) for name in names]
    for spec in specs:
        for port in fabric.ports_of[spec.host]:
            _check(spec, fabric.link_of(port), fabric.mtu_bytes, reader)
    return specs


def _rate(value: object, path: str) -> int:
    return 0 if value == STUCK else units.parse_rate(value, path)


def _duration(value: object, path: str) -> int | None:
    return None if value in _NONE else units.parse_duration(value, path, allow_zero=False)


def _host(value: object, path: str, fabric: Fabric) -> str:
    name = as_text(value, path)
    hosts = [host.name for host in fabric.hosts]
    if name not in hosts:
        raise UnknownNameError(path, "host", name, hosts)
    return name


def _check(spec: ReceiverSpec, link: Link, mtu_bytes: int, reader: Reader) -> None:
    if spec.rate_bps >= link.rate_bps:
        rule = f"is not slower than the link of {spec.host}, {units.format_rate(link.rate_bps)}"
        raise SpecError(
            reader.at("rate"), reader.raw("rate"), rule, "lower it, or remove the entry"
        )
    if spec.xon_bytes(link, mtu_bytes) < 0:
        least = spec.buffer_bytes - spec.xon_bytes(link, mtu_bytes)
        rule = f"is too small for what comes after a pause of {spec.host}"
        way_out = f"write at least {units.format_size(least)}"
        raise SpecError(reader.at("buffer"), reader.raw("buffer"), rule, way_out)
