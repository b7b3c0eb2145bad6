"""Ends what stands on the machine in order, however the user asks for it."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any, TypeVar

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
T = TypeVar("T")


@contextmanager
def orderly() -> Iterator[None]:
    """SIGTERM acts like Ctrl-C while the block lasts: the block is left by KeyboardInterrupt."""

    def interrupt(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def standing(thing: AbstractContextManager[T]) -> Iterator[T]:
    """The thing during the block; it is taken away whole, however often the user asks for the end.

    Raises:
        KeyboardInterrupt: the user asked while it was being taken away; raised afterwards.
    """
    before: dict[int, Any] = {}
    asked: list[int] = []

    def shield() -> None:
        for number in _SIGNALS:
            before[number] = signal.signal(number, lambda number, _frame: asked.append(number))

    def unshield() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)
        if asked:
            raise KeyboardInterrupt

    with ExitStack() as stack:
        stack.callback(unshield)
        entered = stack.enter_context(thing)
        stack.callback(shield)
        yield entered
