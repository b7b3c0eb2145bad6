"""Workloads as tasks with dependencies: training, inference, background. Pure and seeded."""

from traffic.workloads import background, inference, training
from traffic.workloads.base import Workload, WorkloadSpec
from traffic.workloads.registry import build, build_all, kinds, parse_workload, parse_workloads

__all__ = [
    "Workload",
    "WorkloadSpec",
    "background",
    "build",
    "build_all",
    "inference",
    "kinds",
    "parse_workload",
    "parse_workloads",
    "training",
]
