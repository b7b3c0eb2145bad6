"""The errors that a user's input can cause, each with place, value, rule and way out."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class FabriclabError(Exception):
    """Base of every error that the command line shows without a traceback (exit code 2)."""


class SpecError(FabriclabError):
    """A value in the user's input is wrong.

    Args:
        path: where it stands, as a key path such as ``fabric.host_link.rate``.
        value: what the user wrote.
        rule: the rule that it breaks, a clause such as ``must be above 0``.
        way_out: what to write instead, an imperative such as ``write e.g. 100 Gbit/s``.
        file: the file that it came from, where there is one.
    """

    def __init__(
        self, path: str, value: object, rule: str, way_out: str = "", file: str | None = None
    ) -> None:
        self.path, self.value, self.rule, self.way_out, self.file = path, value, rule, way_out, file
        super().__init__(path, value, rule, way_out, file)

    def __str__(self) -> str:
        where = f"{self.file}: {self.path}" if self.file else self.path
        text = f"{where}: {self.value!r} {self.rule}"
        return f"{text}; {self.way_out}" if self.way_out else text

    def under(self, prefix: str, file: str | None = None) -> SpecError:
        """The same error seen from the mapping that contains it."""
        path = f"{prefix}.{self.path}" if self.path else prefix
        return SpecError(path, self.value, self.rule, self.way_out, file or self.file)


class UnknownNameError(SpecError):
    """A name that no registry or field list has; the message lists the known ones."""

    def __init__(
        self, path: str, what: str, name: object, known: Iterable[str], file: str | None = None
    ) -> None:
        names = sorted(known)
        near = difflib.get_close_matches(str(name), names, n=1)
        hint = f"did you mean {near[0]!r}? known: " if near else "known: "
        super().__init__(path, name, f"is not a known {what}", hint + ", ".join(names), file)


class MachineError(FabriclabError):
    """This machine lacks something that the run needs; the message says what and how to get it."""
