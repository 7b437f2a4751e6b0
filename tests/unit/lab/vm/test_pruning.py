import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fabric.clock import FakeClock
from fabric.lab.vm import Image, prune_images

DAY_S = 86_400.0
NEW, OLD = "0123456789abcdef", "fedcba9876543210"


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """Returns a cache with two images, an interrupted build and things of other kinds, all last used on day 1."""
    for name in (NEW, OLD, f"{OLD}.work", "states", "notes"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "root.img").touch(mode=0o444)
    for name in (f"{OLD}.accelerator", f"{OLD}.lock"):
        (tmp_path / name).touch()
    for path in tmp_path.iterdir():
        os.utime(path, (DAY_S, DAY_S))
    return tmp_path


def pruned(cache: Path, day: int, keep: str = NEW) -> tuple[str, ...]:
    return prune_images(cache, Image(keep, cache / keep), clock=FakeClock(day * DAY_S))


def there(cache: Path) -> set[str]:
    return {path.name for path in cache.iterdir()}


def test_image_that_nobody_used_for_two_weeks_goes_and_the_one_in_use_stays(cache: Path) -> None:
    assert pruned(cache, 15) == ()
    assert pruned(cache, 16) == (OLD,)
    assert there(cache) == {NEW, "states", "notes", f"{OLD}.lock"}  # who waits for the lock has it open


def test_use_counts_from_the_last_time(cache: Path) -> None:
    pruned(cache, 10, keep=OLD)
    assert pruned(cache, 20) == ()
    assert pruned(cache, 30) == (OLD,)


def test_image_that_is_being_built_stays(cache: Path) -> None:
    with (cache / f"{OLD}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert pruned(cache, 30) == ()
    assert pruned(cache, 30) == (OLD,)


def test_image_that_a_machine_runs_from_stays(cache: Path) -> None:
    kernel = str(cache / OLD / "vmlinuz")
    argv = [sys.executable, "-c", "import sys; print(flush=True); sys.stdin.read()", "-kernel", kernel]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()  # a process that has just begun has no command line yet
        assert pruned(cache, 30) == ()
        process.communicate()
    assert pruned(cache, 30) == (OLD,)


def test_what_an_interrupted_removal_left_goes(cache: Path) -> None:
    (cache / OLD).rename(cache / f"{OLD}.old")
    os.utime(cache / f"{OLD}.work", (29 * DAY_S, 29 * DAY_S))
    assert pruned(cache, 30) == ()
    assert there(cache) == {NEW, "states", "notes", f"{OLD}.lock", f"{OLD}.work", f"{OLD}.accelerator"}


def test_cache_that_is_not_there_is_no_error(tmp_path: Path) -> None:
    assert pruned(tmp_path / "none", 30) == ()
