"""Equal cost: every way that works gets the same number of buckets, give or take one.

No knowledge of load or capacity, like the ECMP of a switch (RFC 2992 discusses the hash). The
buckets of a way that fails move to the others; no other bucket moves.

Options: none.
"""

from __future__ import annotations

from controller.core.buckets import assign
from controller.policies.base import Candidate, Group, Spread
from topologies.model import Fabric
from topologies.reading import Reader


class Ecmp:
    """The policy ``ecmp``."""

    name = "ecmp"

    def spread(self, group: Group) -> Spread:
        """One weight for every usable way."""
        normal, current = _weights(group.normal), _weights(group.candidates)
        return Spread(assign(normal, current, *group.key))


def _weights(candidates: tuple[Candidate, ...]) -> dict[int, int]:
    return {candidate.port: int(candidate.usable) for candidate in candidates}


def build(options: Reader, fabric: Fabric) -> Ecmp:
    """Make the policy from its options."""
    return Ecmp()
