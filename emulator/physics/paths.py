"""PURE: which links the flows of an experiment take under its routing policy and seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from controller.core.routing import Routing
from controller.policies.registry import build_policy
from emulator.assembly import entropy
from emulator.physics.sharing import Network, network
from emulator.spec.model import Experiment
from traffic import wire
from traffic.tasks import Flow
from traffic.workloads import build_all


@dataclass(frozen=True)
class Ways:
    """The flows of one workload and the ports that they leave by.

    Attributes:
        flows: in the order of the workload; one for each connection.
        ports: names of the ports of each, from the sending host's on.
        rates_bps: of every port that is used.
    """

    flows: tuple[Flow, ...]
    ports: tuple[tuple[str, ...], ...]
    rates_bps: Mapping[str, int]

    def network(self) -> Network:
        """For the fluid models; rates in bit/s."""
        return network(self.ports, {port: float(rate) for port, rate in self.rates_bps.items()})

    def loads(self) -> list[tuple[str, int]]:
        """How many of the flows use each port."""
        used = [port for ports in self.ports for port in ports]
        return [(port, used.count(port)) for port in self.rates_bps]


def ways(experiment: Experiment) -> dict[str, Ways]:
    """The ways of all workloads, by their names."""
    fabric = experiment.fabric
    routing = Routing(fabric, build_policy(experiment.routing.section, fabric), experiment.seed)
    workloads = build_all(
        experiment.workloads, fabric, experiment.seed, float(experiment.shrink or 1)
    )
    found = {}
    for workload in workloads:
        chosen = _one_per_connection([t for t in workload.tasks if isinstance(t, Flow)])
        ports = tuple(_ports(routing, experiment.seed, flow) for flow in chosen)
        used = dict.fromkeys(port for path in ports for port in path)
        rates = {name: fabric.link_of(fabric.port_named(name)).rate_bps for name in used}
        found[workload.name] = Ways(tuple(chosen), ports, rates)
    return found


def _one_per_connection(flows: Sequence[Flow]) -> list[Flow]:
    return list({flow.connection: flow for flow in reversed(flows)}.values())[::-1]


def _ports(routing: Routing, seed: int, flow: Flow) -> tuple[str, ...]:
    job, plane, src, dst, qp = flow.connection
    sport = wire.ENTROPY_BASE | entropy(seed, job, plane, src, dst, qp)
    return tuple(port.name for port in routing.path_of(src, dst, sport, plane=plane))
