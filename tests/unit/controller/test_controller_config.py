"""The controller's file: what the emulator writes is read, anything else is refused with reason."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from controller.config import config_from_dict, load_config
from tests.fakes.controller_config import config_document
from tests.fakes.fabrics import leaf_spine
from topologies.errors import SpecError
from topologies.settings import BufferRule, ClassRule, EcnRule, TrimRule

ECN = {"tc": 3, "kmin_bytes": 1000, "kmax_bytes": 4000, "pmax": 0.2}
FOLDER = Path("/run/x")
MISSING = object()


def document(**changes: object) -> dict[str, object]:
    """A configuration of a small fabric; a change to `MISSING` takes the key away."""
    made = config_document(leaf_spine(2, 2), FOLDER, changes)
    return {key: value for key, value in made.items() if value is not MISSING}


def test_reads_what_the_emulator_writes(tmp_path: Path) -> None:
    """All keys, through JSON and a file."""
    path = tmp_path / "controller.json"
    rules = {
        "scheduler": [{"tc": 3, "priority": 1, "weight": 2}],
        "buffer": [{"tc": 0, "alpha": 2}],
        "trim": [{"tc": 3, "dscp": 43, "threshold_bytes": 90_000}],
    }
    path.write_text(json.dumps(document(ecn=[ECN | {"ports": "leaf*"}], **rules)))
    config = load_config(path)
    assert (config.run, config.seed, config.openflow_port) == ("test-run", 7, 6653)
    assert config.agent_socket == FOLDER / "agent.sock"
    assert config.state_file == FOLDER / "controller-state.json"
    assert config.fabric == leaf_spine(2, 2)
    assert (config.policy.name, config.routing) == ("ecmp", {"policy": "ecmp"})
    assert config.ecn == (EcnRule(3, 1000, 4000, 0.2, "leaf*"),)
    assert config.scheduler == (ClassRule(3, 1, 2),)
    assert config.buffer == (BufferRule(0, 2),)
    assert config.trim == (TrimRule(3, 43, 80, 90_000),)


def test_optional_keys() -> None:
    """Routing and rules may be left out; without `buffer` the agent's thresholds stay."""
    absent = dict.fromkeys(("routing", "ecn", "scheduler"), MISSING)
    config = config_from_dict(document(**absent, agent_socket=None))
    assert (config.policy.name, config.ecn, config.scheduler, config.buffer) == (
        "ecmp",
        (),
        (),
        None,
    )
    assert config.agent_socket is None


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"run": ""}, r"^run: '' must not be empty"),
        ({"run": MISSING}, r"'run' is missing"),
        ({"seed": -1}, r"^seed: -1 must be at least 0"),
        ({"seed": "7"}, r"^seed: '7' must be a whole number"),
        ({"openflow_port": 0}, r"^openflow_port: 0 must be at least 1"),
        ({"openflow_port": 70000}, r"^openflow_port: 70000 must be at most 65535"),
        ({"state_file": 3}, r"^state_file: 3 must be text"),
        ({"fabric": []}, r"^fabric: \[\] must be a mapping"),
        ({"fabric": {"format": 99}}, r"^fabric.format: 99 is not format 1"),
        ({"routing": "ecmp"}, r"^routing: 'ecmp' must be a mapping"),
        ({"routing": {"policy": "best"}}, r"^routing.policy: 'best' is not a known policy"),
        ({"ecn": {}}, r"^ecn: {} must be a list"),
        ({"ecn": [ECN | {"pmax": 2}]}, r"^ecn\[0\].pmax: 2.0 must be above 0 and at most 1"),
        ({"ecn": [ECN | {"ports": "eth1"}]}, r"^ecn\[0\].ports: 'eth1' is not a known port"),
        (
            {"scheduler": [{"tc": 9, "priority": 0, "weight": 1}]},
            r"^scheduler\[0\].tc: 9 must be 0",
        ),
        ({"buffer": [{"tc": 0, "alpha": 0}]}, r"^buffer\[0\].alpha: 0.0 must be a finite number"),
        ({"trim": [{"tc": 3, "dscp": 24}]}, r"^trim\[0\].dscp: 24 belongs to class 3 itself"),
        (
            {"trim": [{"tc": 3, "dscp": 43, "ports": "x"}]},
            r"^trim\[0\].ports: 'x' is not a known port",
        ),
        (
            {"trim": [{"tc": 3, "dscp": 43}], "agent_socket": None},
            r"^agent_socket: None must name the agent's socket",
        ),
        ({"ecn": [ECN], "agent_socket": None}, r"^agent_socket: None must name the agent's socket"),
        ({"sead": 7}, r"^sead: 'sead' is not a known key; did you mean 'seed'"),
    ],
)
def test_what_is_wrong_is_refused(changes: dict[str, object], error: str) -> None:
    """Each wrong, missing or unknown key is an error that names its place."""
    with pytest.raises(SpecError, match=error):
        config_from_dict(document(**changes))


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (None, r"controller.json: .* cannot be read: No such file"),
        ("{", r"controller.json: .* is not JSON"),
        ("[]", r"must be a mapping"),
        (json.dumps(document(seed=-1)), r"controller.json: seed: -1 must be at least 0"),
    ],
)
def test_errors_name_the_file(tmp_path: Path, content: str | None, error: str) -> None:
    """A file that is missing, is not JSON or is wrong: the error begins with its name."""
    path = tmp_path / "controller.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(SpecError, match=error):
        load_config(path)
