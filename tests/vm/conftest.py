"""What the tests with virtual machines share. They run when asked for: `make vm`."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fabric.errors import EnvironmentMissingError
from fabric.lab.alarms import WallClock
from fabric.lab.vm import (
    Accelerator,
    Image,
    Machine,
    MachineSpec,
    build_image,
    cache_folder,
    create,
    pick_accelerator,
    sweep,
)
from fabric.observe import Event


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Shows a failure at once: who runs out of time sees it too."""
    if report.failed:
        print(
            f"\nFAILED {report.nodeid} ({report.when})\n{report.longreprtext}\n{report.capstdout[-8000:]}", flush=True
        )


@pytest.fixture(scope="session")
def image() -> Image:
    """Returns the lab's image, built if it is not in the cache."""

    def tell(event: Event) -> None:
        print(event.name, event.message)

    try:
        return build_image(cache_folder(os.environ), clock=WallClock(), observer=tell)
    except EnvironmentMissingError as error:
        if os.environ.get("CI") == "true":
            pytest.fail(str(error))
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def accelerator(image: Image) -> Accelerator:
    """Returns what this machine can run guests with."""
    return pick_accelerator(image)


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Path]:
    """Yields a lab's folder, and removes what the test left."""
    folder = tmp_path / "lab"
    yield folder
    sweep(folder)


@pytest.fixture
def boot(lab: Path, image: Image, accelerator: Accelerator) -> Callable[..., list[Machine]]:
    """Returns a function that starts machines together and waits for all of them."""

    def booted(*specs: MachineSpec) -> list[Machine]:
        machines = [create(lab, spec, image, clock=WallClock()) for spec in specs]
        for machine in machines:
            machine.start(accelerator)
        for machine in machines:
            machine.wait()
        return machines

    return booted
