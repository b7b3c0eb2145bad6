"""Rules for ports and classes: validation, selectors, which rule counts."""

from __future__ import annotations

from typing import Any

import pytest

from topologies.errors import SpecError, UnknownNameError
from topologies.model import Fabric
from topologies.registry import build_fabric
from topologies.settings import (
    BufferRule,
    ClassRule,
    EcnRule,
    TrimRule,
    resolve,
    resolve_alphas,
    select_ports,
    trimmed_dscp,
)

STEP = EcnRule(3, 65_000, 65_000, 1.0)


@pytest.fixture
def fabric() -> Fabric:
    """Two leaves, two spines, two hosts per leaf."""
    return build_fabric({"kind": "leaf-spine", "leaves": 2, "spines": 2, "hosts_per_leaf": 2})


def names(fabric: Fabric, selector: str) -> list[str]:
    """Names of the selected ports."""
    return [port.name for port in select_ports(fabric, selector)]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"tc": 8}, "tc: 8 must be 0 to 7"),
        ({"tc": -1}, "tc: -1 must be 0 to 7"),
        ({"tc": True}, "tc: True must be a whole number"),
        ({"kmin_bytes": -1}, "kmin_bytes: -1 must be at least 0"),
        ({"kmin_bytes": 2, "kmax_bytes": 1}, "kmax_bytes: 1 must not be below kmin_bytes, 2"),
        ({"pmax": 0}, "pmax: 0 must be above 0 and at most 1"),
        ({"pmax": 1.5}, r"pmax: 1\.5 must be above 0"),
        ({"pmax": float("nan")}, "pmax: nan must be above 0"),
    ],
)
def test_bad_marking_rules(fields: dict[str, Any], message: str) -> None:
    """Each impossible value is an error that names the field."""
    with pytest.raises(SpecError, match=message):
        EcnRule(**({"tc": 3, "kmin_bytes": 1, "kmax_bytes": 2, "pmax": 0.2} | fields))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"tc": 8}, "tc: 8"),
        ({"priority": 8}, "priority: 8 must be 0 to 7"),
        ({"weight": 0}, "weight: 0 must be 1 to 1000"),
        ({"weight": 1.5}, r"weight: 1\.5 must be a whole number"),
    ],
)
def test_bad_class_rules(fields: dict[str, Any], message: str) -> None:
    """Priorities are 0 to 7 and weights whole numbers from 1 on."""
    with pytest.raises(SpecError, match=message):
        ClassRule(**({"tc": 3, "priority": 0, "weight": 1} | fields))


@pytest.mark.parametrize("alpha", [0, -1, float("inf"), float("nan")])
def test_bad_buffer_rules(alpha: float) -> None:
    """Alpha is a finite number above 0."""
    with pytest.raises(SpecError, match=r"alpha: .* must be a finite number above 0"):
        BufferRule(3, alpha)


def test_a_step_is_a_marking_rule() -> None:
    """Kmin = Kmax with Pmax 1 is the step of DCTCP; Kmin 0 marks from the first byte."""
    assert STEP.kmin_bytes == STEP.kmax_bytes
    assert EcnRule(0, 0, 0, 1).ports == "switches"


def test_groups_of_ports(fabric: Fabric) -> None:
    """Switch ports and host ports together are all ports."""
    assert names(fabric, "hosts") == [f"h{i}-eth1" for i in range(1, 5)]
    assert sorted(names(fabric, "switches") + names(fabric, "hosts")) == sorted(
        names(fabric, "all")
    )


def test_single_ports_nodes_and_patterns(fabric: Fabric) -> None:
    """A port by its name, a node by its name, any by a pattern over port names."""
    assert names(fabric, "leaf1-eth3") == ["leaf1-eth3"]
    assert names(fabric, "spine2") == ["spine2-eth1", "spine2-eth2"]
    assert names(fabric, "leaf*-eth[34]") == [
        "leaf1-eth3", "leaf1-eth4", "leaf2-eth3", "leaf2-eth4",
    ]  # fmt: skip


