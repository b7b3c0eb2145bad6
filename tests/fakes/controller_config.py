"""Configuration files of the controller, as the emulator writes them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from topologies.files import fabric_to_dict
from topologies.model import Fabric


def config_document(
    fabric: Fabric, folder: Path, changes: Mapping[str, object] | None = None
) -> dict[str, object]:
    """A complete configuration; `changes` replace or add keys."""
    return {
        "run": "test-run",
        "seed": 7,
        "openflow_port": 6653,
        "agent_socket": str(folder / "agent.sock"),
        "state_file": str(folder / "controller-state.json"),
        "fabric": fabric_to_dict(fabric),
        "routing": {"policy": "ecmp"},
        "ecn": [],
        "scheduler": [],
    } | dict(changes or {})
