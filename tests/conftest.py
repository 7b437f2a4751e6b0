"""What all tests share: hypothesis profiles, and the reference data that this project does not own."""

import os
import signal
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.tracing import hold_back, processes_traced, traced_in_part

TESTS = Path(__file__).resolve().parent
ROOT = TESTS.parent

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell starts background jobs so, and tests press Ctrl-C
    signal.signal(signal.SIGINT, signal.default_int_handler)

for name, examples in (("unit", 50), ("ci", 100), ("full", 300), ("soak", 2000), ("hostile", 5000)):
    settings.register_profile(
        name, max_examples=examples, deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
    )
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "unit"))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Marks the tests that need the reference data, so that `-m reference` finds them; puts the long ones first.

    Then no worker is left alone with a long one at the end.
    """
    hold_back()
    for item in items:
        if "reference" in getattr(item, "fixturenames", ()):
            item.add_marker("reference")
    if hasattr(config, "workerinput"):
        items.sort(key=_rank)


def _rank(item: pytest.Item) -> int:
    """Returns 0 for what is known to be long, 1 for what may be, 2 for the rest."""
    if item.get_closest_marker("slow"):
        return 0
    starts_programs = item.path.is_relative_to(TESTS / "cli") or item.path.is_relative_to(TESTS / "dialogue")
    return 1 if starts_programs or item.get_closest_marker("hypothesis") else 2


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Runs a test with its fixtures; what it starts traces itself where the test asks for that."""
    with processes_traced(is_asked=item.get_closest_marker("traces_processes") is not None):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Runs a test, traced as far as tracing may show something new."""
    with traced_in_part(item):
        return (yield)


def reference_path() -> Path:
    """Returns where the reference data should be: FABRIC_REFERENCE, or `shared` beside the checkout."""
    return Path(os.environ.get("FABRIC_REFERENCE", ROOT.parent / "shared"))


@pytest.fixture(scope="session")
def reference() -> Path:
    """Returns the folder of reference data; skips without it, and fails where CI promises it."""
    path = reference_path()
    if (path / "oracles").is_dir():
        return path
    message = f"reference data missing at {path}; set FABRIC_REFERENCE to the folder that holds oracles/ and samples/"
    if os.environ.get("CI") == "true":
        pytest.fail(message)
    pytest.skip(message)
