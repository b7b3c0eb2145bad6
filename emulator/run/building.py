"""The settings of a fabric as an experiment and its plan want it."""

from __future__ import annotations

from emulator.clock.traits import traits_of
from emulator.fabric import FabricSettings
from emulator.fidelity import PAUSE_LATENESS_NS
from emulator.plan import Plan
from emulator.spec.model import Experiment
from topologies.errors import SpecError
from topologies.pause import frame_bytes, reserved_bytes, settled
from topologies.settings import PfcRule
from topologies.units import format_duration, format_size


def fabric_settings(plan: Plan, datapath: str) -> FabricSettings:
    """What a run of this plan builds.

    Args:
        plan: with the experiment and the chosen scale.
        datapath: of Open vSwitch.
    """
    experiment, scale = plan.experiment, plan.scaling.scale
    traits = traits_of(experiment.clock)
    emulated_bps = [scale.emulated_bps(link.rate_bps) for link in experiment.fabric.links]
    margin_ns = scale.model_ns(PAUSE_LATENESS_NS) if traits.real_time else 0
    return FabricSettings(
        experiment.fabric, emulated_bps, experiment.seed, experiment.ecn, experiment.scheduler,
        experiment.buffers, experiment.routing.section, datapath, scale.dilation,
        delays_in_path=traits.delays_in_path, switch=experiment.switch, burst_ns=traits.burst_ns,
        pfc=_pauses(experiment, margin_ns), receivers=experiment.receivers,
        pause_margin_ns=margin_ns, captured=experiment.pcap, trim=experiment.trim,
    )  # fmt: skip


def _pauses(experiment: Experiment, margin_ns: int) -> dict[int, dict[int, PfcRule]]:
    """The pause rules of all ports; SpecError when their headroom has no room in a buffer."""
    fabric = experiment.fabric
    rules = settled(experiment.pfc, fabric, experiment.switch.latency_ns + margin_ns)
    for switch, reserved in reserved_bytes(rules, fabric).items():
        if reserved + frame_bytes(fabric.mtu_bytes) > fabric.buffer_bytes:
            rule = (
                f"reserves {format_size(reserved, 4)} in {switch} for ports, classes, and for the "
                f"{format_duration(margin_ns)} by which this clock may be late; the buffer has "
                f"{format_size(fabric.buffer_bytes)}"
            )
            way_out = "raise dilation or fabric.buffer, or write a size"
            raise SpecError("pfc.headroom", "auto", rule, way_out)
    return rules
