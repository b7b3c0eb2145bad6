"""The section ``trim``: what it means and what it refuses."""

from __future__ import annotations

from typing import Any

import pytest

from emulator.spec import to_yaml
from emulator.spec.dump import to_document
from tests.unit.emulator.spec_samples import FABRIC, FLOW, experiment, from_text
from topologies.errors import SpecError
from topologies.settings import TrimRule

FAST = {**FABRIC, "fabric_link": {"rate": "400 Gbit/s"}}


def rules(**section: Any) -> tuple[TrimRule, ...]:
    """The rules that a ``trim:`` mapping gives."""
    return experiment(trim=section).trim


def error(overrides: dict[str, str] | None = None, **keys: Any) -> str:
    """The message that an experiment is refused with."""
    with pytest.raises(SpecError) as caught:
        experiment(overrides, **keys)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_an_empty_section_cuts_what_the_workloads_send() -> None:
    """To 80 bytes, where it would be dropped, with a local code point of class 5."""
    assert rules() == (TrimRule(3, 0b101_011, 80, None, "switches"),)


@pytest.mark.parametrize("written", ["none", "[]", ""])
def test_nothing_is_cut_without_the_section(written: str) -> None:
    """Absent, none and an empty list are the same."""
    assert experiment({"trim": written}).trim == experiment().trim == ()


def test_all_keys() -> None:
    """Every value ends up in the rule of every class."""
    found = rules(
        classes=[3, 4], to_class=6, size="128 B", threshold="200 KB", ports="last-hop",
    )  # fmt: skip
    assert found == tuple(TrimRule(tc, 51, 128, 200_000, "last-hop") for tc in (3, 4))


def test_a_code_point_brings_its_class() -> None:
    """Instead of to_class, or beside an equal one."""
    assert rules(dscp=60)[0].to_class == rules(dscp=60, to_class=7)[0].to_class == 7
    assert rules(dscp=60)[0].dscp == 60


def test_a_threshold_may_follow_the_rate_of_the_port() -> None:
    """One rule per port where they differ, one for all where they do not."""
    same = experiment(trim={"threshold": "4 KB per Gbit/s"}).trim
    assert same == (TrimRule(3, 43, threshold_bytes=400_000),)
    found = experiment(fabric=FAST, trim={"threshold": "4 KB per Gbit/s"}).trim
    limits = {rule.ports: rule.threshold_bytes for rule in found}
    assert len(limits) == 12
    assert (limits["leaf1-eth1"], limits["leaf1-eth3"]) == (400_000, 1_600_000)


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({"to_class": 3}, "trim.to_class: 3 goes on in class 3, which is trimmable"),
        ({"dscp": 24}, "trim.dscp: 24 goes on in class 3, which is trimmable"),
        ({"to_class": 8}, "trim.to_class: 8 must be at most 7"),
        ({"dscp": 64}, "trim.dscp: 64 must be at most 63"),
        ({"dscp": "50"}, "trim.dscp: '50' must be a whole number"),
        ({"dscp": 50, "to_class": 5}, "trim.dscp: 50 is in class 6 (its upper three bits), and "
         "to_class is 5; give only one of them"),
        ({"dscp": 48}, "trim.dscp: 48 is that of acknowledgements and congestion notifications"),
        ({"classes": [6]}, "trim.classes: 6 is the class of acknowledgements"),
        ({"classes": [3, 3]}, "trim.classes[1]: 3 stands twice"),
        ({"size": "57 B"}, "trim.size: '57 B' must be from 58 B, the headers, to less than 4214 B"),
        ({"size": "4214 B"}, "trim.size: '4214 B' must be from 58 B"),
        ({"threshold": "4213 B"}, "trim.threshold: '4213 B' is 4213 B at leaf1-eth1 (100 Gbit/s), "
         "less than a full frame, 4214 B: every full packet would be cut"),
        ({"threshold": "16001 KB"}, "a switch has only 16 MB of buffer; write auto"),
        ({"ports": "all"}, "trim.ports: 'all' names h1-eth1, a host's port, and only switches cut"),
        ({"ports": "leaf9"}, "trim.ports: 'leaf9' is not a known port"),
        ({"sizes": "80 B"}, "trim.sizes"),
        ([{}, {"classes": [5], "to_class": 4}], "trim[0].to_class: 5 goes on in class 5, which "
         "another entry makes trimmable"),
        ([{"to_class": 4}, {"classes": [5]}], "trim[1].to_class: 5 goes on in class 5, which is "
         "trimmable"),
    ],
)  # fmt: skip
def test_what_is_refused(section: Any, message: str) -> None:
    """Each with its key, its value and the rule."""
    assert message in error(trim=section)


def test_what_is_lossless_is_not_cut_and_takes_no_headers() -> None:
    """Its packets wait; and pausing the headers' class would not hold up who causes them."""
    assert "trim.classes: 3 is lossless (pfc)" in error(trim={}, pfc={})
    message = error(trim={}, pfc={"classes": [5]})
    assert "trim.to_class: 5 goes on in class 5, which is lossless (pfc)" in message


def test_headers_must_not_be_served_after_what_they_could_not_enter() -> None:
    """By the scheduler of each port that cuts; other ports do not matter."""
    late = {"classes": [5], "priority": 2}
    message = error(trim={}, scheduler=[late])
    assert (
        "goes on in class 5, which leaf1-eth1 serves only after class 3 (priority 2 after 1)"
        in (message)
    )
    elsewhere = {**late, "ports": "spine1"}
    assert "which spine1-eth1 serves" in error(trim={}, scheduler=[elsewhere])
    assert experiment(trim={"ports": "last-hop"}, scheduler=[elsewhere]).trim


def test_the_code_point_of_a_workload_is_taken() -> None:
    """A receiver could not tell its packets from cut ones of others."""
    other = {**FLOW, "class": None, "dscp": 43, "name": "other"}
    del other["class"]
    message = error(workloads=[FLOW, other], trim={"classes": [3]})
    assert "trim.dscp: 43 is that of other: what was cut must have one of its own" in message


def test_a_later_layer_replaces_the_class_by_a_code_point() -> None:
    """The section is merged key by key, and the two say the same."""
    found = experiment({"trim.dscp": "58"}, trim={"to_class": 5, "size": "96 B"})
    assert found.trim == (TrimRule(3, 58, 96),)


def test_what_is_written_is_read_back() -> None:
    """Every rule, whatever it was made of."""
    written = [
        {"classes": [2, 3], "threshold": "100 KB"},
        {"classes": [3], "ports": "last-hop", "threshold": "150 KB", "dscp": 44},
    ]
    one = experiment(trim=written)
    assert len(to_document(one)["trim"]) == 2
    again = from_text(to_yaml(one))
    assert again.trim == one.trim
    assert to_yaml(again) == to_yaml(one)
    assert to_document(experiment())["trim"] == "none"
