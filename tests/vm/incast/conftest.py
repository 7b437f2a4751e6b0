"""What the tests that load an incast share: one lab, provisioned and saved, gone when they are done."""

from collections.abc import Iterator

import pytest

from fabric.lab.vm import Image
from tests.vm.fabrics import Saved, driven_lab


@pytest.fixture(scope="package")
def incast(image: Image) -> Iterator[Saved]:
    """Yields the incast lab, provisioned and saved: one host that reads from two targets through one leaf.

    Its links are slow enough that two targets congest one also where a busy machine emulates them.
    """
    del image
    with driven_lab("incast", rate_bps=60_000_000) as driven:
        done = driven.fabricctl("provision")
        assert done.status == 0, done.stdout + done.stderr
        driven.site.save_all(driven.folder / "saved")
        yield Saved(driven, driven.folder / "saved")
