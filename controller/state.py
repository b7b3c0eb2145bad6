"""The state file: how far the controller is, for whoever waits for it and for its successor.

It is written whole and renamed into place, so a reader never sees half of it. Keys:

    format, run, pid, framework, seed, policy    who writes it and what it was told
    ready        all switches have acknowledged their rules and the agent has its settings
    switches     name -> {dpid, connected, acknowledged, connects, rules, install_ms}
    rules, rules_hash                            of all switches together
    connects     connections of switches so far, together
    restarts     how many controllers of this run came before this one
    generation   a cookie that no rule had when this was written; the next controller goes on here
    links_down   pairs of interface names
    settings     {calls, sent, times}            of the agent
    pauses       {crossings, orders}             that the agent told of, that a policy answered with
    errors       what went wrong, in order; each once
    stopped      null, or why the process has ended
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

from controller.config import ControllerConfig
from controller.core.buckets import stable_hash
from controller.core.network import Status, SwitchStatus
from controller.core.switch import MAX_GENERATION, next_generation

FORMAT = 1
NS_PER_MS = 1_000_000


@dataclass(frozen=True)
class Previous:
    """What an earlier controller of the same run has left.

    Attributes:
        restarts: how many controllers there were before.
        generation: one that no rule of theirs has.
    """

    restarts: int
    generation: int


@dataclass(frozen=True)
class Settings:
    """How far the agent is.

    Attributes:
        calls: calls that it takes to tell it everything.
        sent: it has accepted all of them on the connection of now.
        times: how often it did.
    """

    calls: int
    sent: bool
    times: int


def read_previous(path: Path, run: str, now_ns: int) -> Previous:
    """What the state file of an earlier controller says.

    Without a readable one of this run the first generation is drawn by the clock, so that it
    differs from that of rules which a switch may still have.
    """
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
        if raw["run"] == run and 0 < raw["generation"] <= MAX_GENERATION:
            return Previous(int(raw["restarts"]) + 1, next_generation(raw["generation"]))
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return Previous(0, stable_hash(run, now_ns) % MAX_GENERATION + 1)


def document(
    config: ControllerConfig,
    status: Status,
    settings: Settings,
    *,
    framework: str,
    restarts: int,
    generation: int,
    errors: tuple[str, ...] = (),
    pauses: tuple[int, int] = (0, 0),
    stopped: str | None = None,
) -> dict[str, object]:
    """The content of the state file."""
    return {
        "format": FORMAT,
        "run": config.run,
        "pid": os.getpid(),
        "framework": framework,
        "seed": config.seed,
        "policy": config.policy.name,
        "ready": stopped is None and status.ready and settings.sent,
        "switches": {entry.name: _switch(entry) for entry in status.switches},
        "rules": status.rules,
        "rules_hash": status.rules_hash,
        "connects": sum(entry.connects for entry in status.switches),
        "restarts": restarts,
        "generation": generation,
        "links_down": [list(ends) for ends in status.links_down],
        "settings": {
            "calls": settings.calls, "sent": settings.sent, "times": settings.times,
        },
        "pauses": {"crossings": pauses[0], "orders": pauses[1]},
        "errors": [*status.problems, *errors],
        "stopped": stopped,
    }  # fmt: skip


def _switch(entry: SwitchStatus) -> dict[str, object]:
    return {
        "dpid": f"{entry.dpid:016x}",
        "connected": entry.connected,
        "acknowledged": entry.acknowledged,
        "connects": entry.connects,
        "rules": entry.rules,
        "install_ms": None if entry.install_ns is None else entry.install_ns / NS_PER_MS,
    }


def write_atomically(path: Path, content: dict[str, object]) -> None:
    """Replace the file by one with this content, as JSON; its folder is made when missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        draft.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
