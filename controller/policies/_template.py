"""Template of a routing policy: copy it to ``NAME.py`` and change it.

Then add ``register("NAME", NAME.build)`` at the end of ``registry.py``; ``routing: {policy: NAME}``
selects it from there on. `tests/generative/test_routing.py` runs every registered policy over many
fabrics and link failures: all pairs must reach, without loops, and come back to the same paths.

A policy must be a pure function of the group: the same group gives the same spread, in every
process (never Python's `hash`, never the clock). Take randomness from the group's key, as
`controller.core.buckets.stable_hash` and `assign` do.
"""

from __future__ import annotations

from controller.core.buckets import assign
from controller.policies.base import Group, Spread
from topologies.model import Fabric
from topologies.reading import Reader


class Template:
    """Gives one favourite neighbour so many times the weight of the others."""

    name = "template"

    def __init__(self, favourite: str, times: int) -> None:
        self._favourite = favourite
        self._times = times

    def spread(self, group: Group) -> Spread:
        """Weights of all ways as built and of those that work now; `assign` does the rest."""
        weights = {
            c.port: self._times if c.neighbour == self._favourite else 1 for c in group.candidates
        }
        usable = {c.port: weights[c.port] for c in group.candidates if c.usable}
        return Spread(assign(weights, usable, *group.key))


def build(options: Reader, fabric: Fabric) -> Template:
    """Read the options; the caller rejects every key that is not read here."""
    spines = [node.name for node in fabric.switches]
    favourite = options.choice("favourite", spines, what="switch")
    return Template(favourite, options.integer("times", 2, minimum=1, maximum=63))
