"""What a person sees while a run lasts: one line that is renewed, or a line now and then."""

from __future__ import annotations

import sys
import time
from typing import TextIO

_RENEW_S = 0.25
_PLAIN_S = 10.0
_WIDTH = 79


class Progress:
    """Writes progress to a stream; quiet = nothing at all, verbose = also where time went."""

    def __init__(
        self, stream: TextIO | None = None, quiet: bool = False, verbose: bool = False
    ) -> None:
        self._stream = stream or sys.stderr
        self._quiet, self.verbose = quiet, verbose
        self._live = self._stream.isatty()
        self._next_s = 0.0
        self._open = False

    def note(self, text: str) -> None:
        """A step begins."""
        if self._quiet:
            return
        self._close_line()
        print(f"  {text}", file=self._stream, flush=True)

    def update(self, fraction: float, text: str) -> None:
        """Shows how far it is; may be called as often as one likes."""
        now = time.monotonic()
        if self._quiet or now < self._next_s:
            return
        self._next_s = now + (_RENEW_S if self._live else _PLAIN_S)
        line = f"  {min(1.0, fraction):4.0%} {text}"
        if self._live:
            print(f"\r{line[:_WIDTH]:<{_WIDTH}}", end="", file=self._stream, flush=True)
            self._open = True
        else:
            print(line, file=self._stream, flush=True)

    def _close_line(self) -> None:
        if self._open:
            print(file=self._stream)
            self._open = False

    def done(self) -> None:
        """Ends the line that was renewed."""
        self._close_line()
