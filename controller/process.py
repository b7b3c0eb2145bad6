"""How the controller's process ends: loudly when something is wrong, in order when asked to."""

from __future__ import annotations

import functools
import logging
import os
from collections.abc import Callable
from typing import NoReturn, ParamSpec, TypeVar

LOG = logging.getLogger("controller")

FAILED = 1
"""Exit code after an unhandled exception."""

P = ParamSpec("P")
T = TypeVar("T")

_last_words: list[Callable[[str], object]] = []


def at_end(last_words: Callable[[str], object]) -> None:
    """Have a function called with the reason before the process ends by `end`."""
    _last_words.append(last_words)


def end(code: int, reason: str) -> NoReturn:
    """End the process now, from whichever green thread; what it has installed stays."""
    for last_words in _last_words:
        try:
            last_words(reason)
        except Exception:  # nothing may keep the process from ending
            LOG.exception("could not say that the controller ends")
    logging.shutdown()
    os._exit(code)


def kill_on_exception(function: Callable[P, T]) -> Callable[P, T]:
    """Decorator: an unhandled exception is logged and ends the process with exit code 1.

    The framework would log it and go on with rules and state that no longer agree.
    """

    @functools.wraps(function)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            LOG.critical("unhandled exception, ending the controller", exc_info=True)
            end(FAILED, f"{type(error).__name__}: {error}")

    return guarded
