"""Coverage watches the first examples of a property and none of the rest; every example runs."""

import os
from types import SimpleNamespace

import pytest

from tests.tracing import SUBPROCESSES, TRACED_EXAMPLES, first_examples_traced, hold_back, processes_traced, untraced


class Recorder:
    """Knows whether it traces."""

    started = True

    def pause(self) -> None:
        self.started = False

    def resume(self) -> None:
        self.started = True


def test_examples_after_the_first_ones_run_untraced_and_the_next_test_is_traced_again() -> None:
    recorder, seen = Recorder(), []

    def inner(number: int) -> None:
        seen.append((number, recorder.started))

    prop = SimpleNamespace(hypothesis=SimpleNamespace(inner_test=inner))
    with first_examples_traced(prop, recorder):
        for number in range(TRACED_EXAMPLES + 10):
            prop.hypothesis.inner_test(number)
        assert not recorder.started
    assert seen == [(number, number < TRACED_EXAMPLES) for number in range(TRACED_EXAMPLES + 10)]
    assert recorder.started
    assert prop.hypothesis.inner_test is inner


def test_property_that_fails_leaves_the_tracer_on() -> None:
    recorder = Recorder()
    prop = SimpleNamespace(hypothesis=SimpleNamespace(inner_test=lambda: None))

    def fail_late() -> None:
        with first_examples_traced(prop, recorder):
            for _ in range(TRACED_EXAMPLES + 1):
                prop.hypothesis.inner_test()
            raise AssertionError

    with pytest.raises(AssertionError):
        fail_late()
    assert recorder.started


def test_test_that_is_no_property_is_traced_whole() -> None:
    recorder = Recorder()
    with first_examples_traced(lambda: None, recorder):
        assert recorder.started


def test_processes_trace_themselves_where_that_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.tracing._KEPT", [])
    monkeypatch.delenv(SUBPROCESSES, raising=False)
    with processes_traced(is_asked=True):
        assert SUBPROCESSES not in os.environ, "nothing is traced at all"
    os.environ[SUBPROCESSES] = "config"
    hold_back()
    assert SUBPROCESSES not in os.environ
    with processes_traced(is_asked=False):
        assert SUBPROCESSES not in os.environ
    with processes_traced(is_asked=True):
        assert os.environ[SUBPROCESSES] == "config"
    assert SUBPROCESSES not in os.environ
    assert untraced({SUBPROCESSES: "config", "HOME": "/"}) == {"HOME": "/"}
