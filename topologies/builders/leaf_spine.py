"""Kind ``leaf-spine``: every leaf is linked to every spine, hosts hang below the leaves.

    kind: leaf-spine
    leaves: 4                     # 1..254
    spines: 2                     # 0..254; 0 only with a single leaf
    hosts_per_leaf: 4             # or a list, one number per leaf
    host_link: {rate: 100 Gbit/s, delay: 500 ns}
    fabric_link: {rate: 100 Gbit/s, delay: 1 us, parallel: 1}
    oversubscription: 2           # instead of fabric_link.rate: each leaf's hosts over its uplinks
    links: [{between: [leaf1, spine2], lane: 1, rate: 40 Gbit/s}]      # unequal links
    buffer: 16 MB                 # per switch, shared
    mtu: 4200 B

Only ``leaves``, ``spines`` and ``hosts_per_leaf`` have no default. ``oversubscription`` is
applied leaf by leaf, before ``links``.
"""

from __future__ import annotations

from collections.abc import Mapping

from topologies.builders._plane import join_planes, read_plane, read_switch_settings
from topologies.model import Fabric
from topologies.reading import Reader
from topologies.registry import register

KIND = "leaf-spine"


@register(KIND)
def build_leaf_spine(raw: Mapping[str, object], path: str) -> Fabric:
    """The fabric that a mapping of this kind describes; `SpecError` when it is wrong."""
    with Reader(raw, path) as reader:
        reader.choice("kind", [KIND], KIND)
        shape = read_plane(reader)
        buffer_bytes, mtu_bytes = read_switch_settings(reader)
    return join_planes(KIND, [shape], buffer_bytes, mtu_bytes)
