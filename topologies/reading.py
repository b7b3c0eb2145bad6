"""Strict reading of what a user wrote: every value typed, every key known, every error placed.

A `Reader` wraps one mapping of a parsed file. Each getter takes a key, checks the value and
remembers that the key is known; `Reader.done` then rejects all other keys. A getter without a
default makes the key required; with ``default=None`` the result may be None.

    with Reader(raw, "fabric") as reader:
        leaves = reader.integer("leaves", minimum=1)
        link = reader.mapping("host_link", default={})
        rate_bps = link.rate("rate", default=100_000_000_000)
        link.done()
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from enum import Enum
from types import TracebackType
from typing import Final, Self, TypeVar

from topologies import units
from topologies.errors import SpecError, UnknownNameError

T = TypeVar("T")
D = TypeVar("D")


class Required(Enum):
    """The type of `REQUIRED`, which stands for "no default"."""

    TOKEN = 0


REQUIRED: Final = Required.TOKEN


def join(path: str, key: str | int) -> str:
    """The key path of a member: ``fabric.mtu``, or ``links[0]`` for a position in a list."""
    if isinstance(key, int):
        return f"{path}[{key}]"
    return f"{path}.{key}" if path else key


@contextmanager
def placed(path: str) -> Iterator[None]:
    """Put a `SpecError` of what is built inside, which knows fields only, below a key path."""
    try:
        yield
    except SpecError as error:
        raise error.under(path) from None


def as_integer(
    value: object, path: str, *, minimum: int | None = None, maximum: int | None = None
) -> int:
    """A whole number within bounds; booleans, floats and quoted numbers are refused."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise SpecError(path, value, "must be a whole number", "write e.g. 4, without quotes")
    _check_bounds(value, path, minimum, maximum)
    return value


