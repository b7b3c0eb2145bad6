"""PURE: what a run makes on the machine, step by step, with counts."""

from __future__ import annotations

from dataclasses import dataclass

from controller.core.routing import Routing
from controller.policies.registry import build_policy
from emulator.spec.model import Experiment
from topologies.checks import MAX_INTERFACE_NAME
from topologies.model import Fabric, Role
from topologies.settings import CLASSES, resolve


@dataclass(frozen=True)
class Step:
    """One thing that a run does.

    Attributes:
        what: what is made or done.
        count: how many of them.
        detail: what they are like.
    """

    what: str
    count: int
    detail: str


@dataclass(frozen=True)
class Resources:
    """What a run makes, all of it taken away at the end.

    Attributes:
        namespaces: one for all switches, one per host.
        bridges: Open vSwitch bridges.
        veth_pairs: links.
        queues: traffic-class queues of all ports.
        rules: OpenFlow rules.
        longest_interface: the longest interface name.
    """

    namespaces: int
    bridges: int
    veth_pairs: int
    queues: int
    rules: int
    longest_interface: str


def resources(experiment: Experiment) -> Resources:
    """Counts for an experiment; the rules are those that its routing policy makes."""
    fabric = experiment.fabric
    return Resources(
        namespaces=1 + len(fabric.hosts),
        bridges=len(fabric.switches),
        veth_pairs=len(fabric.links),
        queues=len(fabric.ports) * CLASSES,
        rules=_rules(experiment),
        longest_interface=max((port.name for port in fabric.ports), key=len),
    )


def _rules(experiment: Experiment) -> int:
    fabric = experiment.fabric
    policy = build_policy(experiment.routing.section, fabric)
    rules = Routing(fabric, policy, experiment.seed).all_rules(list(fabric.switches))
    return sum(len(made) for made in rules.values())


def steps(experiment: Experiment, counts: Resources) -> tuple[Step, ...]:
    """The steps of a run, in order."""
    fabric = experiment.fabric
    longest = counts.longest_interface
    marking = resolve(experiment.ecn, fabric)
    return (
        Step("network namespaces", counts.namespaces, "one for the switches, one for each host"),
        Step(
            "links (veth pairs)",
            counts.veth_pairs,
            f"longest interface name {longest} ({len(longest)} of {MAX_INTERFACE_NAME} characters)",
        ),
        Step("queues", counts.queues, f"{len(fabric.ports)} ports with {CLASSES} classes each"),
        Step("ports that mark", len(marking), _marking(experiment)),
        *_trimming(experiment),
        Step("bridges", counts.bridges, _bridges(fabric)),
        Step("OpenFlow rules", counts.rules, f"policy {experiment.routing.policy}, proactive"),
        Step("workloads", len(experiment.workloads), _workloads(experiment)),
        Step(
            "ports captured", len(experiment.pcap), "Wireshark files" if experiment.pcap else "none"
        ),
    )


def _marking(experiment: Experiment) -> str:
    classes = sorted({rule.tc for rule in experiment.ecn})
    return f"ECN for class {', '.join(map(str, classes))}" if classes else "no ECN"


def _trimming(experiment: Experiment) -> list[Step]:
    """A step where packets are cut at all."""
    if not experiment.trim:
        return []
    ports = len(resolve(experiment.trim, experiment.fabric))
    ways = sorted({(rule.tc, rule.to_class) for rule in experiment.trim})
    words = ", ".join(f"class {tc}, on in class {goal}" for tc, goal in ways)
    return [Step("ports that cut packets", ports, words)]


def _bridges(fabric: Fabric) -> str:
    roles = [node.role for node in fabric.switches]
    between = f"{roles.count(Role.AGG)} aggregation switches, " if Role.AGG in roles else ""
    return (
        f"Open vSwitch, OpenFlow 1.3: {roles.count(Role.LEAF)} leaves, {between}"
        f"{roles.count(Role.SPINE)} spines"
    )


def _workloads(experiment: Experiment) -> str:
    return ", ".join(f"{spec.name} ({spec.kind})" for spec in experiment.workloads) or "none"
