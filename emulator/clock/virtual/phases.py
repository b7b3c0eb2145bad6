"""PURE: where the wall time of a run in a guest went."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

BOOT, TRAFFIC = "boot", "traffic"
_LABELS: Mapping[str, str] = {
    "guest is up": "imports",
    "namespaces": "fabric: namespaces, controller's imports",
    "links": "fabric: links",
    "agent": "fabric: agent",
    "switches": "Open vSwitch",
    "rules": "rules",
    "teaching the switches every flow": "warm-up",
    "sending": TRAFFIC,
    "taking the fabric down": "end",
}


def durations_s(steps: Sequence[tuple[str, float]]) -> dict[str, float]:
    """Phase -> wall seconds, in order.

    Args:
        steps: (what the guest said, wall s since the start), the last one its end. Steps that no
            phase begins with belong to the phase before.
    """
    phases: dict[str, float] = {}
    label = BOOT
    for (_, since), (said, until) in pairwise([("", 0.0), *steps]):
        phases[label] = phases.get(label, 0.0) + until - since
        label = _LABELS.get(said, label)
    return phases


def lines(phases: Mapping[str, float]) -> list[str]:
    """The same for people: how long each phase took, and how long all before the traffic."""
    before = 0.0
    for label, seconds in phases.items():
        if label == TRAFFIC:
            break
        before += seconds
    width = max(map(len, phases), default=0)
    shown = [f"{label:<{width}}  {seconds:6.2f} s" for label, seconds in phases.items()]
    return [*shown, f"first packet after {before:.2f} s of wall time"]
