"""The agent is told everything, again whenever it comes back, and refusals are not hidden."""

from __future__ import annotations

import logging
import threading
from functools import partial
from pathlib import Path

import pytest

from controller import rpc
from controller.agent_client import Call
from controller.agent_link import RETRY_S, AgentLink
from controller.config import config_from_dict
from controller.pausing import Pauser
from controller.state import Settings
from tests.fakes.agent import FakeAgent, accept
from tests.fakes.controller_config import config_document
from tests.fakes.fabrics import leaf_spine
from topologies.files import rule_to_dict
from topologies.settings import PfcRule

CALLS: list[Call] = [("set_ecn", {"port": "leaf1-eth1"}), ("set_ecn", {"port": "leaf1-eth2"})]


class Ended(Exception):
    """Ends a link's endless loop from its sleep."""


class Watched:
    """A link whose changes and pauses are noted.

    Args:
        path: the agent's socket.
        calls: what it has to be told.
        pauses: after so many the loop is ended.
    """

    def __init__(self, path: Path | None, calls: list[Call], pauses: int = 1) -> None:
        self.seen: list[Settings] = []
        self.slept: list[float] = []
        self._pauses = pauses
        self.link = AgentLink(path, calls, self._changed, self._sleep, timeout_s=20)

    def _changed(self) -> None:
        self.seen.append(self.link.settings)

    def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        if len(self.slept) == self._pauses:
            raise Ended

    def run(self) -> None:
        """Run the loop until the last pause."""
        with pytest.raises(Ended):
            self.link.run()


def in_background(watched: Watched) -> threading.Thread:
    """Run a link's loop in a thread, as the controller does in a green one."""
    thread = threading.Thread(target=watched.run, daemon=True)
    thread.start()
    return thread


def has_answered(agent: FakeAgent, count: int) -> bool:
    """Whether an agent has answered so many calls."""
    return agent.answered == count


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the agent's socket is."""
    return tmp_path / "agent.sock"


def test_nothing_to_tell() -> None:
    """Without rules, or without an agent, the settings are in from the start."""
    for given in (None, Path("/nowhere/agent.sock")):
        watched = Watched(given, [])
        watched.link.run()
        assert watched.link.settings == Settings(calls=0, sent=True, times=0)
        assert watched.seen == []


def test_tells_everything_in_order(path: Path) -> None:
    """A greeting, then all calls; from then on the settings are in."""
    watched = Watched(path, CALLS)
    with FakeAgent(path) as agent:
        thread = in_background(watched)
        assert agent.wait_for(lambda: agent.answered == 3)
        assert [(r.method, r.params) for r in agent.requests] == [("hello", {}), *CALLS]
        agent.hang_up()
        thread.join(20)
    assert watched.seen == [Settings(2, True, 1), Settings(2, False, 1)]


def test_tells_again_when_the_agent_comes_back(path: Path) -> None:
    """A restarted agent knows nothing; it is told everything once more."""
    watched = Watched(path, CALLS, pauses=2)
    with FakeAgent(path) as agent:
        thread = in_background(watched)
        for times in (1, 2):
            assert agent.wait_for(partial(has_answered, agent, 3 * times))
            agent.hang_up()
        thread.join(20)
    assert agent.calls("set_ecn") == [params for _, params in CALLS] * 2
    assert watched.seen[-2:] == [Settings(2, True, 2), Settings(2, False, 2)]


def test_waits_for_an_agent_that_is_not_there(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """It tries again after a pause, and says so once, not at every attempt."""
    watched = Watched(path, CALLS, pauses=3)
    watched.run()
    assert watched.slept == [RETRY_S] * 3
    assert watched.seen == []
    assert [r.levelno for r in caplog.records] == [logging.WARNING]
    assert watched.link.errors == {}


def test_refusal_is_an_error(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A setting that the agent refuses is logged as ERROR and kept, and the settings are not in."""

    def refuse_second(request: rpc.Request) -> rpc.Message:
        if request.params.get("port") == "leaf1-eth2":
            return rpc.ErrorResponse(request.id, rpc.INVALID_PARAMS, "no such port")
        return accept(request)

    watched = Watched(path, CALLS, pauses=2)
    with FakeAgent(path, refuse_second):
        watched.run()
    error = "the agent refuses set_ecn(port='leaf1-eth2'): no such port (-32602)"
    assert list(watched.link.errors) == [error]
    assert [r.levelno for r in caplog.records] == [logging.ERROR]
    assert watched.seen == [watched.link.settings] == [Settings(2, False, 0)]


def test_crossings_are_answered_while_the_agent_is_there(path: Path) -> None:
    """After the settings, in order, as the pause policy says."""
    raw = [rule_to_dict(PfcRule(3, control="follow"))]
    config = config_from_dict(config_document(leaf_spine(2, 1), path.parent, {"pfc": raw}))
    watched, pauser = Watched(path, CALLS), Pauser(config)
    counted = threading.Event()

    def changed() -> None:
        if pauser.crossings == 2:
            counted.set()

    watched.link = AgentLink(path, CALLS, changed, watched._sleep, timeout_s=20, pauser=pauser)
    told = {"port": "leaf1-eth1", "tc": 3, "held_bytes": 9}
    with FakeAgent(path) as agent:
        thread = in_background(watched)
        assert agent.wait_for(lambda: bool(agent.calls("subscribe_pfc")))
        for paused in (True, False):
            agent.tell(rpc.Notification("pfc", {**told, "paused": paused}))
        agent.tell(rpc.Notification("queues", {"queues": []}))
        assert agent.wait_for(lambda: bool(agent.calls("resume")))
        assert agent.calls("pause") == agent.calls("resume") == [{"port": "leaf1-eth1", "tc": 3}]
        assert counted.wait(20)
        agent.hang_up()
        thread.join(20)
    assert not thread.is_alive()
