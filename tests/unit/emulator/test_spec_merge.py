"""Layers of an experiment: defaults, profile, file, --set; and where each value came from."""

from __future__ import annotations

from typing import Any

import pytest

from emulator.spec.merge import Merged, origin_of
from topologies.errors import SpecError


def _merged(*layers: dict[str, Any]) -> Merged:
    merged = Merged()
    for number, layer in enumerate(layers):
        merged.overlay(layer, lambda path, number=number: f"layer {number}: {path}")  # type: ignore[misc]
    return merged


def test_sections_of_the_network_are_merged_key_by_key() -> None:
    """A file that changes one transport key keeps the profile's others."""
    merged = _merged(
        {"transport": {"kind": "credit", "window": "auto"}}, {"transport": {"window": 4}}
    )
    assert merged.data["transport"] == {"kind": "credit", "window": 4}
    assert origin_of("transport.window", merged.origins) == "layer 1: transport.window"
    assert origin_of("transport.kind", merged.origins) == "layer 0: transport.kind"


@pytest.mark.parametrize("key", ["fabric", "probes", "scheduler"])
def test_other_values_are_replaced_whole(key: str) -> None:
    """What the user describes as a whole does not inherit pieces from below."""
    merged = _merged({key: {"a": 1, "b": 2}}, {key: {"a": 3}})
    assert merged.data[key] == {"a": 3}
    assert origin_of(f"{key}.b", merged.origins) == f"layer 1: {key}"


def test_another_policy_drops_the_options_of_the_old_one() -> None:
    """Options belong to the policy that they were written for."""
    merged = _merged(
        {"routing": {"policy": "static", "by": "leaf"}}, {"routing": {"policy": "ecmp"}}
    )
    assert merged.data["routing"] == {"policy": "ecmp"}


def test_options_stay_with_the_same_policy() -> None:
    """Adding an option does not need the policy's name again."""
    merged = _merged({"routing": {"policy": "static"}}, {"routing": {"by": "leaf"}})
    assert merged.data["routing"] == {"policy": "static", "by": "leaf"}


def test_another_transport_drops_the_control_of_the_old_one() -> None:
    """Its parameters mean nothing to the new one; payload and window are common to all."""
    old = {"kind": "go-back-n", "control": "dcqcn", "params": "hpcc", "window": 4,
           "overrides": {"g": 0.5}}  # fmt: skip
    merged = _merged({"transport": old}, {"transport": {"kind": "dctcp"}})
    assert merged.data["transport"] == {
        "kind": "dctcp", "control": "auto", "params": "auto", "window": 4, "overrides": {}
    }  # fmt: skip
    assert origin_of("transport.control", merged.origins) == "default"
    assert origin_of("transport.overrides.g", merged.origins) == "default"


def test_the_same_transport_keeps_its_control() -> None:
    """Naming the kind again changes nothing."""
    layers = (
        {"transport": {"kind": "go-back-n", "control": "dcqcn"}},
        {"transport": {"kind": "go-back-n"}},
    )
    assert _merged(*layers).data["transport"]["control"] == "dcqcn"


@pytest.mark.parametrize("reverse", [False, True])
def test_what_the_command_line_says_of_a_new_transport_stays(reverse: bool) -> None:
    """In whatever order."""
    merged = _merged({"transport": {"kind": "go-back-n", "control": "dcqcn", "params": "paper"}})
    flags = [("transport.kind", "dctcp"), ("transport.params", "hpcc")]
    for key, text in reversed(flags) if reverse else flags:
        merged.set(key, text)
    assert merged.data["transport"]["params"] == "hpcc"
    assert merged.data["transport"]["control"] == "auto"


def test_layers_are_copied() -> None:
    """Changing the result never changes what it was made of."""
    layer: dict[str, Any] = {"workloads": [{"name": "a"}]}
    _merged(layer).data["workloads"][0]["name"] = "b"
    assert layer["workloads"][0]["name"] == "a"


@pytest.mark.parametrize(
    ("key", "text", "expected"),
    [
        ("seed", "9", {"seed": 9}),
        ("a.b.c", "[1, 2]", {"a": {"b": {"c": [1, 2]}}}),
        ("workloads[1].bytes", "1 GiB", None),
        ("workloads[chat].bytes", "1 GiB", None),
    ],
)
def test_set_reaches_mappings_and_list_entries(key: str, text: str, expected: Any) -> None:
    """List entries are named by position or by their name; missing mappings are made."""
    merged = Merged() if expected else _merged({"workloads": [{"name": "job"}, {"name": "chat"}]})
    merged.set(key, text)
    if expected:
        assert merged.data == expected
    else:
        assert merged.data["workloads"][1] == {"name": "chat", "bytes": "1 GiB"}
        assert origin_of("workloads[1].bytes", merged.origins) == f"--set {key}={text}"


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("", "is not a key path"),
        (".a", "is not a key path"),
        ("a..b", "is not a key path"),
        ("[0]", "is not a key path"),
        ("a b", "is not a key path"),
        ("workloads[2].x", "names no entry of workloads; known: 0 to 1, job, chat"),
        ("workloads[none].x", "names no entry of workloads"),
        ("seed.x", "leads through seed, which is 1 and has no members"),
        ("seed.x.y", "leads through seed, which is 1 and has no members"),
    ],
)
def test_set_refuses_paths_that_lead_nowhere(key: str, message: str) -> None:
    """A misspelled --set is an error that shows what there is."""
    merged = _merged({"seed": 1, "workloads": [{"name": "job"}, {"name": "chat"}]})
    with pytest.raises(SpecError) as caught:
        merged.set(key, "1")
    assert message in str(caught.value)


def test_a_value_that_is_replaced_forgets_the_places_inside_it() -> None:
    """An error inside a replaced value must not point to the line of the old one."""
    merged = _merged({"fabric": {"leaves": 1}}, {"fabric": "x"})
    assert origin_of("fabric.leaves", merged.origins) == "layer 1: fabric"
