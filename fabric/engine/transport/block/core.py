"""Posts carried out without the interpreter, by `core.c`: io_uring or threads of the C library. Loaded by ctypes.

The library is compiled when the package is installed, where there is a C compiler; without it `available` says no, and
`workers` does the same in Python. A transport of thousands of small posts a second gains most: a thread of Python that
comes back from the kernel waits for the interpreter, which the caller's thread holds.
"""

import ctypes
import errno
import os
from array import array
from collections.abc import Sequence
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Final, Generic

from fabric.engine.transport.block.job import Job, OwnerT, WrongRunsError
from fabric.engine.transport.signal import Signal
from fabric.errors import EnvironmentMissingError

__all__ = ("CALLS", "Core", "available", "in_memory")

_LIBRARY: Final = Path(__file__).with_name("_core.so")
CALLS: Final = {"r": 0, "w": 1, "s": 2, "d": 3}  # as in core.c
_AT_ONCE: Final = 256  # ended jobs per call


@cache
def _library() -> ctypes.CDLL | None:
    try:
        library = ctypes.CDLL(str(_LIBRARY))
    except OSError:  # not compiled, or for another machine
        return None
    handle, words, size, number = ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
    wide, count = ctypes.c_uint64, ctypes.c_uint
    library.block_open.argtypes = [number, number, wide, wide, count, words, count, ctypes.POINTER(number)]
    library.block_register.argtypes = [handle, wide, wide]
    library.block_open.restype = handle
    library.block_put.argtypes = [handle, words, size]
    library.block_ended.argtypes = [handle, words, size]
    library.block_ended.restype = size
    library.block_cancel.argtypes = [handle, ctypes.c_uint64, number]
    library.block_cancel.restype = library.block_close.restype = None
    library.block_close.argtypes = [handle]
    return library


def available() -> bool:
    """Returns whether the library was compiled for this machine."""
    return _library() is not None


def in_memory(descriptor: int) -> bool:
    """Returns whether the file lies in tmpfs or ramfs, where a read is a copy and no device works beside the CPU."""
    library = _library()
    return library is not None and bool(library.block_in_memory(descriptor))


class Core(Generic[OwnerT]):
    """A carrier of jobs on one descriptor; see `Carrier`.

    Args:
        descriptor: the open device.
        signal: set when a job has ended.
        device: bytes of it, and the unit that offsets and lengths are multiples of.
        threads: how many, for jobs by threads. cpus: as of `Workers`.
        depth: ranges in flight at most of an io_uring, whose one thread then replaces the others.

    Raises:
        EnvironmentMissingError: the kernel forbids or lacks io_uring, or has no room for it or for the threads.
    """

    def __init__(
        self,
        descriptor: int,
        signal: Signal,
        device: tuple[int, int],
        *,
        threads: int = 0,
        cpus: Sequence[frozenset[int]] = (),
        depth: int = 0,
    ) -> None:
        library = _library()
        if library is None:
            raise EnvironmentMissingError(
                "the compiled core is not there", remedy="Install a C compiler, then install fabricctl again."
            )
        self._library = library
        self._signal = signal
        self._jobs: dict[int, Job[OwnerT]] = {}
        self._last = 0
        self._pairs = array("q", bytes(16 * _AT_ONCE))
        self._pairs_at = self._pairs.buffer_info()[0]
        sets = array("Q", [word for one in cpus for word in (len(one), *sorted(one))] + [0])
        error = ctypes.c_int()
        self._handle = library.block_open(
            descriptor,
            signal.fileno(),
            *device,
            threads,
            sets.buffer_info()[0] if cpus else None,
            depth,
            ctypes.byref(error),
        )
        if not self._handle:
            what = "io_uring cannot be used" if depth else "threads cannot be started"
            raise EnvironmentMissingError(what, found=os.strerror(error.value))

    def register(self, base: int, size: int) -> None:
        """See `Carrier`."""
        if self._library.block_register(self._handle, base, size):
            raise MemoryError

    def put(self, jobs: Sequence[Job[OwnerT]]) -> None:
        """See `Carrier`."""
        words = array("Q")
        live, last = self._jobs, self._last
        try:
            for job in jobs:
                last += 1
                job.token = last
                unit, firsts, views = job.runs
                words.extend((last, CALLS[job.call], len(firsts), unit))
                words.extend(firsts)
                words.extend(chain.from_iterable(views))
        except OverflowError:
            raise WrongRunsError from None
        at, count = words.buffer_info()
        found = self._library.block_put(self._handle, at, count)
        if found:
            raise WrongRunsError if found == errno.EINVAL else MemoryError
        self._last = last
        for job in jobs:
            live[job.token] = job

    def cancel(self, jobs: Sequence[Job[OwnerT]]) -> None:
        """See `Carrier`."""
        for job in jobs:
            self._library.block_cancel(self._handle, job.token, 0)

    def ended(self) -> list[Job[OwnerT]]:
        """See `Carrier`."""
        self._signal.lower()  # the core reads the descriptor: no call that fails with an exception, as it often would
        jobs: list[Job[OwnerT]] = []
        live, pairs = self._jobs, self._pairs
        count = _AT_ONCE
        while count == _AT_ONCE:
            count = self._library.block_ended(self._handle, self._pairs_at, _AT_ONCE)
            for at in range(0, 2 * count, 2):
                job = live.pop(pairs[at])
                job.error = pairs[at + 1]
                jobs.append(job)
        return jobs

    def close(self) -> None:
        """See `Carrier`."""
        self._library.block_close(self._handle)
        self._jobs.clear()
