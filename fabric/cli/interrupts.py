"""Ctrl-C and SIGTERM as the orderly end of a verb that runs until it is told to stop."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ("until_stopped",)


@contextmanager
def until_stopped() -> Iterator[Callable[[], bool]]:
    """Yields whether Ctrl-C or SIGTERM came: here they are the orderly end, not an interruption."""
    came: list[int] = []
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for number in before:
        signal.signal(number, lambda given, _frame: came.append(given))
    try:
        yield lambda: bool(came)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
