"""The settings of a fabric as an experiment and its plan want it."""

from __future__ import annotations

from emulator.fabric import FabricSettings
from emulator.plan import Plan
from topologies.errors import SpecError


def fabric_settings(plan: Plan, datapath: str) -> FabricSettings:
    """What a run of this plan builds.

    Args:
        plan: with the experiment and the chosen scale.
        datapath: of Open vSwitch.
    """
    experiment, scale = plan.experiment, plan.scaling.scale
    if experiment.pfc:
        raise SpecError("pfc", "lossless classes", "are not emulated yet", "remove pfc:")
    emulated_bps = [scale.emulated_bps(link.rate_bps) for link in experiment.fabric.links]
    return FabricSettings(
        experiment.fabric, emulated_bps, experiment.seed, experiment.ecn, experiment.scheduler,
        experiment.buffers, experiment.routing.section, datapath, scale.dilation,
    )  # fmt: skip
