"""The settings of ``fabriclab compare FILE``: profiles, changes, their labels."""

from __future__ import annotations

import pytest

from emulator.variants import Variant, parse_change, variants_of
from topologies.errors import SpecError


def test_profiles_are_their_own_labels() -> None:
    """In the order of the command line."""
    assert variants_of("ethernet, roce-ecn", []) == [
        Variant("ethernet", {"profile": "ethernet"}),
        Variant("roce-ecn", {"profile": "roce-ecn"}),
    ]


@pytest.mark.parametrize(
    ("text", "label", "overrides"),
    [
        ("small: ecn.kmin=100 KB, ecn.kmax=400 KB", "small",
         {"ecn.kmin": "100 KB", "ecn.kmax": "400 KB"}),
        ("ecn.kmin=100 KB", "ecn.kmin=100 KB", {"ecn.kmin": "100 KB"}),
        ("as it is:", "as it is", {}),
        ("fixed: routing={policy: static, by: leaf}, seed=3", "fixed",
         {"routing": "{policy: static, by: leaf}", "seed": "3"}),
        ("routing={policy: static}", "routing={policy: static}",
         {"routing": "{policy: static}"}),
        ("quoted: name='a, b'", "quoted", {"name": "'a, b'"}),
        ("list: probes.classes=[0, [1, 2]]", "list", {"probes.classes": "[0, [1, 2]]"}),
        ("empty: ecn=", "empty", {"ecn": ""}),
        ("  two   words : a=b", "two words", {"a": "b"}),
    ],
)  # fmt: skip
def test_changes_have_a_label_and_settings(
    text: str, label: str, overrides: dict[str, str]
) -> None:
    """Commas in brackets and quotes belong to the value, a colon after the first = too."""
    assert parse_change(text) == Variant(label, overrides)


def test_profiles_and_changes_are_multiplied() -> None:
    """Every profile under every change; a change wins over its profile's own word."""
    made = variants_of("a,b", ["small: x=1", "large: x=2, profile=c"])
    assert [variant.label for variant in made] == ["a, small", "a, large", "b, small", "b, large"]
    assert made[3].overrides == {"profile": "c", "x": "2"}


def test_clocks_alternate_fastest() -> None:
    """So that the two runs that are to agree stand side by side."""
    made = variants_of("a,b", ["small: x=1"], "live, virtual")
    assert [variant.label for variant in made] == [
        "a, small, live clock", "a, small, virtual clock",
        "b, small, live clock", "b, small, virtual clock",
    ]  # fmt: skip
    assert made[1].overrides == {"profile": "a", "x": "1", "clock": "virtual"}
    assert variants_of(None, [], "live,virtual") == [
        Variant("live clock", {"clock": "live"}), Variant("virtual clock", {"clock": "virtual"}),
    ]  # fmt: skip


def test_one_clock_is_no_setting() -> None:
    """It holds for all of them, so labels do not name it."""
    assert variants_of("a,b", [], "virtual") == variants_of("a,b", [])


@pytest.mark.parametrize(
    ("clocks", "changes", "message"),
    [
        ("virtual", [], "0 is too few settings"),
        ("live,live", [], "'live clock' names two of the settings"),
        ("live,", [], "--clock: 'live,' has an empty name; write e.g. --clock live,virtual"),
        ("live,virtua", [], "'virtua' is not a known clock; did you mean 'virtual'?"),
        ("live,virtual", ["x: clock=live"], "'x' sets clock, which --clock sets too"),
    ],
)
def test_mistakes_with_clocks_are_named(clocks: str, changes: list[str], message: str) -> None:
    """Before anything runs."""
    with pytest.raises(SpecError, match=r".") as caught:
        variants_of(None, changes, clocks)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("profiles", "changes", "message"),
    [
        (None, [], "0 is too few settings"),
        ("ethernet", [], "1 is too few settings"),
        (None, ["a: x=1"], "give --profiles A,B, or --clock live,virtual, or --with twice"),
        ("a,,b", [], "has an empty name"),
        ("a,a", [], "'a' names two of the settings"),
        (None, ["x: a=1", "x: a=2"], "'x' names two of the settings"),
        (None, ["x: a=1", "y"], "has 'y', which is not key=value"),
        (None, ["x: a=1", ": a=1"], "has no label"),
        (None, ["x: a=1", "y: a=1,"], "has '', which is not key=value"),
        (None, ["x: a=1", "y: =1"], "has '=1', which is not key=value"),
        (None, ["x: a=1", "y: a=1, a=2"], "sets a twice"),
    ],
)
def test_mistakes_are_named(profiles: str | None, changes: list[str], message: str) -> None:
    """What is wrong, and the form that is right."""
    with pytest.raises(SpecError, match=r".") as caught:
        variants_of(profiles, changes)
    assert message in str(caught.value)
