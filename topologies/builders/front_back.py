"""Kind ``front-back``: two leaf-spine fabrics side by side with the same hosts in both.

    kind: front-back
    buffer: 16 MB
    mtu: 4200 B
    front: {leaves: 2, spines: 1, hosts_per_leaf: 8, host_link: {rate: 100 Gbit/s}}   # plane 1
    back:  {leaves: 4, spines: 4, hosts_per_leaf: 4, host_link: {rate: 400 Gbit/s}}   # plane 2

Both sections take the keys of ``leaf-spine``. Hosts are counted through in each plane, so h1 is
the first host of the first leaf in both; the planes may spread them differently over leaves.
Switches of the back plane are called ``p2leaf1``, ``p2spine1``, also in its ``links:`` list.
Buffer and MTU are the same everywhere: write them once, here or in a section.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from topologies.builders._plane import (
    DEFAULT_BUFFER_BYTES,
    DEFAULT_MTU_BYTES,
    PlaneShape,
    join_planes,
    read_plane,
)
from topologies.errors import SpecError
from topologies.model import Fabric
from topologies.reading import Reader
from topologies.registry import register

KIND = "front-back"


@register(KIND)
def build_front_back(raw: Mapping[str, object], path: str) -> Fabric:
    """The fabric that a mapping of this kind describes; `SpecError` when it is wrong."""
    with Reader(raw, path) as reader:
        reader.choice("kind", [KIND], KIND)
        with reader.mapping("front") as front, reader.mapping("back") as back:
            shapes = [read_plane(front), read_plane(back)]
            buffer_bytes = _shared_size([reader, front, back], "buffer", DEFAULT_BUFFER_BYTES)
            mtu_bytes = _shared_size([reader, front, back], "mtu", DEFAULT_MTU_BYTES)
    _check_hosts(shapes, back.at("hosts_per_leaf"))
    return join_planes(KIND, shapes, buffer_bytes, mtu_bytes)


def _shared_size(readers: Sequence[Reader], key: str, default: int) -> int:
    """The one value that the sections give, in bytes; an error when they disagree."""
    given = [(reader, reader.size(key)) for reader in readers if reader.has(key)]
    for reader, size_bytes in given:
        if size_bytes != given[0][1]:
            rule = f"differs from {given[0][0].at(key)}, and both planes share one {key}"
            way_out = f"write {key} once, beside front and back"
            raise SpecError(reader.at(key), reader.raw(key), rule, way_out)
    return given[0][1] if given else default


def _check_hosts(shapes: Sequence[PlaneShape], path: str) -> None:
    front, back = (shape.hosts for shape in shapes)
    if front != back:
        rule = f"makes {back} hosts in the back plane, but the front plane has {front}"
        value = list(shapes[1].hosts_per_leaf)
        raise SpecError(
            path, value, rule, "both planes connect the same hosts: make the sums equal"
        )
