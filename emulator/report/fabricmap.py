"""The fabric as it can be drawn: tiers, positions, cables with their load. PURE.

Made from the manifest's port list alone, so that any leaf-spine-like graph can be shown: the tier
of a node is its distance from the hosts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from emulator.results.queues import QueueSeries

_HOST = re.compile(r"h\d+$")
_PLANE = re.compile(r"p(\d+)")


@dataclass(frozen=True)
class MapPort:
    """A port of the manifest: `node` sends through it at `rate_bps` to `peer_node`."""

    name: str
    node: str
    peer_node: str
    rate_bps: float


@dataclass(frozen=True)
class Cable:
    """Two ports that face each other, with the load of the busier direction.

    Attributes:
        lower: node of the lower tier.
        upper: node of the upper tier.
        lane: 0-based number among the cables of the same two nodes.
        lanes: how many such cables there are.
        busy_port: port name of the busier direction.
        load: mean share of the rate that the busier direction used, 0 to 1; NaN when unknown.
        peak: the same for its busiest hundredth of the run.
    """

    lower: str
    upper: str
    lane: int
    lanes: int
    busy_port: str
    load: float
    peak: float


@dataclass(frozen=True)
class FabricMap:
    """Nodes with positions, and cables.

    Attributes:
        tiers: node -> distance from the hosts (0 = host).
        positions: node -> (x in 0..1, y in tiers; below 0 for the second plane).
        cables: all of them.
        ports: the manifest's ports.
    """

    tiers: Mapping[str, int]
    positions: Mapping[str, tuple[float, float]]
    cables: tuple[Cable, ...]
    ports: tuple[MapPort, ...] = ()


def manifest_ports(manifest: Mapping[str, Any]) -> list[MapPort]:
    """The port list; `peer` may name the other port or the other node."""
    raw = manifest.get("ports") or []
    node_of = {str(port["name"]): str(port["node"]) for port in raw}
    return [
        MapPort(
            str(port["name"]),
            str(port["node"]),
            node_of.get(str(port["peer"]), str(port["peer"])),
            float(port["rate_bps"]),
        )
        for port in raw
    ]


def hosts_of(ports: Sequence[MapPort]) -> set[str]:
    """Names of the hosts: ``h1``, ...; without such names the nodes with a single port."""
    nodes = [port.node for port in ports]
    named = {node for node in nodes if _HOST.match(node)}
    return named or {node for node in nodes if nodes.count(node) == 1}


def node_tiers(ports: Sequence[MapPort]) -> dict[str, int]:
    """Distance of each node from the hosts; hosts 0, leaves 1, spines 2."""
    tiers = dict.fromkeys(sorted(hosts_of(ports), key=natural), 0)
    frontier = set(tiers)
    while frontier:
        level = max(tiers.values()) + 1
        frontier = {p.peer_node for p in ports if p.node in frontier and p.peer_node not in tiers}
        tiers |= dict.fromkeys(sorted(frontier, key=natural), level)
    return tiers


def natural(name: str) -> list[tuple[int, str]]:
    """Sort key: h2 before h10."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]


def build_map(manifest: Mapping[str, Any], samples: QueueSeries | None) -> FabricMap | None:
    """The map, or None when the manifest has no ports."""
    ports = manifest_ports(manifest)
    if not ports:
        return None
    tiers = node_tiers(ports)
    loads = port_loads(ports, samples)
    cables = tuple(_cables(ports, tiers, loads))
    return FabricMap(tiers, _positions(ports, tiers), cables, tuple(ports))


def port_words(ports: Sequence[MapPort]) -> dict[str, str]:
    """Port name -> where it sends: ``leaf1 to spine2 (leaf1-eth4)``."""
    return {port.name: f"{port.node} to {port.peer_node} ({port.name})" for port in ports}


def port_loads(
    ports: Sequence[MapPort], samples: QueueSeries | None
) -> dict[str, tuple[float, float]]:
    """Port -> (mean, peak) share of its rate while the run sent anything; NaN when unknown."""
    unknown = dict.fromkeys((port.name for port in ports), (np.nan, np.nan))
    if samples is None or len(samples.time_ns) < 2:
        return unknown
    sent = samples.arrays["tx_bytes"]
    moving = np.flatnonzero(np.diff(sent.sum(axis=1, dtype=np.float64)) > 0)
    if not len(moving):
        return dict.fromkeys(unknown, (0.0, 0.0))
    first, last = int(moving[0]), int(moving[-1]) + 1
    known = {name: at for at, name in enumerate(samples.ports)}
    times = samples.time_ns[first : last + 1]
    return unknown | {
        port.name: _load(times, sent[first : last + 1, known[port.name]], port.rate_bps)
        for port in ports
        if port.name in known
    }