@pytest.mark.parametrize("selector", ["leaf3-eth1", "leaf1-eth5", "LEAF1", "", "x*"])
def test_a_selector_without_a_port_lists_the_known(fabric: Fabric, selector: str) -> None:
    """A selector that fits nothing is an error with the rule's place and the known names."""
    rules = [STEP, EcnRule(3, 1, 2, 0.5, ports=selector)]
    with pytest.raises(
        UnknownNameError, match=r"^ecn\[1\]\.ports: .*known: all, h1-eth1"
    ) as caught:
        resolve(rules, fabric, "ecn")
    assert "leaf2-eth4" in str(caught.value)


def test_the_list_of_known_ports_stays_readable() -> None:
    """In a large fabric the error gives one range per switch."""
    raw = {"kind": "leaf-spine", "leaves": 8, "spines": 4, "hosts_per_leaf": 64}
    with pytest.raises(UnknownNameError, match=r"leaf8-eth1\.\.68") as caught:
        select_ports(build_fabric(raw), "leaf9")
    assert len(str(caught.value)) < 1000


def test_the_last_fitting_rule_counts(fabric: Fabric) -> None:
    """A profile's rule for all ports is replaced on one port, for that class only."""
    other = EcnRule(3, 5_000, 200_000, 0.01, ports="leaf1-eth3")
    fourth = EcnRule(4, 1, 2, 1.0)
    rules = resolve([STEP, fourth, other], fabric)
    special = fabric.port_named("leaf1-eth3").index
    assert rules[special] == {3: other, 4: fourth}
    switch_ports = {port.index for port in select_ports(fabric, "switches")}
    assert rules.keys() == switch_ports
    assert all(rules[index] == {3: STEP, 4: fourth} for index in switch_ports - {special})


def test_class_rules_resolve_alike(fabric: Fabric) -> None:
    """Service rules use the same selectors."""
    rule = ClassRule(3, 0, 3, ports="h1")
    assert resolve([rule], fabric) == {fabric.port_named("h1-eth1").index: {3: rule}}
    assert resolve([], fabric) == {}


def test_alphas_of_all_classes() -> None:
    """Classes without a rule keep the default; the last rule of a class counts."""
    alphas = resolve_alphas([BufferRule(3, 0.5), BufferRule(3, 0.125)], default=2.0)
    assert alphas == (2.0, 2.0, 2.0, 0.125, 2.0, 2.0, 2.0, 2.0)


def test_last_hop_is_every_switch_port_that_leads_to_a_host(fabric: Fabric) -> None:
    """By what is at the other end; the rest of the switches' ports lead to switches."""
    last = names(fabric, "last-hop")
    assert last == [f"leaf{leaf}-eth{port}" for leaf in (1, 2) for port in (1, 2)]
    between = {"leaf1-eth3", "leaf1-eth4", "leaf2-eth3", "leaf2-eth4"}
    between |= {f"spine{n}-eth{port}" for n in (1, 2) for port in (1, 2)}
    assert set(names(fabric, "switches")) == between | set(last)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"tc": 8}, "tc: 8 must be 0 to 7"),
        ({"dscp": 64}, "dscp: 64 must be 0 to 63"),
        ({"dscp": 31}, "dscp: 31 belongs to class 3 itself, whose queue has no room"),
        ({"size_bytes": 57}, "size_bytes: 57 must be at least 58"),
        ({"threshold_bytes": 0}, "threshold_bytes: 0 must be at least 1"),
        ({"threshold_bytes": 1e5}, "threshold_bytes: 100000.0 must be a whole number"),
    ],
)
def test_bad_trimming_rules(fields: dict[str, Any], message: str) -> None:
    """Each impossible value is an error that names the field."""
    with pytest.raises(SpecError, match=message):
        TrimRule(**({"tc": 3, "dscp": 43} | fields))


def test_a_code_point_says_the_class_of_what_was_cut(fabric: Fabric) -> None:
    """Its upper three bits; the automatic one is for local use, as is no class selector."""
    for tc in range(8):
        assert TrimRule((tc + 1) % 8, trimmed_dscp(tc)).to_class == tc
        assert trimmed_dscp(tc) & 0b11 == 0b11
    rule = TrimRule(3, 43, ports="leaf1-eth1")
    assert resolve([rule], fabric) == {fabric.port_named("leaf1-eth1").index: {3: rule}}
