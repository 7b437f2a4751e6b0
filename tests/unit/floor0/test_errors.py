"""Errors say what, where, found, expected and what to do."""

import pytest

from fabric.errors import DeviceError, FabricError, IntentError, Problem, RollbackFailedError


@pytest.mark.parametrize(
    ("problem", "text"),
    [
        (Problem(what="no such key"), "no such key"),
        (
            Problem(
                "unknown key", place="a.yml:3", device="leaf1", field="fabric_ports", found="spead", expected="speed"
            ),
            "a.yml:3: leaf1: fabric_ports: unknown key (found spead, expected speed)",
        ),
        (Problem("too large", expected="at most 63", remedy="Lower it."), "too large (expected at most 63). Lower it."),
        (Problem("wrong", found="x"), "wrong (found x)"),
    ],
)
def test_problem_reads_as_one_sentence(problem: Problem, text: str) -> None:
    assert str(problem) == text


def test_error_carries_its_parts_and_reads_like_a_problem() -> None:
    error = DeviceError("the line was refused", where="leaf1", found="% Invalid input", remedy="See the diff.")
    assert str(error) == "leaf1: the line was refused (found % Invalid input). See the diff."
    assert isinstance(error, FabricError)
    assert issubclass(RollbackFailedError, DeviceError)


def test_intent_error_lists_every_problem() -> None:
    one = IntentError([Problem("first")])
    two = IntentError([Problem("first"), Problem("second", device="leaf2")])
    assert str(one) == "the inventory has 1 problem:\n  first"
    assert str(two) == "the inventory has 2 problems:\n  first\n  leaf2: second"


def test_problem_is_one_line_whatever_stands_in_it() -> None:
    problem = Problem("there is no such key", "a.yml:1", field="fabric_ports[0].x\nerror: all is well\x1b[2J")

    assert str(problem) == "a.yml:1: fabric_ports[0].x\\nerror: all is well\\x1b[2J: there is no such key"
