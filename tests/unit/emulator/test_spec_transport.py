"""The section ``transport``: kinds, what belongs to each, and what does not go together."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from emulator.spec.dump import to_yaml
from emulator.spec.model import AUTO
from emulator.spec.transport import KINDS, override_fields, override_key
from tests.unit.emulator.spec_samples import experiment, from_text
from topologies.errors import SpecError
from traffic.dctcp_params import RFC8257
from traffic.uet_params import UEC

STEP = {"kmin": "100 KB", "kmax": "100 KB", "pmax": 1}


def test_a_kind_brings_its_control_and_its_first_parameter_set() -> None:
    """What `auto` stands for is written down."""
    kinds = {
        "go-back-n": ("none", "hpcc"),
        "dctcp": ("dctcp", "rfc8257"),
        "uet": ("nscc", "uec"),
        "credit": ("none", AUTO),
    }
    for kind, expected in kinds.items():
        pfc = {} if kind == "credit" else None
        x = experiment(transport={"kind": kind}, ecn=STEP, pfc=pfc)
        assert (x.transport.control, x.transport.params) == expected
        assert from_text(to_yaml(x)).transport == x.transport


def test_parameters_of_dctcp_are_read() -> None:
    """By their names without the unit; what is none is computed."""
    overrides = {"initial": "none", "min": 4, "increase": 2.5, "g": "1/8", "cut_at_once": True}
    x = experiment(transport={"kind": "dctcp", "overrides": overrides}, ecn=STEP)
    fields = {"initial_packets": None, "min_packets": 4, "increase_packets": 2.5}
    assert x.transport.dctcp == replace(RFC8257, **fields, g=1 / 8, cut_at_once=True)
    assert x.transport.dcqcn is None
    assert from_text(to_yaml(x)).transport == x.transport


def test_parameters_of_uet_are_read() -> None:
    """Numbers of packets and of windows, shares, times, and the order of entropies."""
    overrides = {"entropies": 128, "spray": "random", "target": 0.5, "window": 2, "fair": 7.5,
                 "fast_delay": "2 us", "reorder_least": 9, "credit_share": "90 %"}  # fmt: skip
    x = experiment(transport={"kind": "uet", "control": "rccc", "overrides": overrides})
    assert x.transport.uet == replace(
        UEC, entropies=128, spray="random", target_times=0.5, window_times=2.0, fair_packets=7.5,
        fast_delay_ns=2_000, reorder_least_packets=9, credit_share=0.9,
    )  # fmt: skip
    assert from_text(to_yaml(x)).transport == x.transport


@pytest.mark.parametrize(
    ("transport", "message"),
    [
        ({"kind": "dctcp", "overrides": {"cnp_interval": "1 us"}}, "is not a known key"),
        ({"kind": "dctcp", "params": "paper"}, "is not a known parameter set of dctcp"),
        ({"kind": "credit", "params": "hpcc"}, "names a parameter set, and credit has none"),
        ({"kind": "credit", "overrides": {"g": 0.5}}, "is not a known key"),
        ({"kind": "credit", "control": "dcqcn"}, "is not a known control of credit"),
        ({"kind": "credit"}, "is for lossless classes, and flow uses class 3"),
        ({"kind": "uet", "overrides": {"entropies": 100}}, "is no power of two"),
        ({"kind": "uet", "overrides": {"entropies": 512}}, "must be at most 256"),
        ({"kind": "uet", "overrides": {"spray": "sorted"}}, "is not a known order of entropies"),
        ({"kind": "uet", "control": "dcqcn"}, "is not a known control of uet"),
    ],
)
def test_what_a_kind_has_not_is_an_error(transport: dict[str, Any], message: str) -> None:
    """Nothing that belongs to another transport is ignored."""
    with pytest.raises(SpecError, match=message):
        experiment(transport=transport, ecn=STEP)


@pytest.mark.parametrize("control", ["nscc", "nscc+rccc"])
def test_windows_by_marks_need_switches_that_mark(control: str) -> None:
    """Credits do not."""
    with pytest.raises(SpecError, match="no rule marks class 3"):
        experiment(transport={"kind": "uet", "control": control})
    assert experiment(transport={"kind": "uet", "control": "rccc"}).transport.uet == UEC


def test_a_transport_for_lossy_classes_refuses_lossless_ones() -> None:
    """Others do not mind."""
    keys: dict[str, Any] = {"pfc": {"classes": [3]}, "ecn": STEP}
    with pytest.raises(SpecError, match="is for lossy classes, and pfc makes class 3 lossless"):
        experiment(transport={"kind": "uet"}, **keys)
    for kind in ("go-back-n", "dctcp", "credit"):
        assert experiment(transport={"kind": kind}, **keys).transport.kind == kind
    other = {"pfc": {"classes": [4]}, "ecn": STEP}
    assert experiment(transport={"kind": "uet"}, **other).transport.kind == "uet"


@pytest.mark.parametrize("kind", KINDS)
def test_every_parameter_has_a_key_of_its_own(kind: str) -> None:
    """Units are left out, and no two parameters differ in them alone."""
    keys = [override_key(field.name) for field in override_fields(kind)]
    assert len(set(keys)) == len(keys)
