"""Fabrics and rules as JSON and back."""

from __future__ import annotations

import json
from typing import Any

import pytest

from topologies.errors import SpecError
from topologies.files import (
    buffer_rule_from_dict,
    class_rule_from_dict,
    ecn_rule_from_dict,
    fabric_from_dict,
    fabric_to_dict,
    rule_to_dict,
    trim_rule_from_dict,
)
from topologies.registry import build_fabric
from topologies.settings import BufferRule, ClassRule, EcnRule, TrimRule


@pytest.fixture
def saved() -> dict[str, Any]:
    """A two-plane fabric after JSON."""
    plane = {"leaves": 2, "spines": 2, "hosts_per_leaf": 2}
    fabric = build_fabric({"kind": "front-back", "front": plane, "back": plane})
    result: dict[str, Any] = json.loads(json.dumps(fabric_to_dict(fabric)))
    return result


def test_a_fabric_survives_json(saved: dict[str, Any]) -> None:
    """Reading what was written gives an equal fabric, and writing that the same text."""
    fabric = fabric_from_dict(saved)
    assert fabric == build_fabric(
        {
            "kind": "front-back",
            "front": {"leaves": 2, "spines": 2, "hosts_per_leaf": 2},
            "back": {"leaves": 2, "spines": 2, "hosts_per_leaf": 2},
        }
    )
    assert json.dumps(fabric_to_dict(fabric)) == json.dumps(saved)


def broken(saved: dict[str, Any], *keys: Any, value: object) -> dict[str, Any]:
    """The mapping with the value at a key path replaced."""
    place = saved
    for key in keys[:-1]:
        place = place[key]
    place[keys[-1]] = value
    return saved


@pytest.mark.parametrize(
    ("keys", "value", "message"),
    [
        (("format",), 2, r"fabric\.format: 2 is not format 1"),
        (("nodes", 0, "role"), "router", r"nodes\[0\]\.role: 'router' is not a known role"),
        (("nodes", 0, "colour"), "red", r"nodes\[0\]\.colour: 'colour' is not a known key"),
        (("nodes",), [], r"fabric\.nodes: \[\] must have at least 1"),
        (("links", 3, "rate_bps"), 0, r"links\[3\]\.rate_bps: 0 must be at least 1"),
        (
            ("links", 3, "rate_bps"),
            "100 Gbit/s",
            r"links\[3\]\.rate_bps: .* must be a whole number",
        ),
        (("attachment", 1), ["h1", 1, 1], r"attachment\[1\]: .* must have at least 4 entries"),
        (("attachment", 1), [1, 1, 1, 1], r"attachment\[1\]\[0\]: 1 must be text"),
        (("extra",), 1, r"fabric\.extra: 'extra' is not a known key"),
    ],
)
def test_damaged_files_are_refused(
    saved: dict[str, Any], keys: tuple[Any, ...], value: object, message: str
) -> None:
    """Every entry is checked, with its place."""
    with pytest.raises(SpecError, match=message):
        fabric_from_dict(broken(saved, *keys, value=value))


def test_rules_survive_json() -> None:
    """Each kind of rule comes back equal."""
    ecn, service = EcnRule(3, 1, 2, 0.5, "leaf1"), ClassRule(3, 0, 2, "hosts")
    assert ecn_rule_from_dict(json.loads(json.dumps(rule_to_dict(ecn)))) == ecn
    assert class_rule_from_dict(json.loads(json.dumps(rule_to_dict(service)))) == service
    assert buffer_rule_from_dict(rule_to_dict(BufferRule(3, 0.125))) == BufferRule(3, 0.125)
    for cut in (TrimRule(3, 43), TrimRule(2, 50, 128, 90_000, "leaf1")):
        assert trim_rule_from_dict(json.loads(json.dumps(rule_to_dict(cut)))) == cut


def test_damaged_rules_are_refused_with_their_place() -> None:
    """A wrong value and an unknown field carry the path of the rule."""
    rule = rule_to_dict(EcnRule(3, 1, 2, 0.5))
    with pytest.raises(SpecError, match=r"^ecn\[0\]\.tc: 9 must be 0 to 7"):
        ecn_rule_from_dict(rule | {"tc": 9}, "ecn[0]")
    with pytest.raises(SpecError, match=r"^ecn\[0\]\.port: 'port' is not a known key"):
        ecn_rule_from_dict(rule | {"port": "x"}, "ecn[0]")
    with pytest.raises(SpecError, match=r"^s\.weight: 0"):
        class_rule_from_dict({"tc": 1, "priority": 0, "weight": 0}, "s")
    with pytest.raises(SpecError, match=r"^b\.alpha: 0"):
        buffer_rule_from_dict({"tc": 1, "alpha": 0.0}, "b")
    with pytest.raises(SpecError, match=r"^t\.size_bytes: 9 must be at least 58"):
        trim_rule_from_dict({"tc": 1, "dscp": 43, "size_bytes": 9}, "t")
    with pytest.raises(SpecError, match=r"^t\.threshold_bytes: '1' must be a whole number"):
        trim_rule_from_dict({"tc": 1, "dscp": 43, "threshold_bytes": "1"}, "t")
