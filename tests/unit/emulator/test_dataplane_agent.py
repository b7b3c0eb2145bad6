"""The agent over its Unix socket, asked by the controller's own client."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

from controller import rpc
from controller.agent_client import AgentClient, AgentLostError, AgentRefusedError
from emulator.dataplane import agent as module
from emulator.dataplane.agent import Agent
from emulator.dataplane.methods import PROTOCOL, Methods
from tests.fakes.fabrics import leaf_spine
from tests.fakes.pausing import PauseRig
from tests.fakes.plane import FakePlane
from topologies.settings import PfcRule

FABRIC = leaf_spine(2, 2, 2)
PATIENCE_S = 20.0
ECN = {"port": "leaf1-eth3", "tc": 3, "kmin_bytes": 10, "kmax_bytes": 20, "pmax": 0.5}


class Serving:
    """An agent that serves in a thread until the test is over."""

    def __init__(self, path: Path, rig: PauseRig | None = None) -> None:
        self.path, self.plane = path, rig.plane if rig else FakePlane(FABRIC)
        self._stop = threading.Event()
        driver = rig.driver if rig else None
        methods = Methods(self.plane, self.plane.emulated_bps, None, "abc123", 1, driver)
        self.agent = Agent(path, methods, 1.0, driver)
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        with self.agent:
            self.agent.serve(self._stop.is_set)

    def end(self) -> None:
        """Stops serving."""
        self._stop.set()
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive()

    def client(self) -> AgentClient:
        """A connection of the controller's kind."""
        return AgentClient(self.path, PATIENCE_S)

    def raw(self) -> socket.socket:
        """A connection that can say anything."""
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(PATIENCE_S)
        connection.connect(str(self.path))
        return connection


@pytest.fixture
def serving(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Serving]:
    """An agent that looks often whether it shall stop."""
    monkeypatch.setattr(module, "_LOOK_EVERY_NS", 5_000_000)
    one = Serving(tmp_path / "agent.sock")
    yield one
    one.end()


def test_calls_are_answered(serving: Serving) -> None:
    """In order, each with its own result, and they take effect."""
    with serving.client() as client:
        hello, done = client.call_all([("hello", {}), ("set_ecn", ECN)])
    assert isinstance(hello, dict)
    assert (hello["protocol"], hello["run"]) == (PROTOCOL, "abc123")
    assert done == {}
    assert serving.plane.configs["classes"]["kmax"].max() == 20


def test_refusals_carry_code_and_sentence(serving: Serving) -> None:
    """And the connection goes on."""
    with serving.client() as client:
        with pytest.raises(AgentRefusedError, match="leaf9-eth1") as caught:
            client.call("set_ecn", **ECN | {"port": "leaf9-eth1"})
        assert caught.value.code == rpc.INVALID_PARAMS
        with pytest.raises(AgentRefusedError) as caught:
            client.call("dance")
        assert caught.value.code == rpc.METHOD_NOT_FOUND
        assert client.call("read_queues") == {"queues": []}


def test_several_clients_are_served(serving: Serving) -> None:
    """One that leaves does not disturb the others."""
    with serving.client() as first, serving.client() as second:
        assert first.call("read_queues") == second.call("read_queues")
        first.close()
        assert second.call("read_queues") == {"queues": []}


def test_subscribers_are_told_of_the_queues(serving: Serving) -> None:
    """Again and again, with what is counted by then; others are not told."""
    serving.plane.carry(["leaf1-eth3"], 5)
    with serving.client() as client, serving.client() as other:
        assert client.call("subscribe", interval_ns=2_000_000) == {}
        stream = client.notifications(PATIENCE_S)
        first = next(stream)
        serving.plane.carry(["leaf1-eth3"], 2)
        counts = {5}
        while 7 not in counts:
            counts.add(next(stream).params["queues"][0]["packets_in"])  # type: ignore[index]
        stream.close()
        assert other.call("read_queues") is not None
    assert first.method == "queues"
    assert counts == {5, 7}


