"""Strict reading of mappings: types, bounds, defaults, unknown keys, key paths."""

from __future__ import annotations

import pytest

from topologies.errors import SpecError, UnknownNameError
from topologies.reading import Reader, join, placed

GETTERS = [
    "integer", "number", "flag", "text", "rate", "duration", "size", "event_rate", "fraction",
    "items", "integers", "texts", "mapping", "raw",
]  # fmt: skip


def test_values_arrive_in_base_units() -> None:
    """Each getter converts what the user wrote."""
    raw = {
        "a": 3, "b": 0.5, "c": True, "d": "word", "e": "10 Gbit/s", "f": "1 us", "g": "1 KB",
        "h": "5 /s", "i": "1/8", "j": [1, 2], "k": ["x"], "l": "red",
    }  # fmt: skip
    with Reader(raw) as reader:
        assert reader.integer("a") == 3
        assert reader.number("b") == 0.5
        assert reader.flag("c") is True
        assert reader.text("d") == "word"
        assert reader.rate("e") == 10**10
        assert reader.duration("f") == 1000
        assert reader.size("g") == 1000
        assert reader.event_rate("h") == 5
        assert reader.fraction("i") == 0.125
        assert reader.integers("j") == [1, 2]
        assert reader.texts("k") == ["x"]
        assert reader.choice("l", ["red", "green"]) == "red"


@pytest.mark.parametrize("getter", GETTERS)
def test_a_missing_key_is_an_error_unless_there_is_a_default(getter: str) -> None:
    """Without a default the key is required, and the error names it and where it belongs."""
    with pytest.raises(SpecError, match=r"^fabric: 'leaves' is missing; add leaves"):
        getattr(Reader({}, "fabric"), getter)("leaves")


@pytest.mark.parametrize("getter", [name for name in GETTERS if name != "mapping"])
def test_a_default_is_returned_as_it_is(getter: str) -> None:
    """Defaults are in base units already, and None is a default."""
    marker = object()
    assert getattr(Reader({}), getter)("x", marker) is marker
    assert getattr(Reader({}), getter)("x", None) is None


@pytest.mark.parametrize("getter", [name for name in GETTERS if name != "raw"])
def test_an_empty_value_is_not_a_default(getter: str) -> None:
    """A key without a value (null) is an error: it is not ignored."""
    with pytest.raises(SpecError) as caught:
        getattr(Reader({"x": None}, "top"), getter)("x", 1)
    assert caught.value.path == "top.x"


@pytest.mark.parametrize(
    ("getter", "value"),
    [
        ("integer", True), ("integer", 4.0), ("integer", "4"), ("number", True), ("number", "4"),
        ("number", float("nan")), ("number", float("inf")), ("flag", 1), ("flag", "yes"),
        ("text", 5), ("text", "  "), ("items", "abc"), ("items", {"a": 1}), ("integers", []),
        ("integers", [1, "2"]), ("texts", ["a", 2]), ("mapping", [1]), ("mapping", "x"),
    ],
)  # fmt: skip
def test_wrong_types_are_refused(getter: str, value: object) -> None:
    """Booleans are not numbers, numbers are not texts, texts are not lists."""
    with pytest.raises(SpecError) as caught:
        getattr(Reader({"x": value}, "top"), getter)("x")
    assert caught.value.path.startswith("top.x")


@pytest.mark.parametrize("value", [0, 9])
def test_bounds(value: int) -> None:
    """Values outside the bounds are refused, the bounds themselves are not."""
    assert Reader({"x": 1}).integer("x", minimum=1, maximum=8) == 1
    assert Reader({"x": 8}).number("x", minimum=1, maximum=8) == 8
    for getter in ("integer", "number"):
        with pytest.raises(SpecError, match=r"must be at (least 1|most 8)"):
            getattr(Reader({"x": value}), getter)("x", minimum=1, maximum=8)
    with pytest.raises(SpecError, match="at least 1 entries"):
        Reader({"x": []}).items("x", minimum=1)
    with pytest.raises(SpecError, match="at most 1 entries"):
        Reader({"x": [1, 2]}).items("x", maximum=1)


