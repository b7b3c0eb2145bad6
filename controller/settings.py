"""From the rules of the configuration to the calls that set the agent's queues. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from controller import rpc
from controller.config import ControllerConfig
from topologies.settings import resolve, resolve_alphas

Call = tuple[str, rpc.Params]
"""A method of the agent and its parameters, in target units."""


def agent_calls(config: ControllerConfig) -> list[Call]:
    """Everything that the agent has to be told, in order; the same each time.

    Raises:
        UnknownNameError: a rule names a port that the fabric does not have.
    """
    return [*_ecn(config), *_schedulers(config), *_buffers(config)]


def _ecn(config: ControllerConfig) -> Iterator[Call]:
    for index, classes in sorted(resolve(config.ecn, config.fabric, "ecn").items()):
        for tc, rule in sorted(classes.items()):
            yield (
                "set_ecn",
                {
                    "port": config.fabric.port(index).name,
                    "tc": tc,
                    "kmin_bytes": rule.kmin_bytes,
                    "kmax_bytes": rule.kmax_bytes,
                    "pmax": rule.pmax,
                },
            )


def _schedulers(config: ControllerConfig) -> Iterator[Call]:
    for index, classes in sorted(resolve(config.scheduler, config.fabric, "scheduler").items()):
        served = [
            {"tc": tc, "priority": rule.priority, "weight": rule.weight}
            for tc, rule in sorted(classes.items())
        ]
        yield "set_scheduler", {"port": config.fabric.port(index).name, "classes": served}


def _buffers(config: ControllerConfig) -> Iterator[Call]:
    if config.buffer is None:
        return
    alphas = list(resolve_alphas(config.buffer))
    for node in config.fabric.switches:
        size_bytes = config.fabric.buffer_bytes
        yield "set_buffer", {"switch": node.name, "bytes": size_bytes, "alpha": alphas}
