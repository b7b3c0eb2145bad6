"""What the guest tells its host: one JSON object per line on the console, between other output.

``{"note": text}``, ``{"at": [fraction, text]}`` and, at the end, ``{"end": {...}}``. The console
goes to a file, since a pipe that nobody reads in time would hold the guest up.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

from emulator.run.progress import Progress

MARK = "@fabriclab "
_STEP = 0.01
_CALLS = 15


class ConsoleProgress(Progress):
    """The guest's side: progress becomes lines, a hundred or two of them in a whole run.

    Also when nothing advances there is a line now and then, so that the host can tell slow from
    stuck.
    """

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream, quiet=True)
        self._out = stream
        self._next, self._calls = 0.0, 0

    def tell(self, **what: Any) -> None:
        """One line."""
        print(MARK + json.dumps(what, sort_keys=True), file=self._out, flush=True)

    def note(self, text: str) -> None:
        """A step begins."""
        self.tell(note=text)

    def update(self, fraction: float, text: str) -> None:
        """How far it is."""
        self._calls += 1
        if fraction >= self._next or self._calls >= _CALLS:
            self._next, self._calls = fraction + _STEP, 0
            self.tell(at=[round(fraction, 4), text])


class ConsoleReader:
    """The host's side.

    Args:
        path: the console's file; it may not be there yet.

    Attributes:
        other: lines that are not for us: the kernel's, and tracebacks.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._at, self._rest = path, 0, b""
        self.other: list[str] = []

    def read(self) -> Iterator[dict[str, Any]]:
        """What was said since the last call; whole lines only."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._at)
                data = file.read()
        except FileNotFoundError:
            return
        self._at += len(data)
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            text = line.decode(errors="replace").rstrip("\r")
            said = _parsed(text)
            if said is not None:
                yield said
            elif text.strip():
                self.other.append(text)


def _parsed(text: str) -> dict[str, Any] | None:
    """What a line says to us; None for all others, and where the kernel's words got into it."""
    if not text.startswith(MARK):
        return None
    try:
        said = json.loads(text[len(MARK) :])
    except ValueError:
        return None
    return said if isinstance(said, dict) else None
