import fcntl
import os
import threading
from collections.abc import Mapping
from pathlib import Path

import pytest

from fabric.clock import FakeClock
from fabric.errors import HostError
from fabric.lab.vm.assembly import Workshop
from fabric.lab.vm.image import Step, build_steps, cache_folder, find_image
from fabric.lab.vm.recipe import Recipe
from fabric.observe import Recorder

RECIPE = Recipe()


class Bench:
    """Steps that write small files, and count how often each ran."""

    def __init__(self, fail: str = "") -> None:
        self.ran: list[str] = []
        self.fail = fail

    def steps(self) -> Mapping[str, Step]:
        return {
            name: self._step(name, parts)
            for name, parts in (("one", ("vmlinuz", "initrd")), ("two", ("root.img", "packages.txt")))
        }

    def _step(self, name: str, parts: tuple[str, ...]) -> Step:
        def step(shop: Workshop) -> None:
            self.ran.append(name)
            if name == self.fail:
                raise HostError("the step failed", where="lab image")
            for part in parts:
                (shop.folder / part).write_text(part, encoding="utf-8")

        return step

    def build(self, cache: Path, recorder: Recorder | None = None) -> Path:
        return build_steps(
            cache, RECIPE, self.steps(), clock=FakeClock(), observer=recorder or Recorder(), is_root=True
        ).folder


def test_image_is_found_after_it_was_built_and_not_built_again(tmp_path: Path) -> None:
    bench = Bench()
    folder = bench.build(tmp_path)
    assert bench.build(tmp_path) == folder
    assert bench.ran == ["one", "two"]
    found = find_image(tmp_path, recipe=RECIPE, thorough=True)
    assert found is not None
    assert (found.kernel.name, found.initrd.name, found.root.read_text()) == ("vmlinuz", "initrd", "root.img")
    assert not (tmp_path / f"{RECIPE.digest()}.work").exists()


def test_interrupted_build_goes_on_where_it_stopped(tmp_path: Path) -> None:
    with pytest.raises(HostError, match="the step failed"):
        Bench(fail="two").build(tmp_path)
    assert find_image(tmp_path, recipe=RECIPE) is None

    bench = Bench()
    bench.build(tmp_path)

    assert bench.ran == ["two"]


@pytest.mark.parametrize("name", ["root.img", "vmlinuz"])
def test_changed_file_is_noticed_and_the_image_built_anew(tmp_path: Path, name: str) -> None:
    folder = Bench().build(tmp_path)
    path = folder / name
    path.chmod(0o644)
    path.write_text(name[::-1], encoding="utf-8")  # as long as before
    assert find_image(tmp_path, recipe=RECIPE) is None

    bench = Bench()
    bench.build(tmp_path)

    assert bench.ran == ["one", "two"]
    assert path.read_text(encoding="utf-8") == name


def test_byte_that_changed_without_its_time_is_noticed_when_all_are_read(tmp_path: Path) -> None:
    path = Bench().build(tmp_path) / "root.img"
    status = path.stat()
    path.chmod(0o644)
    path.write_text("rOot.img", encoding="utf-8")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert find_image(tmp_path, recipe=RECIPE) is not None
    assert find_image(tmp_path, recipe=RECIPE, thorough=True) is None


def test_file_with_another_time_and_the_same_bytes_is_accepted(tmp_path: Path) -> None:
    os.utime(Bench().build(tmp_path) / "root.img", ns=(1, 1))
    assert find_image(tmp_path, recipe=RECIPE) is not None


def test_second_builder_waits_for_the_first_and_builds_nothing(tmp_path: Path) -> None:
    lock = os.open(tmp_path / f"{RECIPE.digest()}.lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(lock, fcntl.LOCK_EX)
    waits = threading.Event()

    class Watcher(Recorder):
        def __call__(self, event: object) -> None:
            if "waiting" in getattr(event, "message", ""):
                waits.set()

    bench = Bench()
    thread = threading.Thread(target=bench.build, args=(tmp_path, Watcher()))
    thread.start()
    assert waits.wait(10)
    assert bench.ran == []
    os.close(lock)
    thread.join(10)
    assert bench.ran == ["one", "two"]


def test_events_name_the_steps_and_their_time(tmp_path: Path) -> None:
    recorder = Recorder()
    Bench().build(tmp_path, recorder)
    assert [event.name for event in recorder.events] == [
        "lab.image.one.started",
        "lab.image.one.done",
        "lab.image.two.started",
        "lab.image.two.done",
    ]


def test_cache_that_cannot_be_written_says_which_setting_helps(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(HostError, match="FABRICCTL_CACHE"):
        Bench().build(tmp_path / "file")


def test_cache_lies_where_the_environment_says() -> None:
    assert cache_folder({"FABRICCTL_CACHE": "/c"}) == Path("/c/lab")
    assert cache_folder({"XDG_CACHE_HOME": "/x"}) == Path("/x/fabricctl/lab")
    assert cache_folder({"FABRICCTL_CACHE": "c"}).is_absolute()  # QEMU runs in another folder
    assert cache_folder({"XDG_CACHE_HOME": "x"}).is_absolute()
    assert cache_folder({}) == Path.home() / ".cache/fabricctl/lab"


def test_recipe_has_another_name_for_other_packages() -> None:
    assert Recipe().digest() == RECIPE.digest()
    assert Recipe(packages=("one",)).digest() != RECIPE.digest()
