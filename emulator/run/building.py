"""The settings of a fabric as an experiment and its plan want it."""

from __future__ import annotations

from emulator.clock.traits import traits_of
from emulator.fabric import FabricSettings
from emulator.plan import Plan


def fabric_settings(plan: Plan, datapath: str) -> FabricSettings:
    """What a run of this plan builds.

    Args:
        plan: with the experiment and the chosen scale.
        datapath: of Open vSwitch.
    """
    experiment, scale = plan.experiment, plan.scaling.scale
    traits = traits_of(experiment.clock)
    emulated_bps = [scale.emulated_bps(link.rate_bps) for link in experiment.fabric.links]
    return FabricSettings(
        experiment.fabric, emulated_bps, experiment.seed, experiment.ecn, experiment.scheduler,
        experiment.buffers, experiment.routing.section, datapath, scale.dilation,
        delays_in_path=traits.delays_in_path, switch=experiment.switch, burst_ns=traits.burst_ns,
    )  # fmt: skip
