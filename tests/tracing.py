"""How much of a test coverage watches: tracing makes Python two to three times slower, and what is alike shows it nothing new.

Of a property, the examples that the unit tier would run are traced; of a test marked `no_cover`, nothing. Processes that a
test starts trace themselves only where it is marked `traces_processes`: each would take half a second more. What is tested
stays the same. Knows pytest-cov and Hypothesis, and nothing of the product.
"""

import functools
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, Protocol, cast

import pytest

TRACED_EXAMPLES: Final = 50  # as many as the profile `unit` has
SUBPROCESSES: Final = "COVERAGE_PROCESS_CONFIG"  # a process that finds it traces itself (coverage, patch = subprocess)


class Tracer(Protocol):
    """What is used of pytest-cov's controller."""

    started: bool

    def pause(self) -> None:
        """Stops tracing."""

    def resume(self) -> None:
        """Goes on tracing."""


def untraced(environment: Mapping[str, str]) -> dict[str, str]:
    """Returns the environment of a process that shall not trace itself."""
    return {name: value for name, value in environment.items() if name != SUBPROCESSES}


def tracer_of(config: pytest.Config) -> Tracer | None:
    """Returns what traces this run, None if nothing does."""
    plugin = config.pluginmanager.getplugin("_cov")
    return cast("Tracer | None", getattr(plugin, "cov_controller", None))


@contextmanager
def traced_in_part(item: pytest.Item) -> Iterator[None]:
    """Traces of the test inside only what may show something new."""
    tracer = tracer_of(item.config)
    if tracer is None:
        yield
    elif item.get_closest_marker("no_cover"):
        yield  # the mark is pytest-cov's
    else:
        with first_examples_traced(getattr(item, "obj", None), tracer):
            yield


_KEPT: Final[list[str]] = []


def hold_back() -> None:
    """Lets no process that is started from now on trace itself, but inside `processes_traced`."""
    if kept := os.environ.pop(SUBPROCESSES, None):
        _KEPT[:] = [kept]


@contextmanager
def processes_traced(*, is_asked: bool) -> Iterator[None]:
    """Lets what is started inside trace itself, where that is asked for and anything is traced at all."""
    if not (is_asked and _KEPT):
        yield
        return
    os.environ[SUBPROCESSES] = _KEPT[0]
    try:
        yield
    finally:
        hold_back()


@contextmanager
def first_examples_traced(test: object, tracer: Tracer) -> Iterator[None]:
    """Stops the tracer after the first examples of a property, and starts it again behind the test."""
    handle = getattr(test, "hypothesis", None)  # Hypothesis lets plug-ins replace the test inside
    if handle is None:
        yield
        return
    whole = handle.inner_test
    handle.inner_test = _counted(whole, tracer)
    try:
        yield
    finally:
        handle.inner_test = whole
        if not tracer.started:
            tracer.resume()


def _counted(whole: Callable[..., object], tracer: Tracer) -> Callable[..., object]:
    seen = 0

    @functools.wraps(whole)
    def counted(*args: Any, **named: Any) -> object:
        nonlocal seen
        seen += 1
        if seen == TRACED_EXAMPLES + 1:
            tracer.pause()
        return whole(*args, **named)

    return counted
