"""Template of a builder: copy it to a file without the leading underscore and change it.

The contract of a builder:

- It is registered under the name that users write as ``fabric.kind`` and is a function of the
  raw mapping (``kind`` included) and its key path. Importing the package registers it.
- It reads every key through a `Reader` and closes it, so an unknown key, a wrong unit or a value
  out of range is a `SpecError` with the key path. It never ignores a key.
- It returns a `Fabric` in target units: nodes as hosts, leaves, spines; links as host links, then
  fabric links, `Link.id` being the position; end ``a`` the lower node, end ``b`` the upper one;
  `Link.lane` counting the parallel links of two nodes from 1.
- Node names are unique and short (interface names are ``<node>-eth<n>``, 15 characters at most);
  (role, plane, index) is unique, because datapath ids come from it.
- `Fabric.attachment` seats every host on a leaf of each plane that it is in; addresses come from
  it, so leaf and host numbers stay within 1..254.
- It is pure: the same mapping gives an equal fabric. `verify` checks the result afterwards.

Document the keys in the module's docstring and in the configuration reference. The generative
tests in tests/generative/test_topologies.py take a list of mappings: add some of the new kind.
"""

from __future__ import annotations

from collections.abc import Mapping

from topologies.addressing import MAX_INDEX
from topologies.model import Fabric, Link, Node, Role
from topologies.reading import Reader

KIND = "template"


# In the copy: @register(KIND), from topologies.registry.
def build_template(raw: Mapping[str, object], path: str) -> Fabric:
    """One switch with hosts: ``{kind: template, hosts: 8, rate: 100 Gbit/s, delay: 500 ns}``."""
    with Reader(raw, path) as reader:
        reader.choice("kind", [KIND], KIND)
        hosts = reader.integer("hosts", minimum=1, maximum=MAX_INDEX)
        rate_bps = reader.rate("rate", 100_000_000_000)
        delay_ns = reader.duration("delay", 500)
        buffer_bytes = reader.size("buffer", 16_000_000)
        mtu_bytes = reader.size("mtu", 4_200)
    names = [f"h{i}" for i in range(1, hosts + 1)]
    return Fabric(
        kind=KIND,
        nodes=(
            *(Node(name, Role.HOST, 0, i) for i, name in enumerate(names, start=1)),
            Node("leaf1", Role.LEAF, 1, 1),
        ),
        links=tuple(Link(i, name, "leaf1", rate_bps, delay_ns) for i, name in enumerate(names)),
        buffer_bytes=buffer_bytes,
        mtu_bytes=mtu_bytes,
        attachment={(name, 1): (1, i) for i, name in enumerate(names, start=1)},
    )
