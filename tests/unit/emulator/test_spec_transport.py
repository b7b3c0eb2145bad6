"""The section ``transport``: kinds, what belongs to each, and what does not go together."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from emulator.spec.dump import to_yaml
from emulator.spec.model import AUTO
from tests.unit.emulator.spec_samples import experiment, from_text
from topologies.errors import SpecError
from traffic.dctcp_params import RFC8257

STEP = {"kmin": "100 KB", "kmax": "100 KB", "pmax": 1}


def test_a_kind_brings_its_control_and_its_first_parameter_set() -> None:
    """What `auto` stands for is written down."""
    kinds = {"go-back-n": ("none", "hpcc"), "dctcp": ("dctcp", "rfc8257"), "credit": ("none", AUTO)}
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


@pytest.mark.parametrize(
    ("transport", "message"),
    [
        ({"kind": "dctcp", "overrides": {"cnp_interval": "1 us"}}, "is not a known key"),
        ({"kind": "dctcp", "params": "paper"}, "is not a known parameter set of dctcp"),
        ({"kind": "credit", "params": "hpcc"}, "names a parameter set, and credit has none"),
        ({"kind": "credit", "overrides": {"g": 0.5}}, "is not a known key"),
        ({"kind": "credit", "control": "dcqcn"}, "is not a known control of credit"),
        ({"kind": "credit"}, "is for lossless classes, and flow uses class 3"),
    ],
)
def test_what_a_kind_has_not_is_an_error(transport: dict[str, Any], message: str) -> None:
    """Nothing that belongs to another transport is ignored."""
    with pytest.raises(SpecError, match=message):
        experiment(transport=transport, ecn=STEP)
