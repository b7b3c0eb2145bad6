"""The state file: complete, never half written, and of use to the next controller."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from controller import state
from controller.config import config_from_dict
from controller.core.network import Network, Status
from controller.core.switch import MAX_GENERATION
from controller.state import Previous, Settings, read_previous
from tests.fakes.controller_config import config_document
from tests.fakes.fabrics import leaf_spine
from tests.fakes.network import FakeNetwork

FABRIC = leaf_spine(2, 1)
CONFIG = config_from_dict(config_document(FABRIC, Path("/run/x")))
DONE = Settings(calls=3, sent=True, times=1)


def status_of(connected: int) -> Status:
    """The status after some of the switches have connected and settled."""
    network, fake = Network(FABRIC, CONFIG.policy, 7), FakeNetwork(FABRIC)
    for node in FABRIC.switches[:connected]:
        fake.connect(network, node.name)
    return network.status()


def document(
    status: Status,
    settings: Settings = DONE,
    errors: tuple[str, ...] = (),
    stopped: str | None = None,
) -> dict[str, object]:
    """The file's content."""
    return state.document(
        CONFIG, status, settings, framework="ryu 4.34", restarts=1, generation=9, errors=errors,
        stopped=stopped,
    )  # fmt: skip


def test_content() -> None:
    """All that the emulator and the report read."""
    content = document(status_of(3), errors=("a refusal",))
    assert content["ready"] is True
    assert content["run"] == "test-run"
    assert (content["framework"], content["policy"], content["seed"]) == ("ryu 4.34", "ecmp", 7)
    assert (content["connects"], content["restarts"], content["generation"]) == (3, 1, 9)
    assert content["settings"] == {"calls": 3, "sent": True, "times": 1}
    assert content["errors"] == ["a refusal"]
    assert content["stopped"] is None
    switches = content["switches"]
    assert isinstance(switches, dict)
    assert switches["leaf1"] == {
        "dpid": "0000000000011001", "connected": True, "acknowledged": True, "connects": 1,
        "rules": 3, "install_ms": 0.0,
    }  # fmt: skip
    assert content["rules"] == sum(entry["rules"] for entry in switches.values()) == 9
    assert json.loads(json.dumps(content)) == content


@pytest.mark.parametrize(
    ("connected", "settings", "stopped"),
    [
        (2, DONE, None),
        (3, Settings(3, False, 1), None),
        (3, DONE, "SIGTERM"),
    ],
)
def test_not_ready(connected: int, settings: Settings, stopped: str | None) -> None:
    """Not while a switch is missing, nor without the settings, nor after the end."""
    assert document(status_of(connected), settings, stopped=stopped)["ready"] is False


def test_problems_of_the_network_are_errors() -> None:
    """What switches report against the file stands before other errors."""
    status = replace(status_of(3), problems=("port 2 of leaf1 is eth7, not leaf1-eth2",))
    assert document(status, errors=("other",))["errors"] == [*status.problems, "other"]


def test_write_replaces_the_whole_file(tmp_path: Path) -> None:
    """The folder is made, the old content goes, no draft stays."""
    path = tmp_path / "new" / "state.json"
    for content in ({"a": "x" * 1000}, {"b": 1}):
        state.write_atomically(path, dict(content))
        assert json.loads(path.read_text()) == content
    assert [entry.name for entry in path.parent.iterdir()] == ["state.json"]


def test_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    """What cannot be written does not destroy what is there."""
    path = tmp_path / "state.json"
    state.write_atomically(path, {"a": 1})
    with pytest.raises(TypeError):
        state.write_atomically(path, {"a": object()})
    assert json.loads(path.read_text()) == {"a": 1}
    assert [entry.name for entry in tmp_path.iterdir()] == ["state.json"]


def test_next_controller_goes_on(tmp_path: Path) -> None:
    """It counts itself, and takes a generation after the last one."""
    path = tmp_path / "state.json"
    state.write_atomically(path, document(status_of(3)))
    assert read_previous(path, "test-run", now_ns=5) == Previous(restarts=2, generation=10)


@pytest.mark.parametrize(
    "content",
    [
        None,
        "{",
        "[]",
        "{}",
        json.dumps({"run": "another", "restarts": 1, "generation": 9}),
        json.dumps({"run": "test-run", "restarts": 1, "generation": 0}),
        json.dumps({"run": "test-run", "restarts": None, "generation": 9}),
        json.dumps({"run": "test-run", "restarts": 1, "generation": "9"}),
    ],
)
def test_first_controller_of_a_run(tmp_path: Path, content: str | None) -> None:
    """Without a file of this run the generation is drawn by the clock, within its range."""
    path = tmp_path / "state.json"
    if content is not None:
        path.write_text(content)
    drawn = [read_previous(path, "test-run", now_ns) for now_ns in range(100)]
    assert {previous.restarts for previous in drawn} == {0}
    assert len({previous.generation for previous in drawn}) == 100
    assert all(1 <= previous.generation <= MAX_GENERATION for previous in drawn)
