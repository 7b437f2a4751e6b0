"""What the cache forgets: images of recipes that nobody used for two weeks. Builds nothing.

An image counts as used when a lab goes up with it: its folder's time says when. One that a machine runs from, or that
somebody builds, stays whatever its age. Lock files stay: who waits for one has it open, and would hold another one.
"""

import fcntl
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from fabric.clock import Clock
from fabric.lab.vm import processes
from fabric.lab.vm.image import Image

__all__ = ("prune_images",)

_KEPT_S: Final = 14 * 86_400.0
_OURS: Final = re.compile(r"([0-9a-f]{16})(?:\.work|\.old)?")  # Recipe.digest, and what a build or removal left of it


def prune_images(cache: Path, keep: Image, *, clock: Clock) -> tuple[str, ...]:
    """Notes that an image is used now, removes those that nobody used for two weeks, and returns their digests.

    Args:
        cache: as `cache_folder` says.
        keep: the image in use.
        clock: says what is old.
    """
    now_s = clock.unix_s()
    with suppress(OSError):  # a cache that cannot be written is not pruned either
        os.utime(keep.folder, (now_s, now_s))
    if not cache.is_dir():
        return ()
    found = {match[1] for path in cache.iterdir() if path.is_dir() and (match := _OURS.fullmatch(path.name))}
    return tuple(digest for digest in sorted(found - {keep.digest}) if _pruned(cache, digest, now_s))


def _pruned(cache: Path, digest: str, now_s: float) -> bool:
    """Returns whether an image was removed."""
    image, work, old = (cache / f"{digest}{end}" for end in ("", ".work", ".old"))
    with _locked(cache / f"{digest}.lock") as is_ours:
        if not is_ours:
            return False
        is_removed = _is_old(image, now_s) and not any(processes.with_token(f"{cache}/{digest}/"))
        with suppress(OSError):  # a reader finds it whole or not at all
            if is_removed:
                image.rename(old)
        if _is_old(work, now_s):
            shutil.rmtree(work, ignore_errors=True)  # what other users own in it stays
        shutil.rmtree(old, ignore_errors=True)
        if is_removed:
            (cache / f"{digest}.accelerator").unlink(missing_ok=True)
        return is_removed


def _is_old(folder: Path, now_s: float) -> bool:
    try:
        return now_s - folder.stat().st_mtime > _KEPT_S
    except FileNotFoundError:
        return False


@contextmanager
def _locked(path: Path) -> Iterator[bool]:
    """Yields whether nobody builds the image, and nobody will meanwhile."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:
        yield False
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        yield False
    else:
        yield True
    finally:
        os.close(descriptor)
