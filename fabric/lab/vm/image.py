"""The lab's image: built once from the distribution's packages, kept outside the checkout, found again by content.

    CACHE/DIGEST/          vmlinuz, initrd, root.img, packages.txt, manifest.json: complete, never changed
    CACHE/DIGEST.work/     a build under way, or one that was interrupted; its finished steps are used again
    CACHE/DIGEST.lock      held by whoever builds

A folder gets its final name as the last act, so an image is complete or absent. The lock is the kernel's: it goes
when the builder and each program that the builder started have ended.
"""

import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fabric import serial
from fabric.clock import Clock
from fabric.errors import HostError
from fabric.lab.vm import assembly
from fabric.lab.vm.programs import BUILDING, RUNNING, need
from fabric.lab.vm.recipe import Recipe
from fabric.observe import Event, Observer, silent

__all__ = ("Image", "Step", "build_image", "build_steps", "cache_folder", "find_image")

_MANIFEST: Final = "manifest.json"
_PARTS: Final = ("vmlinuz", "initrd", "root.img", "packages.txt")
Step = Callable[[assembly.Workshop], None]
_STEPS: Final[Mapping[str, Step]] = {
    "kernel": assembly.make_kernel,
    "system": assembly.make_system,
    "root": assembly.make_root,
    "initrd": assembly.make_initrd,
}


@dataclass(frozen=True, slots=True)
class Image:
    """A complete image.

    Attributes:
        digest: of the recipe; the image's name.
        folder: where its files lie.
    """

    digest: str
    folder: Path

    @property
    def kernel(self) -> Path:
        """Returns the path of the kernel."""
        return self.folder / "vmlinuz"

    @property
    def initrd(self) -> Path:
        """Returns the path of the initial RAM file system."""
        return self.folder / "initrd"

    @property
    def root(self) -> Path:
        """Returns the path of the raw root disk, which nobody may write to."""
        return self.folder / "root.img"


@dataclass(frozen=True, slots=True)
class _Part:
    """A file of an image, as it was when it was built."""

    sha256: str
    size_bytes: int
    mtime_ns: int


@dataclass(frozen=True, slots=True)
class _Manifest:
    recipe: Recipe
    parts: Mapping[str, _Part]


def cache_folder(environment: Mapping[str, str]) -> Path:
    """Returns where the lab keeps images: `lab` in FABRICCTL_CACHE, else in the user's cache folder."""
    if root := environment.get("FABRICCTL_CACHE"):
        return Path(root).absolute() / "lab"  # QEMU runs in its machine's folder
    base = environment.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base).absolute() / "fabricctl" / "lab"


def find_image(cache: Path, *, recipe: Recipe | None = None, thorough: bool = False) -> Image | None:
    """Returns the image of the recipe, or None when it is not there or a file of it was changed.

    Args:
        cache: as `cache_folder` says.
        recipe: what it was built from; by default, ours.
        thorough: read every byte; otherwise only files whose size or time differ from the manifest.
    """
    recipe = recipe or Recipe()
    folder = cache / recipe.digest()
    try:
        text = (folder / _MANIFEST).read_text(encoding="utf-8")
        manifest = serial.from_json(_Manifest, json.loads(text))
        is_whole = all(_is_as_built(folder / name, manifest.parts[name], thorough=thorough) for name in _PARTS)
    except (OSError, ValueError, KeyError):
        return None
    return Image(folder.name, folder) if is_whole else None


def _is_as_built(path: Path, part: _Part, *, thorough: bool) -> bool:
    status = path.stat()
    if status.st_size != part.size_bytes:
        return False
    return (status.st_mtime_ns == part.mtime_ns and not thorough) or _sha256(path) == part.sha256


