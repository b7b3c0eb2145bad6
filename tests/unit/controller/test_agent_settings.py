"""From rules to calls: every switch port and class that a rule selects, the last rule winning."""

from __future__ import annotations

from pathlib import Path

from controller.config import config_from_dict
from controller.settings import Call, agent_calls
from tests.fakes.controller_config import config_document
from tests.fakes.fabrics import leaf_spine

FABRIC = leaf_spine(2, 1)
PORTS = ["leaf1-eth1", "leaf1-eth2", "leaf2-eth1", "leaf2-eth2", "spine1-eth1", "spine1-eth2"]


def calls(**rules: object) -> list[Call]:
    """The calls for a configuration with these rules."""
    return agent_calls(config_from_dict(config_document(FABRIC, Path("/run/x"), rules)))


def ecn(tc: int, kmin_bytes: int, ports: str = "switches") -> dict[str, object]:
    """A marking rule."""
    return {
        "tc": tc, "kmin_bytes": kmin_bytes, "kmax_bytes": 9000, "pmax": 0.5, "ports": ports,
    }  # fmt: skip


def test_no_rules_no_calls() -> None:
    """Nothing is set that nobody asked for."""
    assert calls() == []


def test_ecn_for_every_switch_port() -> None:
    """One call per port and class, in target units."""
    made = calls(ecn=[ecn(3, 1000)])
    assert {method for method, _ in made} == {"set_ecn"}
    assert sorted(str(params["port"]) for _, params in made) == PORTS
    assert made[0][1] == {
        "port": made[0][1]["port"], "tc": 3, "kmin_bytes": 1000, "kmax_bytes": 9000, "pmax": 0.5,
    }  # fmt: skip


def test_last_fitting_rule_counts() -> None:
    """A rule for one port overrides the one for all before it; other classes are untouched."""
    made = calls(ecn=[ecn(3, 1000), ecn(4, 500), ecn(3, 2000, "leaf1-eth2")])
    kmin = {(params["port"], params["tc"]): params["kmin_bytes"] for _, params in made}
    assert len(made) == len(kmin) == 12
    assert kmin["leaf1-eth2", 3] == 2000
    assert kmin["leaf1-eth2", 4] == 500
    assert kmin["leaf1-eth1", 3] == 1000


def test_hosts_ports_are_not_the_agents() -> None:
    """A rule for all ports becomes calls for those of switches."""
    made = calls(ecn=[ecn(3, 1000, "all")], scheduler=[{"tc": 3, "priority": 0, "weight": 1,
                                                         "ports": "hosts"}])  # fmt: skip
    assert sorted(str(params["port"]) for _, params in made) == PORTS


def test_scheduler_has_all_classes_of_a_port_in_one_call() -> None:
    """Classes by number, each with priority and weight."""
    rules = [
        {"tc": 3, "priority": 1, "weight": 3},
        {"tc": 0, "priority": 1, "weight": 1},
        {"tc": 6, "priority": 0, "weight": 1, "ports": "spine1"},
    ]
    made = {str(params["port"]): params["classes"] for _, params in calls(scheduler=rules)}
    plain = [{"tc": 0, "priority": 1, "weight": 1}, {"tc": 3, "priority": 1, "weight": 3}]
    assert made["leaf1-eth1"] == plain
    assert made["spine1-eth2"] == [*plain, {"tc": 6, "priority": 0, "weight": 1}]


def test_buffer_of_every_switch() -> None:
    """Size from the fabric, eight factors; only when the section is there."""
    made = calls(buffer=[{"tc": 3, "alpha": 0.125}])
    assert [params["switch"] for _, params in made] == ["leaf1", "leaf2", "spine1"]
    assert made[0] == (
        "set_buffer",
        {"switch": "leaf1", "bytes": FABRIC.buffer_bytes, "alpha": [1, 1, 1, 0.125, 1, 1, 1, 1]},
    )
    assert len(calls(buffer=[])) == 3


def test_trimming_for_every_switch_port() -> None:
    """One call per port and class with all that the agent takes; the last rule counts."""
    rules = [{"tc": 3, "dscp": 43}, {"tc": 3, "dscp": 44, "size_bytes": 128,
                                     "threshold_bytes": 90_000, "ports": "leaf1-eth1"}]  # fmt: skip
    made = {str(params["port"]): (method, params) for method, params in calls(trim=rules)}
    assert sorted(made) == PORTS
    plain = {"port": "spine1-eth1", "tc": 3, "dscp": 43, "size_bytes": 80, "threshold_bytes": None}
    assert made["spine1-eth1"] == ("set_trim", plain)
    special = {"port": "leaf1-eth1", "dscp": 44, "size_bytes": 128, "threshold_bytes": 90_000}
    assert made["leaf1-eth1"] == ("set_trim", plain | special)


def test_calls_repeat_exactly() -> None:
    """The same rules give the same calls in the same order."""
    rules = {"ecn": [ecn(3, 1000), ecn(0, 5)], "buffer": []}
    assert calls(**rules) == calls(**rules)
