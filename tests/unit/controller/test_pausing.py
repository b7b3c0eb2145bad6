"""Pause by the controller: crossings in, calls out, policies by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from controller.config import config_from_dict
from controller.pausing import Pauser
from controller.policies import pausing
from controller.policies.pausing import Crossing, Order
from tests.fakes.controller_config import config_document
from tests.fakes.fabrics import leaf_spine
from topologies.errors import SpecError, UnknownNameError
from topologies.files import rule_to_dict
from topologies.settings import PfcRule

FABRIC = leaf_spine(2, 1)
TOLD = {"port": "leaf1-eth1", "tc": 3, "paused": True, "held_bytes": 9_000}


def pauser(*rules: PfcRule) -> Pauser:
    """For a configuration with these rules."""
    raw = [rule_to_dict(rule) for rule in rules]
    return Pauser(config_from_dict(config_document(FABRIC, Path("/run/x"), {"pfc": raw})))


def test_the_port_that_crossed_pauses_and_resumes() -> None:
    """What a switch would do, as calls of the agent's methods; they are counted."""
    one = pauser(PfcRule(3, control="follow"))
    assert one.wanted
    assert one.calls(TOLD) == [("pause", {"port": "leaf1-eth1", "tc": 3})]
    assert one.calls({**TOLD, "paused": False}) == [("resume", {"port": "leaf1-eth1", "tc": 3})]
    assert (one.crossings, one.orders) == (2, 2)


def test_classes_of_the_switch_are_left_to_it() -> None:
    """Also single ports of a class that is left to a policy elsewhere."""
    assert not pauser(PfcRule(3)).wanted
    one = pauser(PfcRule(3, control="follow"), PfcRule(3, ports="leaf1-eth1"))
    assert one.calls(TOLD) == []
    assert one.calls({**TOLD, "tc": 4}) == []
    assert one.crossings == 0


def test_an_order_may_have_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A policy of one's own that pauses all ports of the switch for a while."""

    class Everybody:
        name = "everybody"

        def crossed(self, crossing: Crossing) -> list[Order]:
            node = crossing.port.split("-")[0]
            return [
                Order(port.name, crossing.tc, crossing.paused, 5_000)
                for port in FABRIC.ports_of[node]
            ]

    monkeypatch.setitem(pausing._builders, "everybody", lambda _fabric: Everybody())
    one = pauser(PfcRule(3, control="everybody"))
    names = [port.name for port in FABRIC.ports_of["leaf1"]]
    assert one.calls(TOLD) == [
        ("pause", {"port": name, "tc": 3, "duration_ns": 5_000}) for name in names
    ]
    assert one.calls({**TOLD, "paused": False})[0] == ("resume", {"port": names[0], "tc": 3})
    assert one.orders == 2 * len(names)


def test_hosts_pause_for_themselves() -> None:
    """What a host's port tells of is no matter of a policy that asks switch ports."""
    policy = pausing.build("follow", FABRIC)
    assert policy.crossed(Crossing("h1-eth1", 3, paused=True, held_bytes=1)) == []


def test_an_unknown_policy_is_refused_with_the_configuration() -> None:
    """The known ones are listed."""
    raw = [rule_to_dict(PfcRule(3, control="nobody"))]
    with pytest.raises(UnknownNameError, match=r"pfc\.control: 'nobody' .* known: follow"):
        config_from_dict(config_document(FABRIC, Path("/run/x"), {"pfc": raw}))


@pytest.mark.parametrize("change", [{"tc": None}, {"paused": 1}, {"more": 1}])
def test_a_notification_is_read_strictly(change: dict[str, Any]) -> None:
    """The agent speaks the same language, or says so."""
    with pytest.raises(SpecError):
        pauser(PfcRule(3, control="follow")).calls({**TOLD, **change})