def as_number(
    value: object, path: str, *, minimum: float | None = None, maximum: float | None = None
) -> float:
    """A finite number within bounds."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise SpecError(path, value, "must be a number", "write e.g. 0.5, without quotes")
    if not math.isfinite(value):
        raise SpecError(path, value, "must be finite")
    _check_bounds(value, path, minimum, maximum)
    return float(value)


def _check_bounds(value: float, path: str, minimum: float | None, maximum: float | None) -> None:
    if minimum is not None and value < minimum:
        raise SpecError(path, value, f"must be at least {minimum}")
    if maximum is not None and value > maximum:
        raise SpecError(path, value, f"must be at most {maximum}")


def as_flag(value: object, path: str) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise SpecError(path, value, "must be true or false")
    return value


def as_text(value: object, path: str) -> str:
    """Text that is not blank."""
    if not isinstance(value, str):
        raise SpecError(path, value, "must be text", "put it in quotes if it is meant as text")
    if not value.strip():
        raise SpecError(path, value, "must not be empty")
    return value


def as_choice(value: object, path: str, choices: Iterable[str], what: str) -> str:
    """One of a few names; the error lists them all."""
    known = list(choices)
    if not isinstance(value, str) or value not in known:
        raise UnknownNameError(path, what, value, known)
    return value


def as_mapping(value: object, path: str) -> Mapping[str, object]:
    """A mapping whose keys are all text."""
    if not isinstance(value, Mapping):
        raise SpecError(path, value, "must be a mapping", "write {key: value, ...}")
    for key in value:
        if not isinstance(key, str):
            raise SpecError(path, key, "is a key that is not text", f'put it in quotes: "{key}"')
    return value


def as_list(
    value: object, path: str, *, minimum: int = 0, maximum: int | None = None
) -> list[tuple[str, object]]:
    """A list as (key path, value) of each entry, with bounds on its length."""
    if isinstance(value, (str, bytes)) or not isinstance(value, (list, tuple)):
        raise SpecError(path, value, "must be a list", "write [first, second, ...]")
    if len(value) < minimum:
        raise SpecError(path, list(value), f"must have at least {minimum} entries")
    if maximum is not None and len(value) > maximum:
        raise SpecError(path, list(value), f"must have at most {maximum} entries")
    return [(join(path, position), entry) for position, entry in enumerate(value)]


class Reader:
    """Typed getters over one mapping.

    Attributes:
        path: the mapping's key path, such as ``fabric.host_link``; "" for the whole file.
    """

    def __init__(self, raw: object, path: str = "") -> None:
        self.path = path
        self._raw = as_mapping(raw, path)
        self._known: set[str] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            self.done()

    def at(self, key: str) -> str:
        """The key path of a member."""
        return join(self.path, key)

    def has(self, key: str) -> bool:
        """Whether the user wrote this key; it counts as known from here on."""
        self._known.add(key)
        return key in self._raw

    def done(self) -> None:
        """Raise `UnknownNameError` for the first key that no getter has asked for."""
        for key in self._raw:
            if key not in self._known:
                raise UnknownNameError(self.at(key), "key", key, self._known)

    def exclusive(self, *keys: str) -> None:
        """Raise when the user wrote more than one of these keys."""
        given = [key for key in keys if self.has(key)]
        if len(given) > 1:
            rule = f"excludes {', '.join(given[:-1])}, which is also given"
            raise SpecError(self.at(given[-1]), self._raw[given[-1]], rule, "give only one of them")

    def get(self, key: str, convert: Callable[[object, str], T], default: D | Required) -> T | D:
        """The converted value of a key, or the default (returned as it is) when it is absent.

        Args:
            key: the key to read.
            convert: takes the raw value and its key path; raises `SpecError`.
            default: `REQUIRED`, or what an absent key means.
        """
        if self.has(key):
            return convert(self._raw[key], self.at(key))
        if isinstance(default, Required):
            raise SpecError(self.path or key, key, "is missing", f"add {key}: ...")
        return default

    def raw(self, key: str, default: D | Required = REQUIRED) -> object | D:
        """The value as it stands, for a reader of its own."""
        return self.get(key, lambda value, path: value, default)

    def text(self, key: str, default: D | Required = REQUIRED) -> str | D:
        """Text that is not blank."""
        return self.get(key, as_text, default)

    def choice(
        self, key: str, choices: Iterable[str], default: D | Required = REQUIRED, what: str = "name"
    ) -> str | D:
        """One of a few names."""
        return self.get(key, lambda v, p: as_choice(v, p, choices, what), default)

    def flag(self, key: str, default: D | Required = REQUIRED) -> bool | D:
        """True or false."""
        return self.get(key, as_flag, default)

    def integer(
        self,
        key: str,
        default: D | Required = REQUIRED,
        *,
        minimum: int | None = None,
        maximum: int | None = None,
    ) -> int | D:
        """A whole number within bounds."""
        return self.get(
            key, lambda v, p: as_integer(v, p, minimum=minimum, maximum=maximum), default
        )

    def number(
        self,
        key: str,
        default: D | Required = REQUIRED,
        *,
        minimum: float | None = None,
        maximum: float | None = None,
    ) -> float | D:
        """A finite number within bounds."""
        return self.get(
            key, lambda v, p: as_number(v, p, minimum=minimum, maximum=maximum), default
        )

    def rate(self, key: str, default: D | Required = REQUIRED) -> int | D:
        """A data rate, bit/s."""
        return self.get(key, units.parse_rate, default)

    def duration(
        self, key: str, default: D | Required = REQUIRED, *, allow_zero: bool = True
    ) -> int | D:
        """A duration, ns."""
        return self.get(
            key, lambda v, p: units.parse_duration(v, p, allow_zero=allow_zero), default
        )

    def size(
        self, key: str, default: D | Required = REQUIRED, *, allow_zero: bool = False
    ) -> int | D:
        """A size, bytes."""
        return self.get(key, lambda v, p: units.parse_size(v, p, allow_zero=allow_zero), default)

    def event_rate(
        self, key: str, default: D | Required = REQUIRED, *, allow_zero: bool = False
    ) -> float | D:
        """Events per second."""
        return self.get(
            key, lambda v, p: units.parse_event_rate(v, p, allow_zero=allow_zero), default
        )

    def fraction(
        self,
        key: str,
        default: D | Required = REQUIRED,
        *,
        maximum: float | None = 1.0,
        allow_zero: bool = True,
    ) -> float | D:
        """A fraction such as ``1/8``, ``0.125`` or ``12.5 %``."""
        return self.get(
            key,
            lambda v, p: units.parse_fraction(v, p, maximum=maximum, allow_zero=allow_zero),
            default,
        )

    def mapping(self, key: str, default: Mapping[str, object] | Required = REQUIRED) -> Reader:
        """A reader of the mapping below a key, or of the default mapping when it is absent."""
        raw = self.get(key, as_mapping, default)
        return Reader(raw, self.at(key))

    def optional_mapping(self, key: str) -> Reader | None:
        """A reader of the mapping below a key, or None when it is absent."""
        return self.mapping(key) if self.has(key) else None

    def items(
        self,
        key: str,
        default: D | Required = REQUIRED,
        *,
        minimum: int = 0,
        maximum: int | None = None,
    ) -> list[tuple[str, object]] | D:
        """A list, as (key path, value) of each entry."""
        return self.get(key, lambda v, p: as_list(v, p, minimum=minimum, maximum=maximum), default)

    def readers(self, key: str, *, minimum: int = 0) -> list[Reader]:
        """A list of mappings, as a reader for each; empty when the key is absent and may be."""
        entries = self.items(key, REQUIRED if minimum else [], minimum=minimum)
        return [Reader(entry, path) for path, entry in entries]

    def integers(
        self,
        key: str,
        default: D | Required = REQUIRED,
        *,
        minimum: int | None = None,
        maximum: int | None = None,
    ) -> list[int] | D:
        """A list of whole numbers within bounds, with at least one entry."""

        def convert(value: object, path: str) -> list[int]:
            entries = as_list(value, path, minimum=1)
            return [as_integer(v, p, minimum=minimum, maximum=maximum) for p, v in entries]

        return self.get(key, convert, default)

    def texts(self, key: str, default: D | Required = REQUIRED) -> list[str] | D:
        """A list of texts, with at least one entry."""

        def convert(value: object, path: str) -> list[str]:
            return [as_text(entry, place) for place, entry in as_list(value, path, minimum=1)]

        return self.get(key, convert, default)
