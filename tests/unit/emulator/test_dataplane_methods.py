"""What the agent can be asked: its methods over a data plane without a kernel."""

from __future__ import annotations

import errno
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from controller import rpc, settings
from controller.config import config_from_dict
from emulator.dataplane import building
from emulator.dataplane.methods import Methods
from emulator.kernel import queues
from emulator.kernel.netlink import KernelError, Message
from emulator.spec.ports import MAX_ALPHA
from tests.fakes.controller_config import config_document
from tests.fakes.fabrics import leaf_spine
from tests.fakes.plane import FakePlane
from topologies.files import rule_to_dict
from topologies.settings import BufferRule, ClassRule, EcnRule, TrimRule

FABRIC = leaf_spine(2, 2, 2)
ECN = {"port": "leaf1-eth3", "tc": 3, "kmin_bytes": 400_000, "kmax_bytes": 1_600_000, "pmax": 0.2}
BUFFER = {"switch": "leaf2", "bytes": 8_000_000, "alpha": [1, 1, 1, 0.125, 1, 1, 1, 8]}
CLASSES = [{"tc": 3, "priority": 0, "weight": 4}]


class FakeSession:
    """Notes what the kernel is asked for, and refuses with an error code when there is one."""

    def __init__(self, refusal: int | None = None) -> None:
        self.messages: list[Message] = []
        self._refusal = refusal

    def run(self, messages: Iterable[Message]) -> None:
        """Takes messages."""
        self.messages += messages
        if self._refusal is not None:
            raise KernelError(self._refusal, self.messages[0].label)


BURST_NS = 64_000


def methods(session: FakeSession | None = None) -> tuple[Methods, FakePlane]:
    """Methods over an idle data plane."""
    plane = FakePlane(FABRIC)
    rates: Any = plane.emulated_bps, session
    return Methods(plane, *rates, "abc123", BURST_NS), plane


def index_of(name: str) -> int:
    """A port's index."""
    return FABRIC.port_named(name).index


def refusal(
    method: str, params: dict[str, Any], session: FakeSession | None = None
) -> rpc.RpcError:
    """The error of a call that must fail."""
    with pytest.raises(rpc.RpcError) as caught:
        methods(session or FakeSession())[0].call(method, params)
    return caught.value


def test_hello_tells_run_ports_and_switches() -> None:
    """Switch ports only: hosts are not the controller's business."""
    answer = methods()[0].call("hello", {})
    assert isinstance(answer, dict)
    assert answer["run"] == "abc123"
    assert answer["switches"] == ["leaf1", "leaf2", "spine1", "spine2"]
    assert len(answer["ports"]) == len(FABRIC.ports) - 4
    assert "leaf1-eth1" in answer["ports"]
    assert "h1-eth1" not in answer["ports"]


def test_marking_is_set() -> None:
    """In the table that the program reads, from the next packet on."""
    agent, plane = methods()
    assert agent.call("set_ecn", ECN) == {}
    entry = plane.configs["classes"][index_of("leaf1-eth3"), 3]
    assert entry["kmin"] == 400_000
    assert entry["kmax"] == 1_600_000
    assert entry["pmax"] == round(0.2 * 65536)


def test_marking_is_switched_off_by_a_kmax_of_0() -> None:
    """The other values do not matter then."""
    agent, plane = methods()
    agent.call("set_ecn", ECN)
    agent.call("set_ecn", ECN | {"kmin_bytes": 0, "kmax_bytes": 0, "pmax": 0})
    assert plane.configs["classes"][index_of("leaf1-eth3"), 3]["kmax"] == 0


def test_a_buffer_is_set_with_its_thresholds() -> None:
    """Of one switch, for all of its ports."""
    agent, plane = methods()
    assert agent.call("set_buffer", BUFFER) == {}
    assert plane.switches["buffer_bytes"][plane.switch_ids["leaf2"]] == 8_000_000
    alphas = plane.configs["classes"]["alpha"][index_of("leaf2-eth1")].tolist()
    assert alphas == [256, 256, 256, 32, 256, 256, 256, 2048]


