"""The specifications of all kinds of workload in one place, and how they are read."""

from traffic.workloads import parse_workload, parse_workloads
from traffic.workloads.background_spec import BackgroundSpec
from traffic.workloads.base import WorkloadSpec
from traffic.workloads.inference_spec import InferenceSpec
from traffic.workloads.training import TrainingSpec

__all__ = [
    "BackgroundSpec",
    "InferenceSpec",
    "TrainingSpec",
    "WorkloadSpec",
    "parse_workload",
    "parse_workloads",
]
