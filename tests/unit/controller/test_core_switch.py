"""One switch: what it is sent when it connects, when rules change, and what it confirms."""

from __future__ import annotations

from itertools import count

import pytest

from controller.core.messages import Barrier, Command, FlowMod, Match, Message, Output, Rule
from controller.core.routing import Rules
from controller.core.switch import (
    GENERATION_BITS,
    MAX_GENERATION,
    SwitchState,
    delete_others,
    next_generation,
)
from tests.fakes.of_table import FakeTable


def rule(host: int, port: int) -> Rule:
    """A rule for one address."""
    return Rule(10, Match.of(eth_type=0x800, ipv4_dst=host), (Output(port),))


def rules(**ports: int) -> Rules:
    """Rules by host: ``h1=3`` sends host 1 to port 3."""
    made = [rule(int(name[1:]), port) for name, port in ports.items()]
    return {entry.key: entry for entry in made}


def switch_state() -> SwitchState:
    """A switch that has never connected; barriers are numbered from 1."""
    tokens = count(1)
    return SwitchState("leaf1", 0x1001, lambda: next(tokens))


def kinds(messages: list[Message]) -> str:
    """The messages as letters: a(dd), d(elete), s(trict delete), | for a barrier."""
    letters = {Command.ADD: "a", Command.DELETE: "d", Command.DELETE_STRICT: "s"}
    return "".join("|" if isinstance(m, Barrier) else letters[m.command] for m in messages)


def test_connect_adds_first_and_deletes_after_a_barrier() -> None:
    """All rules, a barrier, the end of other generations, a barrier."""
    messages = switch_state().connect(rules(h1=1, h2=2), 5, 0)
    assert kinds(messages) == "aa|" + "d" * GENERATION_BITS + "|"
    added = [m for m in messages if isinstance(m, FlowMod) and m.command is Command.ADD]
    assert {message.cookie for message in added} == {5}


@pytest.mark.parametrize("generation", [1, 2, 5, 0x5555, MAX_GENERATION])
def test_delete_others_spares_only_its_own_generation(generation: int) -> None:
    """Whatever was there before, foreign rules with cookie 0 included, goes."""
    table = FakeTable(frozenset({1}))
    cookies = {0, 1, 2, 3, 4, 5, 0x5554, 0x5555, 0xAAAA, MAX_GENERATION, generation}
    for number, cookie in enumerate(sorted(cookies)):
        table.apply(FlowMod.add(rule(number, 1), cookie))
    table.apply_all(delete_others(generation))
    assert [entry.cookie for entry in table.entries] == [generation]


def test_generations_never_reach_zero() -> None:
    """They count up and start again at 1."""
    assert [next_generation(n) for n in (1, 2, MAX_GENERATION)] == [2, 3, 1]


def test_update_sends_differences_only() -> None:
    """New and changed rules first, then the ones that are gone, each part with a barrier."""
    switch = switch_state()
    switch.connect(rules(h1=1, h2=2, h3=3), 5, 0)
    messages = switch.update(rules(h1=1, h2=4, h5=5))
    assert kinds(messages) == "aa|s|"
    assert messages[0] == FlowMod.add(rule(2, 4), 5)
    assert messages[3] == FlowMod.remove(rule(3, 3).key)


def test_update_without_difference_sends_nothing() -> None:
    """Nothing changed, nothing said, nothing to wait for."""
    switch = switch_state()
    switch.connect(rules(h1=1), 5, 0)
    switch.acknowledge(2, 0)
    assert switch.update(rules(h1=1)) == []
    assert switch.acknowledged


def test_update_while_away_waits_for_the_next_connection() -> None:
    """A switch that is not connected gets the new rules when it comes back."""
    switch = switch_state()
    assert switch.update(rules(h1=1)) == []
    switch.connect(rules(h1=1), 5, 0)
    switch.disconnect()
    assert switch.update(rules(h1=2)) == []


def test_only_the_last_barrier_confirms() -> None:
    """The answer to the first of two barriers does not mean that all is done."""
    switch = switch_state()
    confirmed = [switch.acknowledged]
    switch.connect(rules(h1=1), 5, 1_000)
    for token, now_ns in ((1, 2_000), (2, 5_000)):
        confirmed.append(switch.acknowledged)
        switch.acknowledge(token, now_ns)
    assert [*confirmed, switch.acknowledged] == [False, False, False, True]
    assert switch.install_ns == 4_000


def test_update_must_be_confirmed_again() -> None:
    """After a change the switch is not ready until it says so; the install time stays."""
    switch = switch_state()
    switch.connect(rules(h1=1), 5, 0)
    switch.acknowledge(2, 10)
    switch.update(rules(h1=2))
    waiting = switch.acknowledged
    switch.acknowledge(3, 99)
    assert (waiting, switch.acknowledged, switch.install_ns) == (False, True, 10)


def test_disconnected_switch_is_not_ready() -> None:
    """An answer that arrives from an old connection changes nothing."""
    switch = switch_state()
    switch.connect(rules(h1=1), 5, 0)
    switch.disconnect()
    switch.acknowledge(2, 0)
    assert not switch.acknowledged
    assert switch.connects == 1