def test_a_scheduler_is_set_at_its_interface() -> None:
    """All eight leaves of the port are changed at once, to its rate and the shapers' burst."""
    session = FakeSession()
    agent, plane = methods(session)
    agent.call("set_scheduler", {"port": "leaf1-eth3", "classes": CLASSES})
    port = FABRIC.port_named("leaf1-eth3")
    leaves = list(building.leaf_classes(None))
    leaves[3] = queues.LeafClass(0, 4)
    assert session.messages == queues.leaves(
        building.interface_index(port.index), port.name, plane.emulated_bps[port.link],
        leaves, building.quantum_bytes(FABRIC), BURST_NS,
    )  # fmt: skip


def test_queues_that_were_used_are_read() -> None:
    """Length now, and counts since the run began."""
    agent, plane = methods()
    plane.carry(["leaf1-eth3"], 10)
    plane.enter("leaf1-eth3", 2)
    plane.drop("leaf1-eth3", 3)
    plane.add("leaf1-eth3", mark_packets=4, trim_packets=2, peak_bytes=9_999)
    assert agent.call("read_queues", {}) == {
        "queues": [
            {"port": "leaf1-eth3", "tc": 3, "bytes": 2 * 4154, "packets_in": 12,
             "packets_out": 10, "dropped": 3, "trimmed": 2, "marked": 4,
             "peak_bytes": 9_999}
        ]
    }  # fmt: skip


def test_a_queue_that_only_dropped_or_cut_is_read() -> None:
    """It never took a packet, and that is just what somebody wants to know."""
    agent, plane = methods()
    plane.drop("leaf1-eth3", 3)
    plane.add("leaf1-eth4", trim_packets=2)
    first, second = agent.queues()["queues"]  # type: ignore[misc]
    assert (first["port"], first["packets_in"], first["dropped"]) == ("leaf1-eth3", 0, 3)
    assert (second["port"], second["packets_in"], second["trimmed"]) == ("leaf1-eth4", 0, 2)


def test_an_unknown_method_lists_the_known_ones() -> None:
    """With the code that JSON-RPC has for it."""
    error = refusal("set_speed", {})
    assert error.code == rpc.METHOD_NOT_FOUND
    for name in (
        "hello",
        "read_queues",
        "set_buffer",
        "set_ecn",
        "set_scheduler",
        "set_trim",
        "subscribe",
    ):
        assert name in error.message
    for name in ("set_pfc", "pause", "resume", "read_pfc", "subscribe_pfc"):
        assert name in error.message


