"""What the transport tests share."""

from collections.abc import Callable, Iterator

import pytest

from tests.unit.engine.transport.rig import World, worlds


@pytest.fixture
def make() -> Iterator[Callable[..., World]]:
    """Returns a maker of worlds that are closed after the test."""
    yield from worlds()