def build_image(
    cache: Path, *, clock: Clock, recipe: Recipe | None = None, observer: Observer = silent, is_root: bool | None = None
) -> Image:
    """Returns the image of the recipe, built now if it is not in the cache.

    A second caller waits for the first. Steps that an interrupted build finished are not done again.

    Args:
        cache: as `cache_folder` says.
        clock: measures the steps.
        recipe: what to build; by default, ours.
        observer: hears `lab.image.STEP.started`, `.progress`, `.done`.
        is_root: whether programs may set owners; by default, whether this process may.

    Raises:
        EnvironmentMissingError: a program or apt's package index is missing; the remedy is one line.
        HostError: a step failed.
    """
    recipe = recipe or Recipe()
    if image := find_image(cache, recipe=recipe):
        return image
    is_root = os.geteuid() == 0 if is_root is None else is_root
    need({**RUNNING, **BUILDING} if is_root else {**RUNNING, **BUILDING, "fakeroot": "fakeroot", "newuidmap": "uidmap"})
    return build_steps(cache, recipe, _STEPS, clock=clock, observer=observer, is_root=is_root)


def build_steps(
    cache: Path, recipe: Recipe, steps: Mapping[str, Step], *, clock: Clock, observer: Observer, is_root: bool
) -> Image:
    """Returns the image that the steps make, under the lock of the recipe's name.

    Args:
        cache: as `cache_folder` says.
        recipe: names the image.
        steps: in order; together they leave every part of an image in the workshop's folder.
        clock: measures them.
        observer: hears of them.
        is_root: whether programs may set owners.
    """
    digest = recipe.digest()
    with _mapped(cache):
        cache.mkdir(parents=True, exist_ok=True)
        with _locked(cache / f"{digest}.lock", observer) as descriptor:
            if image := find_image(cache, recipe=recipe):
                return image
            work = cache / f"{digest}.work"
            work.mkdir(exist_ok=True)

            def tell(line: str) -> None:
                observer(Event("lab.image.system.progress", message=line))

            shop = assembly.Workshop(work, recipe, (descriptor,), is_root, tell)
            for name, step in steps.items():
                _do(name, step, shop, clock, observer)
            return _publish(shop, cache / digest)


def _do(name: str, step: Step, shop: assembly.Workshop, clock: Clock, observer: Observer) -> None:
    stamp = shop.folder / f"{name}.done"
    if stamp.exists():
        observer(Event(f"lab.image.{name}.done", message=f"{name}: done before", data={"seconds": 0.0}))
        return
    observer(Event(f"lab.image.{name}.started", message=f"building the lab's image: {name}"))
    start_ns = clock.now_ns()
    step(shop)
    stamp.touch()
    seconds = (clock.now_ns() - start_ns) / 1e9
    observer(Event(f"lab.image.{name}.done", message=f"{name}: {seconds:.0f} s", data={"seconds": seconds}))


def _publish(shop: assembly.Workshop, folder: Path) -> Image:
    """Gives the parts their final place; the rename is what makes the image exist."""
    final = shop.empty("final")
    parts = {}
    for name in _PARTS:
        path = final / name
        path.hardlink_to(shop.folder / name)  # not moved: an interrupted build still has what its stamps promise
        path.chmod(0o444)
        status = path.stat()
        parts[name] = _Part(_sha256(path), status.st_size, status.st_mtime_ns)
    text = json.dumps(serial.to_json(_Manifest(shop.recipe, parts)), indent=1)
    (final / _MANIFEST).write_text(text, encoding="utf-8")
    if folder.exists():  # a file of it was changed: find_image said so under the lock
        shutil.rmtree(folder)
    final.rename(folder)
    shop.run(shop.as_root(["rm", "-rf", str(shop.folder)]), doing="removing the build folder", cwd=folder)
    return Image(folder.name, folder)


@contextmanager
def _locked(path: Path, observer: Observer) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            observer(Event("lab.image.lock.progress", message="another process builds the lab's image; waiting for it"))
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def _mapped(cache: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise HostError(
            "the lab's image could not be written",
            where=str(cache),
            found=str(error),
            remedy="It needs a writable folder with 4 GB free; FABRICCTL_CACHE names another one.",
        ) from error


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
