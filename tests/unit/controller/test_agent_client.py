"""Calls to the agent: answers, refusals, silence, loss, and what it tells unasked."""

from __future__ import annotations

from pathlib import Path

import pytest

from controller import rpc
from controller.agent_client import (
    PIPELINE,
    AgentClient,
    AgentLostError,
    AgentRefusedError,
    AgentSilentError,
)
from tests.fakes.agent import FakeAgent

SHORT_S = 0.05
"""Long enough for nothing to arrive, short enough not to be noticed."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the agent's socket is."""
    return tmp_path / "agent.sock"


def echo(request: rpc.Request) -> rpc.Message:
    """Answer with the parameters."""
    return rpc.Response(request.id, dict(request.params))


def refuse(request: rpc.Request) -> rpc.Message:
    """Refuse everything."""
    return rpc.ErrorResponse(request.id, rpc.INVALID_PARAMS, "no such port", {"known": []})


def test_call_returns_the_result(path: Path) -> None:
    """The agent gets method and parameters, the caller the result."""
    with FakeAgent(path, echo) as agent, AgentClient(path) as client:
        assert client.call("set_ecn", port="leaf1-eth1", tc=3) == {"port": "leaf1-eth1", "tc": 3}
    assert agent.calls("set_ecn") == [{"port": "leaf1-eth1", "tc": 3}]


def test_many_calls_keep_their_order(path: Path) -> None:
    """More calls than may be under way at once, each with its own result."""
    numbers = range(PIPELINE * 3 + 1)
    with FakeAgent(path, echo), AgentClient(path) as client:
        results = client.call_all(("count", {"n": n}) for n in numbers)
    assert results == [{"n": n} for n in numbers]


def test_refusal_names_the_call_and_the_reason(path: Path) -> None:
    """The error has what was asked, the agent's sentence, code and data."""
    with (
        FakeAgent(path, refuse),
        AgentClient(path) as client,
        pytest.raises(AgentRefusedError, match=r"set_ecn\(port='x'\): no such port") as caught,
    ):
        client.call("set_ecn", port="x")
    assert (caught.value.code, caught.value.data) == (rpc.INVALID_PARAMS, {"known": []})


def test_no_agent(path: Path) -> None:
    """Nobody there is an error that names the socket."""
    with pytest.raises(AgentLostError, match=r"no agent at .*agent\.sock"):
        AgentClient(path)


def test_silence(path: Path) -> None:
    """No answer in time is an error that names the method and the time."""
    with (
        FakeAgent(path, lambda request: None),
        AgentClient(path, timeout_s=SHORT_S) as client,
        pytest.raises(AgentSilentError, match=rf"no answer to hello in {SHORT_S} s"),
    ):
        client.call("hello")


def test_agent_goes_while_asked(path: Path) -> None:
    """The end of the connection is an error at once, not after the time-out."""
    with (
        FakeAgent(path, lambda request: agent.hang_up()) as agent,
        AgentClient(path) as client,
        pytest.raises(AgentLostError, match="gone while waiting for hello"),
    ):
        client.call("hello")


def test_agent_has_gone_before(path: Path) -> None:
    """So is a call on a connection that has ended."""
    with FakeAgent(path) as agent, AgentClient(path) as client:
        client.call("hello")
        agent.hang_up()
        with pytest.raises(AgentLostError):
            client.call_all([("hello", {})] * 100)


def test_nonsense_from_the_agent(path: Path) -> None:
    """What is no message ends the call with the codec's reason."""
    with (
        FakeAgent(path, lambda request: agent.send(b"what?\n")) as agent,
        AgentClient(path) as client,
        pytest.raises(AgentLostError, match="not JSON"),
    ):
        client.call("hello")


def test_line_without_end(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A flood without a line break ends the call."""
    monkeypatch.setattr(rpc.Decoder.__init__, "__defaults__", (100,))
    with (
        FakeAgent(path, lambda request: agent.send(b"x" * 200)) as agent,
        AgentClient(path) as client,
        pytest.raises(AgentLostError, match="more than 100 bytes"),
    ):
        client.call("hello")


def test_answer_to_nothing(path: Path) -> None:
    """An answer that nobody asked for means that both sides disagree."""
    with (
        FakeAgent(path, lambda request: rpc.Response(999, 1)),
        AgentClient(path) as client,
        pytest.raises(AgentLostError, match="unexpected message"),
    ):
        client.call("hello")


def test_notifications_are_kept_while_calls_wait(path: Path) -> None:
    """What the agent tells between request and answer is not lost, nor out of order."""

    def tell_first(request: rpc.Request) -> rpc.Message:
        agent.tell(rpc.Notification("queues", {"n": 1}), rpc.Notification("queues", {"n": 2}))
        return rpc.Response(request.id, "done")

    with FakeAgent(path, tell_first) as agent, AgentClient(path) as client:
        assert client.call("subscribe", interval_ns=1000) == "done"
        agent.tell(rpc.Notification("queues", {"n": 3}))
        told = [next(client.notifications()).params for _ in range(3)]
    assert told == [{"n": 1}, {"n": 2}, {"n": 3}]


def test_notifications_end_when_nothing_comes(path: Path) -> None:
    """With a time limit the iterator ends, and calls work as before."""
    with FakeAgent(path, echo) as agent, AgentClient(path) as client:
        agent.tell(rpc.Notification("queues"))
        assert list(client.notifications(timeout_s=SHORT_S)) == [rpc.Notification("queues")]
        assert client.call("hello") == {}


def test_notifications_raise_when_the_agent_goes(path: Path) -> None:
    """Waiting for ever ends with the agent."""
    with FakeAgent(path) as agent, AgentClient(path) as client:
        client.call("hello")
        agent.hang_up()
        with pytest.raises(AgentLostError, match="gone"):
            next(client.notifications())


def test_close_twice(path: Path) -> None:
    """Closing is safe to repeat."""
    with FakeAgent(path), AgentClient(path) as client:
        client.close()
