"""Rules that span several sections of an experiment."""

from __future__ import annotations

from controller.core.routing import Routing
from controller.policies.registry import build_policy
from emulator.spec.model import CREDIT, NO_CONTROL, UET, Experiment
from emulator.spec.transport import KINDS
from topologies.errors import SpecError
from traffic import wire
from traffic.workloads import build_all


def check(experiment: Experiment) -> None:
    """Raise the first rule that an experiment breaks."""
    _has_something_to_do(experiment)
    _probes_end(experiment)
    _control_has_marks(experiment)
    _credit_has_lossless_classes(experiment)
    _lossy_transport_has_lossy_classes(experiment)
    _cut_packets_are_told_apart(experiment)
    _can_be_routed(experiment)
    build_all(experiment.workloads, experiment.fabric, experiment.seed, experiment.shrink or 1.0)


def _has_something_to_do(experiment: Experiment) -> None:
    if not experiment.workloads and experiment.probes is None:
        way_out = "add an entry such as {kind: background, pattern: permutation, ...}, or probes:"
        raise SpecError(
            "workloads", [], "is empty, and there are no probes: nothing to do", way_out
        )


def _probes_end(experiment: Experiment) -> None:
    """Probes alone would go on for ever."""
    if not experiment.workloads and experiment.duration_ns is None:
        rule = "is not given, and a run of probes alone has no other end"
        raise SpecError("duration", None, rule, "write e.g. duration: 10 ms")


def _lossy_transport_has_lossy_classes(experiment: Experiment) -> None:
    """What learns of congestion by losses and trimmed packets must not be paused instead."""
    if experiment.transport.kind != UET:
        return
    lossless = {rule.tc for rule in experiment.pfc}
    for spec in experiment.workloads:
        tc = wire.traffic_class(spec.dscp)
        if tc in lossless:
            rule = (
                f"is for lossy classes, and pfc makes class {tc} lossless, which {spec.name} uses"
            )
            way_out = "write pfc: none, other pfc.classes, or kind: go-back-n"
            raise SpecError("transport.kind", UET, rule, way_out)


def _can_be_routed(experiment: Experiment) -> None:
    """The controller must be able to spread the flows of every switch."""
    policy = build_policy(experiment.routing.section, experiment.fabric)
    Routing(experiment.fabric, policy, experiment.seed)


def _cut_packets_are_told_apart(experiment: Experiment) -> None:
    """Their code point is nobody else's (Ultra Ethernet specification 1.0, 4.1.4.1)."""
    used = {spec.dscp: spec.name for spec in experiment.workloads}
    used[wire.CONTROL_DSCP] = "acknowledgements and congestion notifications"
    for rule in experiment.trim:
        if rule.dscp in used:
            text = f"is that of {used[rule.dscp]}: what was cut must have one of its own"
            raise SpecError("trim.dscp", rule.dscp, text, "write auto, or another code point")


def _control_has_marks(experiment: Experiment) -> None:
    """A sender that reacts to marks needs switches that mark its class."""
    transport = experiment.transport
    kind = KINDS[transport.kind]
    if transport.control not in kind.marked:
        return
    instead = "control: none" if NO_CONTROL in kind.controls else "another kind of transport"
    marked = {rule.tc for rule in experiment.ecn}
    for spec in experiment.workloads:
        tc = wire.traffic_class(spec.dscp)
        if tc not in marked:
            rule = f"reacts to ECN marks, but no rule marks class {tc}, which {spec.name} uses"
            way_out = f"add ecn: {{classes: [{tc}], ...}}, or write {instead}"
            key = "kind" if transport.control == transport.kind else "control"
            raise SpecError(f"transport.{key}", transport.control, rule, way_out)


def _credit_has_lossless_classes(experiment: Experiment) -> None:
    """Credits mean that a sender never sends what the next buffer cannot take."""
    if experiment.transport.kind != CREDIT:
        return
    lossless = {rule.tc for rule in experiment.pfc}
    for spec in experiment.workloads:
        tc = wire.traffic_class(spec.dscp)
        if tc not in lossless:
            rule = f"is for lossless classes, and {spec.name} uses class {tc}, which pfc leaves out"
            way_out = f"write pfc: {{classes: [{tc}], ...}}, or another kind"
            raise SpecError("transport.kind", CREDIT, rule, way_out)