@pytest.mark.parametrize("interval", [0, -5, True, "1 ms", None])
def test_a_subscription_needs_a_time(serving: Serving, interval: object) -> None:
    """Anything but a number of ns is refused."""
    with serving.client() as client, pytest.raises(AgentRefusedError, match="interval_ns"):
        client.call("subscribe", interval_ns=interval)


def test_unknown_parameters_of_a_subscription_are_refused(serving: Serving) -> None:
    """As everywhere else."""
    with serving.client() as client, pytest.raises(AgentRefusedError, match="ports"):
        client.call("subscribe", interval_ns=1_000, ports=["leaf1-eth1"])


def test_what_is_no_message_is_answered_with_an_error(serving: Serving) -> None:
    """The next line is still understood."""
    with serving.raw() as connection, connection.makefile("rb") as lines:
        connection.sendall(b'nonsense\n{"jsonrpc": "2.0", "id": 4, "method": "hello"}\n')
        first, second = json.loads(lines.readline()), json.loads(lines.readline())
    assert (first["id"], first["error"]["code"]) == (None, rpc.PARSE_ERROR)
    assert second["id"] == 4
    assert "result" in second


def test_requests_may_come_in_pieces(serving: Serving) -> None:
    """A line ends with its newline, wherever the packets end."""
    line = b'{"jsonrpc": "2.0", "id": 1, "method": "read_queues", "params": {}}\n'
    with serving.raw() as connection, connection.makefile("rb") as lines:
        for at in range(0, len(line), 7):
            connection.sendall(line[at : at + 7])
        assert json.loads(lines.readline())["result"] == {"queues": []}


def test_notifications_of_a_client_are_not_answered(serving: Serving) -> None:
    """As JSON-RPC has it: what comes next is the answer to the request."""
    with serving.raw() as connection, connection.makefile("rb") as lines:
        connection.sendall(b'{"jsonrpc": "2.0", "method": "hello"}\n')
        connection.sendall(b'{"jsonrpc": "2.0", "id": 9, "method": "hello"}\n')
        assert json.loads(lines.readline())["id"] == 9


def ask_for_ever(connection: socket.socket) -> None:
    """Sends requests and reads nothing, until the other side has had enough."""
    while True:
        connection.sendall(b'{"jsonrpc": "2.0", "id": 1, "method": "hello"}\n' * 100)


def test_a_client_that_does_not_read_is_given_up(
    serving: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It must not hold up the others for ever."""
    monkeypatch.setattr(module, "_SEND_PATIENCE_S", 0.01)
    with serving.raw() as deaf:
        with pytest.raises(OSError, match=r"reset|[Bb]roken pipe"):
            ask_for_ever(deaf)
        with serving.client() as client:
            assert client.call("read_queues") == {"queues": []}


def test_clients_see_the_end(tmp_path: Path) -> None:
    """An agent that stops closes its connections and its socket."""
    serving = Serving(tmp_path / "agent.sock")
    with serving.client() as client:
        client.call("hello")
        serving.end()
        with pytest.raises(AgentLostError):
            client.call("hello")
    with pytest.raises(AgentLostError):
        serving.client()


def test_crossings_are_driven_and_told(tmp_path: Path) -> None:
    """What crosses XOFF wakes the agent, which tells those who asked, and closes the gate."""
    rule = PfcRule(3, response_ns=1_000)
    rig = PauseRig(FABRIC, [rule], tmp_path / "log")
    rig.now_ns = 1 << 60
    serving = Serving(tmp_path / "agent.sock", rig)
    try:
        with serving.client() as client:
            client.call("subscribe_pfc")
            rig.plane.cross("leaf1-eth3", 5)
            (told,) = islice(client.notifications(PATIENCE_S), 1)
            assert told.method == "pfc"
            assert told.params == {
                "port": "leaf1-eth3", "tc": 3, "paused": True, "held_bytes": 10_000,
            }  # fmt: skip
            assert client.call("read_pfc") is not None  # after the crossing was dealt with
        assert rig.gates.done == [("spine1-eth1", 3, True)]
    finally:
        serving.end()
        rig.close()
