"""No room for files of ours, at any moment of a run: no device is half changed, and the run says what became of each.

The limit is the kernel's on the size of a file (RLIMIT_FSIZE): writes fail as they do on a full disk.
"""

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from fabric.errors import EnvironmentMissingError
from fabric.observe import Event
from fabric.state import Outcome
from fabric.workflow import Summary, provision, rollback
from tests.strategies.site import Site, served_site

TINY = 100
UNTOUCHED = {Outcome.REFUSED, Outcome.FAILED, Outcome.ROLLED_BACK}


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with served_site(tmp_path) as served:
        yield served


@contextmanager
def limited() -> Iterator[None]:
    """Gives the limit back that was there before, however often it is lowered inside."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def lower(size: int) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))


def running(site: Site) -> dict[str, str]:
    return {name: front.running() for name, front in site.fronts.items()}


def full_from(site: Site, name: str) -> Summary:
    """Returns how the run ends when nothing more can be written after the first event of that name."""

    def fill(event: Event) -> None:
        if event.name == name:
            lower(TINY)

    with limited():
        return provision(site.request, replace(site.environment, observer=fill))


@pytest.mark.parametrize("size", [TINY, 1 << 20])  # no stage can be written; no room for what comes after the push
def test_room_that_is_missing_before_is_told_before_a_device_is_changed(site: Site, size: int) -> None:
    before = running(site)
    with limited():
        lower(size)
        with pytest.raises(EnvironmentMissingError, match=r"cannot be written .*Free space"):
            provision(site.request, site.environment)
    assert running(site) == before


@pytest.mark.parametrize("name", ["push.read.done", "push.stage.done", "push.commit.done"])
def test_disk_that_fills_up_before_the_confirmation_leaves_each_device_as_before(site: Site, name: str) -> None:
    before = running(site)
    summary = full_from(site, name)
    assert {one.outcome for one in summary.devices} <= UNTOUCHED, summary.devices
    assert all("cannot be written" in one.error for one in summary.devices)
    assert running(site) == before
    assert summary.unwritten


def test_disk_that_fills_up_after_the_confirmation_leaves_it_as_intended_and_it_can_be_taken_back(site: Site) -> None:
    before = running(site)
    only = replace(site.request, limit="leaf2")

    def fill(event: Event) -> None:
        if event.name == "push.confirm.done":
            lower(TINY)

    with limited():
        summary = provision(only, replace(site.environment, observer=fill))
    assert {one.device: one.outcome for one in summary.devices} == {"leaf2": Outcome.COMMITTED}
    assert any("push.json cannot be written" in one for one in summary.unwritten)
    assert running(site) != before

    rollback(Path(summary.run_folder), only, site.environment)  # from the journal
    assert running(site) == before