def test_unknown_keys_are_errors() -> None:
    """A key that no getter asked for raises with the nearest known one."""
    reader = Reader({"leaves": 2, "spine": 1}, "fabric")
    reader.integer("leaves")
    reader.integer("spines", 1)
    with pytest.raises(UnknownNameError, match="did you mean 'spines'") as caught:
        reader.done()
    assert caught.value.path == "fabric.spine"


def test_the_context_manager_checks_at_its_end_only_after_success() -> None:
    """An unknown key is reported at the end; an earlier error is not hidden by it."""
    with pytest.raises(UnknownNameError), Reader({"x": 1}):
        pass
    with pytest.raises(ZeroDivisionError), Reader({"x": 1}):
        raise ZeroDivisionError


def test_paths_of_nested_values() -> None:
    """Errors deep inside carry the whole path, with positions in lists."""
    raw = {"links": [{"rate": "1 Gbit/s"}, {"rate": 0}], "a": {"b": {"c": "x"}}}
    reader = Reader(raw, "fabric")
    first, second = reader.readers("links")
    assert first.rate("rate") == 10**9
    with pytest.raises(SpecError, match=r"^fabric\.links\[1\]\.rate: 0 must be above 0"):
        second.rate("rate")
    with pytest.raises(SpecError, match=r"^fabric\.a\.b\.c: 'x'"):
        reader.mapping("a").mapping("b").integer("c")
    assert join("", "name") == "name"
    assert join("a", "b") == "a.b"
    assert join("a", 0) == "a[0]"


def test_lists_of_mappings() -> None:
    """An absent list is empty unless entries are required; an entry must be a mapping."""
    assert Reader({}).readers("links") == []
    with pytest.raises(SpecError, match="is missing"):
        Reader({}).readers("links", minimum=1)
    with pytest.raises(SpecError, match=r"links\[0\]: 5 must be a mapping"):
        Reader({"links": [5]}).readers("links")


def test_optional_mappings() -> None:
    """An absent section is None; a present one is read."""
    reader = Reader({"pfc": {"n": 1}})
    section = reader.optional_mapping("pfc")
    assert section is not None
    assert section.integer("n") == 1
    assert reader.optional_mapping("ecn") is None
    reader.done()


def test_exclusive_keys() -> None:
    """Of keys that exclude each other at most one may be written."""
    Reader({"a": 1}).exclusive("a", "b")
    with pytest.raises(SpecError, match=r"^top\.b: 2 excludes a, which is also given"):
        Reader({"a": 1, "b": 2}, "top").exclusive("a", "b")


@pytest.mark.parametrize("raw", [None, [], "text", 3])
def test_only_a_mapping_can_be_read(raw: object) -> None:
    """An empty section, a list or a text in place of a mapping is an error."""
    with pytest.raises(SpecError, match="must be a mapping"):
        Reader(raw, "fabric")


@pytest.mark.parametrize("key", [True, 1, None])
def test_keys_are_text(key: object) -> None:
    """YAML reads ``on:`` as true and ``1:`` as a number; such keys are refused with the fix."""
    with pytest.raises(SpecError, match="put it in quotes"):
        Reader({key: 1}, "fabric")


def test_choices_list_what_is_known() -> None:
    """A name outside the choices lists them."""
    with pytest.raises(UnknownNameError, match=r"not a known colour.*known: green, red"):
        Reader({"x": "rad"}).choice("x", ["red", "green"], what="colour")
    with pytest.raises(UnknownNameError):
        Reader({"x": ["red"]}).choice("x", ["red", "green"])


def test_fields_are_placed_below_a_path() -> None:
    """A dataclass that knows only its field names gets the path of its mapping."""
    with pytest.raises(SpecError, match=r"^ecn\[2\]\.pmax: 3 must"), placed("ecn[2]"):
        raise SpecError("pmax", 3, "must be at most 1")
