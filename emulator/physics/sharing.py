"""PURE: how flows share a network, as fluids.

Max-min fairness is what the reference tables assume. Fixed windows through first-in-first-out
queues come to another allocation, the weighted proportionally fair one (L. Massoulie and
J. Roberts, "Bandwidth sharing: objectives and algorithms", IEEE/ACM ToN 10(3), 2002): where every
flow has one bottleneck the two are the same.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_SWEEPS = 2000
_PRECISE = 1e-6


@dataclass(frozen=True)
class Network:
    """Which flows use which links.

    Attributes:
        uses: flow x link, 1 where the flow passes the link.
        capacity: of each link, in any unit of rate.
    """

    uses: Floats
    capacity: Floats


def network(paths: Sequence[Sequence[Hashable]], capacity: Mapping[Hashable, float]) -> Network:
    """The network of some paths.

    Args:
        paths: the links that each flow passes.
        capacity: of every link of a path.
    """
    links = list(dict.fromkeys(link for path in paths for link in path))
    uses = np.array([[float(link in set(path)) for link in links] for path in paths])
    return Network(uses, np.array([capacity[link] for link in links], dtype=np.float64))


def max_min(net: Network) -> Floats:
    """Max-min fair rates: the tightest link is filled first (Bertsekas and Gallager, 6.5.2)."""
    flows = len(net.uses)
    rates, active = np.zeros(flows), np.ones(flows, dtype=bool)
    left = net.capacity.copy()
    while active.any():
        users = net.uses[active].sum(axis=0)
        fair = np.full(len(left), np.inf)
        np.divide(left, users, out=fair, where=users > 0)
        tightest = int(fair.argmin())
        settled = active & (net.uses[:, tightest] > 0)
        rates[settled] = fair[tightest]
        left = np.maximum(left - net.uses[settled].sum(axis=0) * fair[tightest], 0.0)
        active &= ~settled
    return rates


def fixed_windows(net: Network, window: Floats, unloaded: Floats) -> Floats:
    """Rates at which fixed windows settle: window = rate x (unloaded round trip + queueing).

    Queues stand only at links that are full. Solved link by link for the queueing time at which a
    link's flows just fill it, again and again until nothing changes.

    Args:
        net: rates in packets (or bytes) per unit of time.
        window: of each flow, packets (or bytes).
        unloaded: round trip of each flow, in that unit of time.
    """
    waits = np.zeros(len(net.capacity))
    for _ in range(_SWEEPS):
        before = waits.copy()
        for link in range(len(waits)):
            mine = net.uses[:, link] > 0
            others = unloaded[mine] + net.uses[mine] @ waits - waits[link]
            waits[link] = _wait(window[mine], others, net.capacity[link])
        if np.abs(waits - before).max() <= _PRECISE * unloaded.max():
            break
    rates: Floats = window / (unloaded + net.uses @ waits)
    return rates


def _wait(window: Floats, others: Floats, capacity: float) -> float:
    """The wait w >= 0 with sum(window / (others + w)) = capacity; 0 when there is less demand.

    The sum is convex and falls, so Newton's method approaches from below.
    """
    wait = 0.0
    for _ in range(100):
        rates = window / (others + wait)
        excess = float(rates.sum() - capacity)
        step = excess / float((rates / (others + wait)).sum())
        if step <= _PRECISE * float(others.max()) * 1e-3:
            break
        wait += step
    return wait