def _load(times: Any, sent: Any, rate_bps: float) -> tuple[float, float]:
    capacity = rate_bps / 8e9
    mean = float(sent[-1] - sent[0]) / (float(times[-1] - times[0]) * capacity)
    edges = np.linspace(times[0], times[-1], min(100, len(times) - 1) + 1)
    steps = np.diff(np.interp(edges, times, sent)) / (np.diff(edges) * capacity)
    return mean, float(steps.max())


def _cables(
    ports: Sequence[MapPort],
    tiers: Mapping[str, int],
    loads: Mapping[str, tuple[float, float]],
) -> list[Cable]:
    up: dict[tuple[str, str], list[str]] = {}
    down: dict[tuple[str, str], list[str]] = {}
    for port in ports:
        upwards = (tiers.get(port.node, 0), port.node) < (
            tiers.get(port.peer_node, 0),
            port.peer_node,
        )
        pair = (port.node, port.peer_node) if upwards else (port.peer_node, port.node)
        (up if upwards else down).setdefault(pair, []).append(port.name)
    cables = []
    for pair in sorted({*up, *down}, key=lambda pair: (natural(pair[0]), natural(pair[1]))):
        ends = list(zip(up.get(pair, []), down.get(pair, []), strict=False))
        for lane, both in enumerate(ends):
            busy = max(both, key=lambda name: np.nan_to_num(loads[name][0], nan=-1.0))
            cables.append(Cable(*pair, lane, len(ends), busy, *loads[busy]))
    return cables


def plane_of(name: str) -> int:
    """Plane of a switch, from the address plan's names: ``p2leaf1`` -> 2, ``leaf1`` -> 1."""
    match = _PLANE.match(name)
    return int(match.group(1)) if match else 1


def _positions(
    ports: Sequence[MapPort], tiers: Mapping[str, int]
) -> dict[str, tuple[float, float]]:
    """Hosts in the order of their first leaf, switches above the middle of what is below them."""
    below: dict[str, list[str]] = {}
    for port in ports:
        if tiers.get(port.peer_node, 0) < tiers.get(port.node, 0):
            below.setdefault(port.node, []).append(port.peer_node)
    hosts = _host_order(tiers, below)
    positions = {name: ((at + 0.5) / len(hosts), 0.0) for at, name in enumerate(hosts)}
    for plane in sorted({plane_of(name) for name, tier in tiers.items() if tier}):
        sign = 1.0 if plane % 2 else -1.0
        for tier in range(1, max(tiers.values()) + 1):
            row = [n for n, level in tiers.items() if level == tier and plane_of(n) == plane]
            positions |= _row_positions(row, tier, sign, below, positions)
    return positions


def _host_order(tiers: Mapping[str, int], below: Mapping[str, Sequence[str]]) -> list[str]:
    leaves = sorted((name for name, tier in tiers.items() if tier == 1), key=natural)
    ordered = [host for leaf in leaves for host in sorted(below.get(leaf, ()), key=natural)]
    ordered += [name for name, tier in tiers.items() if tier == 0]
    return list(dict.fromkeys(ordered))


def _row_positions(
    row: Sequence[str],
    tier: int,
    sign: float,
    below: Mapping[str, Sequence[str]],
    placed: Mapping[str, tuple[float, float]],
) -> dict[str, tuple[float, float]]:
    row = sorted(row, key=natural)
    if tier > 1:
        return {name: ((at + 0.5) / len(row), sign * tier) for at, name in enumerate(row)}
    middles = {
        name: float(np.mean([placed[n][0] for n in below.get(name, ()) if n in placed] or [0.5]))
        for name in row
    }
    if len(set(middles.values())) < len(row):
        middles = {name: (at + 0.5) / len(row) for at, name in enumerate(row)}
    return {name: (middles[name], sign * tier) for name in row}
