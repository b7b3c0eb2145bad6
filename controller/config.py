"""What the controller is told: one JSON file, read strictly, in target units.

    {"run": "demo-1", "seed": 7, "openflow_port": 6653, "agent_socket": "/run/x/agent.sock",
     "state_file": "/results/x/controller-state.json", "fabric": {...},
     "routing": {"policy": "ecmp"}, "ecn": [...], "scheduler": [...], "buffer": [...],
     "pfc": [...], "trim": [...]}

``fabric`` is what `topologies.files.fabric_to_dict` makes; the entries of ``ecn``, ``scheduler``,
``buffer``, ``pfc`` and ``trim`` are what `rule_to_dict` makes there. ``routing`` and these five may
be left out; without ``buffer`` the agent's own thresholds stay. ``agent_socket`` may be null when
no rule needs the agent.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from controller.policies.base import Policy
from controller.policies.pausing import build as build_pause_policy
from controller.policies.registry import build_policy
from topologies.checks import verify
from topologies.errors import SpecError
from topologies.files import (
    buffer_rule_from_dict,
    class_rule_from_dict,
    ecn_rule_from_dict,
    fabric_from_dict,
    pfc_rule_from_dict,
    trim_rule_from_dict,
)
from topologies.model import Fabric
from topologies.reading import Reader, as_mapping, as_text
from topologies.settings import (
    SWITCH,
    BufferRule,
    ClassRule,
    EcnRule,
    PfcRule,
    TrimRule,
    resolve,
)

MAX_SEED = 2**63 - 1
MAX_TCP_PORT = 65535

T = TypeVar("T")


@dataclass(frozen=True)
class ControllerConfig:
    """The configuration of a controller.

    Attributes:
        run: id of the run.
        seed: the run's seed.
        openflow_port: TCP port on 127.0.0.1 that switches connect to.
        agent_socket: the agent's Unix socket; None when there is no agent.
        state_file: where to say how far the controller is.
        fabric: what exists.
        routing: the policy's name and options, as written.
        policy: the policy that they select.
        ecn: marking rules; where several fit a port and class, the last counts.
        scheduler: service rules, likewise.
        buffer: dynamic thresholds per class; None leaves the agent's own.
        pfc: pause rules, each for the ingress ports that it selects.
        trim: which packets are cut to their headers, each for the egress ports that it selects.
    """

    run: str
    seed: int
    openflow_port: int
    agent_socket: Path | None
    state_file: Path
    fabric: Fabric
    routing: Mapping[str, object]
    policy: Policy
    ecn: tuple[EcnRule, ...] = ()
    scheduler: tuple[ClassRule, ...] = ()
    buffer: tuple[BufferRule, ...] | None = None
    pfc: tuple[PfcRule, ...] = ()
    trim: tuple[TrimRule, ...] = ()


def load_config(path: Path) -> ControllerConfig:
    """Read and check the file; `SpecError` names the file, the key, the rule and the way out."""
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SpecError(str(path), path.name, f"cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise SpecError(str(path), path.name, f"is not JSON: {error}") from error
    try:
        return config_from_dict(raw)
    except SpecError as error:
        raise SpecError(error.path, error.value, error.rule, error.way_out, str(path)) from None


def config_from_dict(raw: object) -> ControllerConfig:
    """The configuration that a parsed file holds."""
    with Reader(raw) as reader:
        fabric = fabric_from_dict(reader.raw("fabric"), "fabric")
        verify(fabric, "fabric")
        routing = reader.get("routing", as_mapping, {})
        config = ControllerConfig(
            run=reader.text("run"),
            seed=reader.integer("seed", minimum=0, maximum=MAX_SEED),
            openflow_port=reader.integer("openflow_port", minimum=1, maximum=MAX_TCP_PORT),
            agent_socket=reader.get("agent_socket", _optional_path, None),
            state_file=Path(reader.text("state_file")),
            fabric=fabric,
            routing=routing,
            policy=build_policy(routing, fabric, "routing"),
            ecn=_rules(reader, "ecn", ecn_rule_from_dict),
            scheduler=_rules(reader, "scheduler", class_rule_from_dict),
            buffer=_rules(reader, "buffer", buffer_rule_from_dict)
            if reader.has("buffer")
            else None,
            pfc=_rules(reader, "pfc", pfc_rule_from_dict),
            trim=_rules(reader, "trim", trim_rule_from_dict),
        )
    _check_agent(config)
    resolve(config.ecn, fabric, "ecn")
    resolve(config.scheduler, fabric, "scheduler")
    for classes in resolve(config.pfc, fabric, "pfc").values():
        for rule in classes.values():
            if rule.control != SWITCH:
                build_pause_policy(rule.control, fabric, "pfc.control")
    resolve(config.trim, fabric, "trim")
    return config


def _optional_path(value: object, path: str) -> Path | None:
    return None if value is None else Path(as_text(value, path))


def _rules(reader: Reader, key: str, read: Callable[[object, str], T]) -> tuple[T, ...]:
    return tuple(read(entry, place) for place, entry in reader.items(key, []))


def _check_agent(config: ControllerConfig) -> None:
    rules = (config.ecn, config.scheduler, config.buffer, config.pfc, config.trim)
    if config.agent_socket is None and any(rules):
        rule = "must name the agent's socket, because there are rules for its queues"
        raise SpecError("agent_socket", None, rule, "add agent_socket or remove the rules")
