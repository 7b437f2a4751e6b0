"""The failure budget: what it bears, when it stops a run, and what is told of what was taken back."""

import pytest

from fabric.errors import FabricError
from fabric.push import Stop
from fabric.state import DeviceResult, Outcome
from fabric.workflow.budget import Count, FailureBudget, parse_budget, taken_back


def ended(device: str, outcome: Outcome, error: str = "") -> DeviceResult:
    return DeviceResult(device, "eos", outcome, error=error, remedy="Look." if error else "")


@pytest.mark.parametrize(
    ("text", "total", "borne"), [("0", 10, 0), ("2", 10, 2), ("10%", 10, 1), ("10%", 9, 0), ("100%", 7, 7)]
)
def test_a_budget_is_a_number_or_a_share_rounded_down(text: str, total: int, borne: int) -> None:
    budget = parse_budget(text)

    assert budget is not None
    assert budget.of(total) == borne
    assert str(budget) == text


@pytest.mark.parametrize("text", ["-1", "101%", "two", "1.5", "%"])
def test_what_is_no_budget_is_refused(text: str) -> None:
    with pytest.raises(FabricError, match="no failure budget"):
        parse_budget(text)


def test_no_text_is_no_budget() -> None:
    assert parse_budget("") is None


def test_the_run_is_stopped_by_one_failure_more_than_the_budget_bears() -> None:
    stop = Stop()
    count = Count(FailureBudget(1), 4, stop)

    count.add(ended("a", Outcome.COMMITTED))
    count.add(ended("b", Outcome.ROLLED_BACK))
    assert (stop.is_set(), count.exceeded) == (False, "")
    count.add(ended("c", Outcome.UNCERTAIN))

    assert stop.is_set()
    assert count.exceeded == "the failure budget of 1 is exceeded (2 failed: b, c)"


def test_what_fails_because_the_run_was_stopped_is_not_counted() -> None:
    stop = Stop()
    count = Count(FailureBudget(0), 4, stop)
    stop.set()

    count.add(ended("a", Outcome.FAILED))

    assert count.exceeded == ""


def test_without_a_budget_every_failure_is_borne() -> None:
    stop = Stop()
    count = Count(None, 2, stop)
    for device in "ab":
        count.add(ended(device, Outcome.FAILED))

    assert (stop.is_set(), count.exceeded) == (False, "")


@pytest.mark.parametrize(
    ("back", "outcome", "said"),
    [
        (ended("a", Outcome.COMMITTED), Outcome.ROLLED_BACK, "and taken back"),
        (ended("a", Outcome.UNCHANGED), Outcome.ROLLED_BACK, "and taken back"),
        (ended("a", Outcome.FAILED, "no session"), Outcome.COMMITTED, "could not be taken back: no session"),
        (ended("a", Outcome.ROLLBACK_FAILED, "refused"), Outcome.ROLLBACK_FAILED, "could not be taken back: refused"),
        (None, Outcome.COMMITTED, "could not be taken back"),
    ],
)
def test_each_end_of_a_way_back_is_told(back: DeviceResult | None, outcome: Outcome, said: str) -> None:
    result = taken_back(ended("a", Outcome.COMMITTED), back, "the budget is exceeded")

    assert result.outcome is outcome
    assert result.error.startswith("the budget is exceeded: ")
    assert said in result.error
    assert result.remedy
