"""What the tests of the engine in a guest share: one lab, set up by hand, gone when they are done."""

from collections.abc import Iterator

import pytest

from fabric.lab.vm import Image
from tests.vm.engine.bench import Bench, set_up
from tests.vm.fabrics import driven_lab


@pytest.fixture(scope="package")
def bench(image: Image) -> Iterator[Bench]:
    """Yields a host with the engine and a Linux target, a leaf between them."""
    del image
    with driven_lab("lab") as driven:
        yield set_up(driven)
