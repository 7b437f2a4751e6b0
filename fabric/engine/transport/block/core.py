"""Posts carried out without the interpreter, by `core.c`: io_uring or threads of the C library. Loaded by ctypes.

The library is compiled when the package is installed, where there is a C compiler; without it `available` says no, and
`workers` does the same in Python. A transport of thousands of small posts a second gains most: a thread of Python that
comes back from the kernel waits for the interpreter, which the caller's thread holds.
"""

import ctypes
import errno
import os
from array import array
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final, Generic

from fabric.engine.transport.block.job import Job, OwnerT
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
    library.block_open.argtypes = [number, number, ctypes.c_uint, words, ctypes.c_uint, ctypes.POINTER(number)]
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
        bases: where registered memory starts, by key; it may grow.
        threads: how many, for jobs by threads. cpus: as of `Workers`.
        entries: of the submission queue of an io_uring, which then replaces the threads.

    Raises:
        EnvironmentMissingError: the kernel forbids or lacks io_uring, or has no room for it or for the threads.
    """

    def __init__(
        self,
        descriptor: int,
        signal: Signal,
        bases: Mapping[int, int],
        *,
        threads: int = 0,
        cpus: Sequence[frozenset[int]] = (),
        entries: int = 0,
    ) -> None:
        library = _library()
        if library is None:
            raise EnvironmentMissingError(
                "the compiled core is not there", remedy="Install a C compiler, then install fabricctl again."
            )
        self._library = library
        self._signal = signal
        self._bases = bases
        self._jobs: dict[int, Job[OwnerT]] = {}
        self._last = 0
        self._pairs = array("q", bytes(16 * _AT_ONCE))
        self._pairs_at = self._pairs.buffer_info()[0]
        sets = array("Q", [word for one in cpus for word in (len(one), *sorted(one))] + [0])
        error = ctypes.c_int()
        self._handle = library.block_open(
            descriptor, signal.fileno(), threads, sets.buffer_info()[0] if cpus else None, entries, ctypes.byref(error)
        )
        if not self._handle:
            what = "io_uring cannot be used" if entries else "threads cannot be started"
            raise EnvironmentMissingError(what, found=os.strerror(error.value))

    def put(self, jobs: Sequence[Job[OwnerT]]) -> None:
        """See `Carrier`."""
        words: list[int] = []
        live, bases, last = self._jobs, self._bases, self._last
        for job in jobs:
            last += 1
            live[last] = job
            job.token = last
            parts = job.parts
            words += (last, CALLS[job.call], len(parts) or 1)
            if not parts:
                words += (0, 0, 0)
            for offset, (address, length, key) in parts:
                words += (offset, bases[key] + address, length)
        self._last = last
        flat = array("Q", words)
        found = self._library.block_put(self._handle, flat.buffer_info()[0], len(words))
        if found == errno.ENOMEM:
            for job in jobs:
                del live[job.token]
            raise MemoryError
        if found:
            self._signal.set()

    def cancel(self, jobs: Sequence[Job[OwnerT]]) -> None:
        """See `Carrier`."""
        for job in jobs:
            self._library.block_cancel(self._handle, job.token, 0)

    def ended(self) -> list[Job[OwnerT]]:
        """See `Carrier`."""
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
