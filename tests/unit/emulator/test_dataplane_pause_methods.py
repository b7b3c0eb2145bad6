"""What the agent can be asked about pause."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from controller import rpc, settings
from controller.config import config_from_dict
from emulator.dataplane.methods import Methods
from tests.fakes.controller_config import config_document
from tests.fakes.fabrics import leaf_spine
from tests.fakes.pausing import PauseRig
from topologies.files import rule_to_dict
from topologies.pause import settled
from topologies.settings import PfcRule

FABRIC = leaf_spine(2, 1, 2)
PORT = FABRIC.port_named("leaf1-eth3").index
RULE = PfcRule(3, 1 / 8, response_ns=1_000)
SET: dict[str, Any] = {"port": "leaf1-eth3", "tc": 3}


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[PauseRig]:
    """Class 3 is lossless."""
    one = PauseRig(FABRIC, [RULE], tmp_path / "log")
    yield one
    one.close()


def methods(rig: PauseRig) -> Methods:
    """The agent's methods over the rig."""
    return Methods(rig.plane, rig.plane.emulated_bps, None, "abc123", 1, rig.driver)


def refusal(rig: PauseRig, method: str, params: dict[str, Any]) -> rpc.RpcError:
    """The error of a call that must fail."""
    with pytest.raises(rpc.RpcError) as caught:
        methods(rig).call(method, params)
    return caught.value


def test_pause_settings_change_at_once(rig: PauseRig) -> None:
    """In the table that the program reads; what is null is computed for the port."""
    changed = SET | {"alpha": None, "xoff_bytes": 90_000, "xon_offset_bytes": None,
                     "headroom_bytes": 70_000, "response_ns": None, "watchdog": None}  # fmt: skip
    assert methods(rig).call("set_pfc", changed) == {}
    entry = rig.plane.pauses["classes"][PORT, 3]
    assert [int(entry[name]) for name in ("alpha", "xoff", "xon_offset", "headroom")] == [
        0, 90_000, 8_436, 70_000,
    ]  # fmt: skip
    rule = rig.driver.rules.get(PORT, 3)
    assert rule is not None
    assert rule.response_ns == 2_018


def test_a_class_can_be_made_lossy_and_lossless_again(rig: PauseRig) -> None:
    """At one port, while all is running."""
    agent = methods(rig)
    agent.call("set_pfc", SET | {"lossless": False})
    assert rig.plane.pauses["classes"][PORT, 3]["headroom"] == 0
    agent.call("set_pfc", SET | {"alpha": 1})
    assert rig.plane.pauses["classes"][PORT, 3]["alpha"] == 256


def test_pause_and_resume(rig: PauseRig) -> None:
    """The port's peer stops and goes on."""
    agent = methods(rig)
    assert agent.call("pause", SET) == {}
    rig.at(10_000)
    assert agent.call("read_pfc", {})["paused"] == [{"port": "spine1-eth1", "tc": 3}]  # type: ignore[index]
    agent.call("resume", SET)
    rig.at(20_000)
    assert rig.gates.done == [("spine1-eth1", 3, True), ("spine1-eth1", 3, False)]


def test_what_ports_hold_is_read(rig: PauseRig) -> None:
    """Only those that have a lossless class; pauses are counted by XOFF."""
    held = rig.plane.held["classes"][PORT : PORT + 1, 3]
    held["bytes"], held["headroom"], held["changes"], held["drop_packets"] = 5, 6, 3, 7
    rows = methods(rig).call("read_pfc", {})["ingress"]  # type: ignore[index]
    assert len(rows) == sum(FABRIC.by_name[port.node].is_switch for port in FABRIC.ports)
    (row,) = [row for row in rows if row["port"] == "leaf1-eth3"]
    assert row == {"port": "leaf1-eth3", "tc": 3, "bytes": 5, "headroom_bytes": 6,
                   "peak_headroom_bytes": 0, "pauses": 2, "dropped": 7}  # fmt: skip


@pytest.mark.parametrize(
    ("method", "params", "words"),
    [
        ("set_pfc", {}, "port"),
        ("set_pfc", SET, "xoff_bytes"),
        ("set_pfc", SET | {"alpha": 1, "xoff_bytes": 5}, "xoff_bytes"),
        ("set_pfc", SET | {"alpha": 0}, "alpha"),
        ("set_pfc", SET | {"alpha": 1, "tc": 4}, "has no gates in this run"),
        ("set_pfc", SET | {"alpha": 1, "port": "h1-eth1"}, "h1-eth1"),
        ("set_pfc", SET | {"alpha": 1, "headroom_bytes": 17_000_000}, "headroom_bytes"),
        ("set_pfc", SET | {"alpha": 1, "control": ""}, "control"),
        ("set_pfc", SET | {"alpha": 1, "beta": 1}, "beta"),
        ("pause", {"port": "leaf1-eth3"}, "tc"),
        ("pause", SET | {"duration_ns": 0}, "duration_ns"),
        ("pause", SET | {"tc": 0}, "has no gates"),
        ("resume", SET | {"duration_ns": 1}, "duration_ns"),
        ("read_pfc", {"port": "leaf1-eth1"}, "port"),
    ],
)
def test_wrong_parameters_are_refused_by_name(
    rig: PauseRig, method: str, params: dict[str, Any], words: str
) -> None:
    """And nothing changes."""
    before = rig.plane.pauses.tobytes()
    error = refusal(rig, method, params)
    assert error.code == rpc.INVALID_PARAMS
    assert words in error.message
    assert rig.plane.pauses.tobytes() == before
    assert rig.gates.told == []


def test_a_run_without_lossless_classes_has_nothing_to_pause(rig: PauseRig) -> None:
    """It says so."""
    agent = Methods(rig.plane, rig.plane.emulated_bps, None, "abc123")
    with pytest.raises(rpc.RpcError, match="no class is lossless in this run"):
        agent.call("pause", SET)


def test_the_controllers_calls_are_understood(rig: PauseRig, tmp_path: Path) -> None:
    """What the controller makes of its rules sets what the fabric was built with."""
    resolved = settled([RULE], FABRIC)
    rules = [rule_to_dict(rule) for classes in resolved.values() for rule in classes.values()]
    config = config_from_dict(config_document(FABRIC, tmp_path, {"pfc": rules}))
    calls = settings.agent_calls(config)
    assert {method for method, _ in calls} == {"set_pfc"}
    before = rig.plane.pauses.tobytes()
    for method, params in calls:
        assert methods(rig).call(method, params) == {}
    assert rig.plane.pauses.tobytes() == before
