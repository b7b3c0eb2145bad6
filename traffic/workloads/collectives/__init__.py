"""Collective operations as lists of sends, one file per family, and their closed forms."""

from traffic.workloads.collectives import all_to_all, broadcast, halving_doubling, ring
from traffic.workloads.collectives.plan import Plan, Send, exits, split_bytes
from traffic.workloads.collectives.registry import (
    Algorithm,
    algorithm,
    algorithms,
    build_plan,
    collectives,
    register,
)

__all__ = [
    "Algorithm",
    "Plan",
    "Send",
    "algorithm",
    "algorithms",
    "all_to_all",
    "broadcast",
    "build_plan",
    "collectives",
    "exits",
    "halving_doubling",
    "register",
    "ring",
    "split_bytes",
]
