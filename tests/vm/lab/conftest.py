"""One lab for all tests of this folder: bare machines, provisioned once and saved, gone when they are done."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import pytest

from fabric.lab.vm import Image
from tests.vm.fabrics import Driven, Saved, driven_lab, state_of_host

HOSTS: Final = ("host1", "host2")
MACHINES: Final = (*HOSTS, "target1")


@dataclass(slots=True)
class Provisioned:
    """The lab after its first provisioning.

    Attributes:
        run: folder of that run. before: by device, what it was when it was bare.
    """

    saved: Saved
    run: str
    before: dict[str, str] = field(default_factory=dict)

    @property
    def driven(self) -> Driven:
        """Returns the lab as it is now."""
        return self.saved.driven


@pytest.fixture(scope="package")
def provisioned(image: Image) -> Iterator[Provisioned]:
    """Yields the lab, provisioned by one command from bare machines."""
    del image
    with driven_lab("lab", rate_bps=60_000_000) as driven:  # two hosts congest one target on a busy machine too
        before = {one: state_of_host(driven, one) for one in MACHINES} | driven.site.ask("configs")
        start = time.monotonic()
        done = driven.fabricctl("provision")
        print(f"provision of bare machines: {time.monotonic() - start:.0f} s")
        assert done.status == 0, done.stdout + done.stderr
        assert set(done.outcomes().values()) == {"committed"}
        assert set(done.outcomes()) == {"leaf1", *MACHINES}
        driven.site.save_all(driven.folder / "saved")
        yield Provisioned(Saved(driven, driven.folder / "saved"), done.document["run_folder"], before)
