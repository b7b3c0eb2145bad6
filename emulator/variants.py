"""PURE: the settings under which one experiment is run and compared.

``--profiles a,b`` names profiles; ``--with "label: key=value, key=value"`` names changes to the
file; ``--clock live,virtual`` names clocks. Several of these mean every combination. The first is
the yardstick.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from emulator.clock.traits import CLOCKS
from topologies.errors import SpecError, UnknownNameError

PROFILES, WITH, CLOCK = "--profiles", "--with", "--clock"
CLOCK_KEY = "clock"
_OPENING, _CLOSING, _QUOTES = "[{", "]}", "'\""
_EXAMPLE = 'write e.g. --with "small: ecn.kmin=100 KB, ecn.kmax=400 KB"'


@dataclass(frozen=True)
class Variant:
    """One of the settings.

    Attributes:
        label: how the comparison calls it.
        overrides: key path -> value as text.
    """

    label: str
    overrides: Mapping[str, str] = field(default_factory=dict)


def variants_of(
    profiles: str | None, changes: Sequence[str], clocks: str | None = None
) -> list[Variant]:
    """All variants, in the order of the command line; clocks alternate fastest.

    One clock alone is no variant: it holds for all of them.

    Raises:
        SpecError: fewer than two, two of one name, or a text that is not of the form above.
    """
    named = [Variant(name, {"profile": name}) for name in _names(PROFILES, profiles)]
    changed = [parse_change(text) for text in changes]
    made = _product(_product(named, changed), _clock_variants(clocks, changed))
    if len(made) < 2:
        way_out = (
            f"give {PROFILES} A,B, or {CLOCK} live,virtual, or {WITH} twice "
            f"({WITH} 'as it is:' changes nothing)"
        )
        raise SpecError("compare", len(made), "is too few settings to run under", way_out)
    labels = [variant.label for variant in made]
    for label in labels:
        if labels.count(label) > 1:
            raise SpecError("compare", label, "names two of the settings", "use other labels")
    return made


_EXAMPLES = {PROFILES: "ethernet,roce-ecn", CLOCK: "live,virtual"}


def _names(flag: str, text: str | None) -> list[str]:
    """Names between commas."""
    if text is None:
        return []
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        rule = "has an empty name"
        raise SpecError(flag, text, rule, f"write e.g. {flag} {_EXAMPLES[flag]}")
    return names


def _clock_variants(clocks: str | None, changed: Sequence[Variant]) -> list[Variant]:
    """One for each of several clocks."""
    names = _names(CLOCK, clocks)
    for name in names:
        if name not in CLOCKS:
            raise UnknownNameError(CLOCK, "clock", name, CLOCKS)
    for variant in changed:
        if clocks is not None and CLOCK_KEY in variant.overrides:
            rule = f"sets {CLOCK_KEY}, which {CLOCK} sets too"
            raise SpecError(WITH, variant.label, rule, "leave one of them out")
    several = names if len(names) > 1 else []
    return [Variant(f"{name} clock", {CLOCK_KEY: name}) for name in several]


def _product(first: Sequence[Variant], second: Sequence[Variant]) -> list[Variant]:
    """Every combination; the variants of one side where the other has none."""
    if not first or not second:
        return [*first, *second]
    return [
        Variant(f"{one.label}, {other.label}", {**one.overrides, **other.overrides})
        for one in first
        for other in second
    ]


def parse_change(text: str) -> Variant:
    """``small: ecn.kmin=100 KB, ecn.kmax=400 KB`` as a variant.

    The label ends at a colon before the first ``=``; without one, the settings are the label.
    Commas within brackets and quotes belong to the value.
    """
    label, colon, settings = text.partition(":")
    if not colon or "=" in label:
        label, settings = text, text
    label = " ".join(label.split())
    if not label:
        raise SpecError(WITH, text, "has no label", _EXAMPLE)
    return Variant(label, dict(_settings(settings, text)))


def _settings(settings: str, text: str) -> Iterator[tuple[str, str]]:
    seen = set()
    for part in _split(settings) if settings.strip() else ():
        key, equals, value = part.partition("=")
        if not equals or not key.strip():
            raise SpecError(WITH, text, f"has {part.strip()!r}, which is not key=value", _EXAMPLE)
        if key.strip() in seen:
            raise SpecError(WITH, text, f"sets {key.strip()} twice", "leave one of them out")
        seen.add(key.strip())
        yield key.strip(), value.strip()


def _split(text: str) -> list[str]:
    """The parts between commas that stand in no bracket and no quotes."""
    parts, depth, quote = [""], 0, ""
    for char in text:
        if quote:
            quote = "" if char == quote else quote
        elif char in _QUOTES:
            quote = char
        depth += (char in _OPENING) - (char in _CLOSING) if not quote else 0
        if char == "," and not depth and not quote:
            parts.append("")
        else:
            parts[-1] += char
    return parts
