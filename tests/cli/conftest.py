"""What tests of the command line share: a served site, and a state directory of their own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.strategies.site import Site, served_site


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Yields two emulated switches and their inventory, one for all tests of a module."""
    with served_site(tmp_path_factory.mktemp("site")) as served:
        yield served


@pytest.fixture
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keeps state out of the user's folder, and colours out of what is compared."""
    monkeypatch.setenv("FABRICCTL_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("NO_COLOR", "1")
