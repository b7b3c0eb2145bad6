"""Weighted cost: every way gets buckets in proportion to what it can carry to the destination.

The weight is the downstream capacity: the link's own rate or its part of what the next switch can
pass on, whichever is less (Zhou et al., "WCMP", EuroSys 2014). It differs from ``ecmp`` when links
have unequal rates, or when a spine has lost some of its parallel links to the destination. A way
that works gets at least one of the 64 buckets, so ratios beyond 63:1 are rounded.

Options: none.
"""

from __future__ import annotations

import math

from controller.core.buckets import assign
from controller.policies.base import Candidate, Group, Spread
from topologies.model import Fabric
from topologies.reading import Reader


class Wcmp:
    """The policy ``wcmp``."""

    name = "wcmp"

    def spread(self, group: Group) -> Spread:
        """The capacity of each usable way as its weight."""
        normal, current = _weights(group.normal), _weights(group.candidates)
        return Spread(assign(normal, current, *group.key))


def _weights(candidates: tuple[Candidate, ...]) -> dict[int, int]:
    """Capacities without their common factor."""
    divisor = math.gcd(*(candidate.onward_bps for candidate in candidates)) or 1
    return {candidate.port: candidate.onward_bps // divisor for candidate in candidates}


def build(options: Reader, fabric: Fabric) -> Wcmp:
    """Make the policy from its options."""
    return Wcmp()
