"""From the rules of the configuration to the calls that set the agent's queues. Pure.

The agent owns the queues of the switches. A rule may select hosts' ports too (``all``): these
are set when the fabric is built, and are left out here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from controller import rpc
from controller.config import ControllerConfig
from topologies.files import rule_to_dict
from topologies.model import Fabric
from topologies.settings import PortRule, resolve, resolve_alphas

Call = tuple[str, rpc.Params]
"""A method of the agent and its parameters, in target units."""


def agent_calls(config: ControllerConfig) -> list[Call]:
    """Everything that the agent has to be told, in order; the same each time.

    Raises:
        UnknownNameError: a rule names a port that the fabric does not have.
    """
    return [*_ecn(config), *_schedulers(config), *_buffers(config), *_pfc(config), *_trim(config)]


def _ecn(config: ControllerConfig) -> Iterator[Call]:
    for port, classes in _of_switches(config.ecn, config.fabric, "ecn"):
        for tc, rule in sorted(classes.items()):
            yield (
                "set_ecn",
                {
                    "port": port,
                    "tc": tc,
                    "kmin_bytes": rule.kmin_bytes,
                    "kmax_bytes": rule.kmax_bytes,
                    "pmax": rule.pmax,
                },
            )


def _schedulers(config: ControllerConfig) -> Iterator[Call]:
    for port, classes in _of_switches(config.scheduler, config.fabric, "scheduler"):
        served = [
            {"tc": tc, "priority": rule.priority, "weight": rule.weight}
            for tc, rule in sorted(classes.items())
        ]
        yield "set_scheduler", {"port": port, "classes": served}


def _buffers(config: ControllerConfig) -> Iterator[Call]:
    if config.buffer is None:
        return
    alphas = list(resolve_alphas(config.buffer))
    for node in config.fabric.switches:
        size_bytes = config.fabric.buffer_bytes
        yield "set_buffer", {"switch": node.name, "bytes": size_bytes, "alpha": alphas}


def _pfc(config: ControllerConfig) -> Iterator[Call]:
    for port, classes in _of_switches(config.pfc, config.fabric, "pfc"):
        for tc, rule in sorted(classes.items()):
            settings = {
                name: value for name, value in rule_to_dict(rule).items() if name != "ports"
            }
            yield "set_pfc", {**settings, "port": port, "tc": tc}


def _trim(config: ControllerConfig) -> Iterator[Call]:
    for port, classes in _of_switches(config.trim, config.fabric, "trim"):
        for tc, rule in sorted(classes.items()):
            yield (
                "set_trim",
                {
                    "port": port,
                    "tc": tc,
                    "dscp": rule.dscp,
                    "size_bytes": rule.size_bytes,
                    "threshold_bytes": rule.threshold_bytes,
                },
            )


def _of_switches(
    rules: Sequence[PortRule], fabric: Fabric, path: str
) -> Iterator[tuple[str, dict[int, PortRule]]]:
    """The name and the rule of each class of every switch port that has one, by index."""
    for index, classes in sorted(resolve(rules, fabric, path).items()):
        port = fabric.port(index)
        if fabric.by_name[port.node].is_switch:
            yield port.name, classes
