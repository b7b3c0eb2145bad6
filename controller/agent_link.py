"""Keeps the agent told: connects, sends all settings, waits until it goes, starts again."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from pathlib import Path

from controller.agent_client import (
    DEFAULT_TIMEOUT_S,
    AgentClient,
    AgentError,
    AgentRefusedError,
    Call,
)
from controller.pausing import METHOD, Pauser
from controller.state import Settings

LOG = logging.getLogger("controller.agent")

QUIET_S = 0.5
"""After so long without a crossing the count of them is written down, seconds of wall time."""
RETRY_S = 0.2
"""Pause between two attempts to reach the agent, seconds of wall time."""


class AgentLink:
    """The controller's side of the connection to the agent.

    Args:
        path: the agent's socket; None when there is no agent and nothing to tell it.
        calls: all that it has to be told, each time that it comes back.
        changed: called after every change of `settings` or `errors`.
        sleep: waits for so many seconds.
        timeout_s: for each answer, seconds.
        pauser: answers crossings of XOFF and XON; None where switches pause by themselves.

    Attributes:
        errors: calls that the agent has refused, in order, each once.
    """

    def __init__(
        self,
        path: Path | None,
        calls: Sequence[Call],
        changed: Callable[[], None],
        sleep: Callable[[float], object],
        timeout_s: float = DEFAULT_TIMEOUT_S,
        pauser: Pauser | None = None,
    ) -> None:
        self._path = path
        self._calls = calls
        self._changed = changed
        self._sleep = sleep
        self._timeout_s = timeout_s
        self._pauser = pauser
        self._sent = not calls
        self._times = 0
        self._told = ""
        self.errors: dict[str, None] = {}

    @property
    def settings(self) -> Settings:
        """How far the agent is."""
        return Settings(len(self._calls), self._sent, self._times)

    def run(self) -> None:
        """Keep the agent told for ever; returns at once when there is nothing to tell."""
        while self._path is not None and self._calls:
            self.attempt(self._path)
            self._sleep(RETRY_S)

    def attempt(self, path: Path) -> None:
        """Connect once, tell everything, and return when the agent has gone or refuses."""
        try:
            with AgentClient(path, self._timeout_s) as agent:
                agent.call("hello")
                agent.call_all(self._calls)
                self._told = ""
                LOG.info("the agent has accepted %d settings", len(self._calls))
                self._follow(agent)
        except AgentRefusedError as error:
            self._refused(error)
        except AgentError as error:
            self._report(error, logging.WARNING)
        if self._sent:
            self._set(sent=False)

    def _follow(self, agent: AgentClient) -> None:
        """Answers crossings until the agent has gone."""
        if self._pauser is not None:
            agent.call("subscribe_pfc")
        self._set(sent=True)
        while True:
            before = self._pauser.crossings if self._pauser else 0
            for told in agent.notifications(None if self._pauser is None else QUIET_S):
                if self._pauser is not None and told.method == METHOD:
                    agent.call_all(self._pauser.calls(told.params))
            if self._pauser is not None and self._pauser.crossings != before:
                self._changed()

    def _set(self, *, sent: bool) -> None:
        self._times += sent
        self._sent = sent
        self._changed()

    def _refused(self, error: AgentRefusedError) -> None:
        self._report(error, logging.ERROR)
        if str(error) not in self.errors:
            self.errors[str(error)] = None
            self._changed()

    def _report(self, error: AgentError, level: int) -> None:
        """Log an error, but not the same one again at every attempt."""
        if str(error) != self._told:
            self._told = str(error)
            LOG.log(level, "%s; trying again", error)