@pytest.mark.parametrize(
    ("method", "params", "words"),
    [
        ("hello", {"x": 1}, "x"),
        ("read_queues", {"port": "leaf1-eth1"}, "port"),
        ("set_ecn", {}, "port"),
        ("set_ecn", ECN | {"port": "leaf9-eth1"}, "leaf9-eth1"),
        ("set_ecn", ECN | {"port": "h1-eth1"}, "h1-eth1"),
        ("set_ecn", ECN | {"tc": 8}, "tc"),
        ("set_ecn", ECN | {"tc": True}, "tc"),
        ("set_ecn", ECN | {"kmin_bytes": -1}, "kmin_bytes"),
        ("set_ecn", ECN | {"kmin_bytes": 2_000_000}, "kmax_bytes"),
        ("set_ecn", ECN | {"kmax_bytes": 1 << 32}, "kmax_bytes"),
        ("set_ecn", ECN | {"kmax_bytes": 0, "kmin_bytes": 1 << 40}, "kmin_bytes"),
        ("set_ecn", ECN | {"kmax_bytes": 1.5e6}, "kmax_bytes"),
        ("set_ecn", ECN | {"pmax": 1.1}, "pmax"),
        ("set_ecn", ECN | {"pmax": 0}, "pmax"),
        ("set_ecn", ECN | {"kmax_bytes": 0, "pmax": -1}, "pmax"),
        ("set_ecn", ECN | {"pmax": "0.2"}, "pmax"),
        ("set_ecn", ECN | {"ecn": True}, "ecn"),
        ("set_buffer", BUFFER | {"switch": "h1"}, "h1"),
        ("set_buffer", BUFFER | {"bytes": 0}, "bytes"),
        ("set_buffer", BUFFER | {"alpha": [1] * 7}, "alpha"),
        ("set_buffer", BUFFER | {"alpha": [1] * 7 + [0]}, "alpha[7]"),
        ("set_buffer", BUFFER | {"alpha": [1] * 7 + [1e9]}, "alpha[7]"),
        ("set_scheduler", {"port": "leaf1-eth1", "classes": []}, "classes"),
        ("set_scheduler", {"port": "leaf1-eth1", "classes": CLASSES * 2}, "classes[1].tc"),
        ("set_scheduler", {"port": "leaf1-eth1", "classes": [{"tc": 3, "priority": 0}]}, "weight"),
        (
            "set_scheduler",
            {"port": "leaf1-eth1", "classes": [{"tc": 3, "priority": 8, "weight": 1}]},
            "priority",
        ),
        (
            "set_scheduler",
            {"port": "leaf1-eth1", "classes": [{"tc": 3, "priority": 0, "weight": 0}]},
            "weight",
        ),
    ],
)
def test_wrong_parameters_are_refused_by_name(
    method: str, params: dict[str, Any], words: str
) -> None:
    """Missing, unknown, of the wrong type or out of range: nothing is changed, nothing ignored."""
    session = FakeSession()
    agent, plane = methods(session)
    before = plane.configs.tobytes()
    with pytest.raises(rpc.RpcError) as caught:
        agent.call(method, params)
    assert caught.value.code == rpc.INVALID_PARAMS
    assert words in caught.value.message
    assert plane.configs.tobytes() == before
    assert session.messages == []


def test_a_refusal_of_the_kernel_is_a_server_error() -> None:
    """The call was right, but could not be carried out; the message says what was refused."""
    params = {"port": "leaf1-eth1", "classes": CLASSES}
    error = refusal("set_scheduler", params, FakeSession(errno.ENOENT))
    assert error.code == rpc.SERVER_ERROR
    assert "class 10 on leaf1-eth1" in error.message


def test_without_netlink_schedulers_cannot_be_changed() -> None:
    """The agent says so instead of doing nothing."""
    with pytest.raises(rpc.RpcError) as caught:
        methods(None)[0].call("set_scheduler", {"port": "leaf1-eth1", "classes": CLASSES})
    assert caught.value.code == rpc.SERVER_ERROR


def test_the_agent_accepts_all_that_the_controller_says(tmp_path: Path) -> None:
    """Every call of a controller's configuration, word for word."""
    rules = {
        "ecn": [rule_to_dict(EcnRule(3, 400_000, 1_600_000, 0.2))],
        "scheduler": [rule_to_dict(ClassRule(tc, tc % 8, tc + 1)) for tc in range(8)],
        "buffer": [rule_to_dict(BufferRule(3, 1 / 8)), rule_to_dict(BufferRule(0, MAX_ALPHA))],
        "trim": [rule_to_dict(TrimRule(3, 43)), rule_to_dict(TrimRule(2, 50, 128, 90_000))],
    }
    agent, _ = methods(FakeSession())
    config = config_from_dict(config_document(FABRIC, tmp_path, rules))
    calls = settings.agent_calls(config)
    used = {"set_ecn", "set_scheduler", "set_buffer", "set_trim"}
    assert {method for method, _ in calls} == used
    assert [agent.call(method, params) for method, params in calls] == [{}] * len(calls)
