"""What the agent can be asked about trimming."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from controller import rpc
from emulator.dataplane.methods import Methods
from tests.fakes.fabrics import leaf_spine
from tests.fakes.pausing import PauseRig
from tests.fakes.plane import FakePlane
from topologies.settings import PfcRule, TrimRule

FABRIC = leaf_spine(2, 1, 2)
PORT = FABRIC.port_named("leaf1-eth3").index
SET: dict[str, Any] = {
    "port": "leaf1-eth3", "tc": 3, "dscp": 43, "size_bytes": 64, "threshold_bytes": None,
}  # fmt: skip


def methods(plane: FakePlane) -> Methods:
    """The agent's methods, nothing lossless."""
    return Methods(plane, plane.emulated_bps, None, "abc123", 1)


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[PauseRig]:
    """Class 3 is lossless."""
    one = PauseRig(FABRIC, [PfcRule(3, 1 / 8)], tmp_path / "log")
    yield one
    one.close()


def test_trimming_is_set_and_switched_off() -> None:
    """In the table that the program reads, of this port and class only."""
    plane = FakePlane(FABRIC)
    agent = methods(plane)
    assert agent.call("set_trim", SET | {"threshold_bytes": 90_000}) == {}
    entry = plane.configs["classes"][PORT, 3]
    assert (entry["trim_bytes"], entry["trim_above"], entry["trim_dscp"]) == (64, 90_000, 43)
    assert plane.trimmable == {3: {5}}
    assert agent.call("set_trim", {"port": "leaf1-eth3", "tc": 3, "size_bytes": 0}) == {}
    assert plane.trimmable == {}


def test_the_same_again_changes_nothing() -> None:
    """The controller says what the fabric was built with, rule by rule."""
    plane = FakePlane(FABRIC)
    plane.apply_trim([TrimRule(3, 43, 64)])
    before = plane.configs.tobytes()
    methods(plane).call("set_trim", SET)
    assert plane.configs.tobytes() == before


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"port": "h1-eth1"}, "h1-eth1"),
        ({"tc": 8}, "tc: 8 must be at most 7"),
        ({"tc": 6}, "tc: 6 is the class of acknowledgements"),
        ({"dscp": 24}, "dscp: 24 belongs to class 3 itself"),
        ({"dscp": 64}, "dscp: 64 must be 0 to 63"),
        ({"dscp": 20}, "dscp: 20 is in class 2, trimmable"),
        ({"tc": 4}, "tc: 4 is the class of what was cut"),
        ({"size_bytes": 57}, "size_bytes: 57 must be at least 58"),
        ({"size_bytes": 4214}, "size_bytes: 4214 is not less than a full frame, 4214"),
        ({"threshold_bytes": 4213}, "threshold_bytes: 4213 must be from 4214, a full frame"),
        ({"threshold_bytes": 1 << 32}, "threshold_bytes: 4294967296 must be from 4214"),
        ({"threshold_bytes": "1"}, "threshold_bytes: '1' must be a whole number"),
        ({"sizes": 1}, "sizes"),
    ],
)
def test_wrong_parameters_are_refused(params: dict[str, Any], words: str) -> None:
    """By name, and nothing is changed; class 2 is cut elsewhere, its headers go on in class 4."""
    plane = FakePlane(FABRIC)
    plane.apply_trim([TrimRule(2, 35, ports="spine1")])
    before = plane.configs.tobytes()
    with pytest.raises(rpc.RpcError) as caught:
        methods(plane).call("set_trim", SET | params)
    assert caught.value.code == rpc.INVALID_PARAMS
    assert words in caught.value.message
    assert plane.configs.tobytes() == before


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({}, "tc: 3 is lossless in this run"),
        ({"tc": 2, "dscp": 27}, "dscp: 27 is in class 3, lossless"),
    ],
)
def test_what_is_or_may_become_lossless_has_no_part_in_it(
    rig: PauseRig, params: dict[str, Any], words: str
) -> None:
    """Neither as what is cut nor for headers; a class that has gates can be lossless again."""
    agent = Methods(rig.plane, rig.plane.emulated_bps, None, "abc123", 1, rig.driver)
    for name in (port.name for port in FABRIC.ports if port.node.startswith(("leaf", "spine"))):
        agent.call("set_pfc", {"port": name, "tc": 3, "lossless": False})
    with pytest.raises(rpc.RpcError) as caught:
        agent.call("set_trim", SET | params)
    assert words in caught.value.message
