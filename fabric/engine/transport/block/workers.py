"""Threads of Python that carry out posts: each takes one part, and calls the system without the interpreter's lock.

As many as the caller asked for. They share one line of work, so that a slow call holds up one thread and not a queue.
"""

import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import Final, Generic, Protocol

from fabric.engine.transport.block.allocation import discard, zero
from fabric.engine.transport.block.job import Job, OwnerT
from fabric.engine.transport.signal import Signal

__all__ = ("SYSTEM", "FileCalls", "Workers")

_NO_MEMORY: Final = memoryview(b"")


class FileCalls(Protocol):
    """The system calls of a worker; a test may hand in slower ones."""

    def preadv(self, fd: int, buffers: Sequence[memoryview], offset: int, /) -> int:
        """As os.preadv."""
        ...

    def pwritev(self, fd: int, buffers: Sequence[memoryview], offset: int, /) -> int:
        """As os.pwritev."""
        ...

    def fdatasync(self, fd: int, /) -> None:
        """As os.fdatasync."""
        ...

    def zero(self, fd: int, offset: int, length: int, /) -> None:
        """Makes bytes read as zeroes."""
        ...

    def discard(self, fd: int, offset: int, length: int, /) -> None:
        """Says that bytes hold nothing of worth."""
        ...


class _System:
    preadv = staticmethod(os.preadv)
    pwritev = staticmethod(os.pwritev)
    fdatasync = staticmethod(os.fdatasync)
    zero = staticmethod(zero)
    discard = staticmethod(discard)


SYSTEM: FileCalls = _System()


class _Task(Generic[OwnerT]):
    """A job with the count of its parts that have not ended."""

    __slots__ = ("is_cancelled", "job", "left")

    def __init__(self, job: Job[OwnerT], left: int) -> None:
        self.job = job
        self.left = left
        self.is_cancelled = False


class Workers(Generic[OwnerT]):
    """A fixed set of threads on one descriptor; a `Carrier`.

    Args:
        descriptor: the open device.
        count: how many.
        cpus: thread i is pinned to `cpus[i mod n]`; empty: to none.
        signal: set when a job has ended.
        view: the bytes of an arena: number, offset, length.
        calls: what they call.
    """

    def __init__(
        self,
        descriptor: int,
        count: int,
        cpus: Sequence[frozenset[int]],
        signal: Signal,
        view: Callable[[int, int, int], memoryview],
        calls: FileCalls = SYSTEM,
    ) -> None:
        self._descriptor = descriptor
        self._signal = signal
        self._view = view
        self._calls = calls
        self._live: dict[Job[OwnerT], _Task[OwnerT]] = {}
        self._ended: deque[Job[OwnerT]] = deque()
        self._work: SimpleQueue[tuple[_Task[OwnerT], memoryview, int] | None] = SimpleQueue()
        self._lock = threading.Lock()  # over `left` of tasks
        self._threads = [
            threading.Thread(
                target=self._run, args=(cpus[index % len(cpus)] if cpus else None,), name=f"block-{index}", daemon=True
            )
            for index in range(count)
        ]
        for thread in self._threads:
            thread.start()

    def register(self, base: int, size: int) -> None:
        """See `Carrier`. It is asked for views instead."""

    def put(self, jobs: Sequence[Job[OwnerT]]) -> None:
        """See `Carrier`."""
        for job in jobs:
            unit, firsts, views = job.runs
            task = self._live[job] = _Task(job, len(firsts) or 1)
            if not firsts:
                self._work.put((task, _NO_MEMORY, job.offset))
            for first, view in zip(firsts, views, strict=True):
                self._work.put((task, self._view(*view), first * unit))

    def cancel(self, jobs: Sequence[Job[OwnerT]]) -> None:
        """See `Carrier`."""
        for job in jobs:
            if job in self._live:
                self._live[job].is_cancelled = True

    def ended(self) -> list[Job[OwnerT]]:
        """See `Carrier`."""
        self._signal.clear()
        jobs: list[Job[OwnerT]] = []
        while self._ended:
            job = self._ended.popleft()
            del self._live[job]
            jobs.append(job)
        return jobs

    def close(self) -> None:
        """See `Carrier`."""
        self.cancel(tuple(self._live))
        for _ in self._threads:
            self._work.put(None)
        for thread in self._threads:
            thread.join()

    def _run(self, cpus: frozenset[int] | None) -> None:
        if cpus:
            os.sched_setaffinity(0, cpus)  # 0 is this thread alone; blk-mq picks the hardware queue by its CPU
        while (item := self._work.get()) is not None:
            task, view, offset = item
            error = 0
            if not task.is_cancelled and not task.job.error:
                try:
                    error = self._carry_out(task.job, view, offset)
                except OSError as failure:
                    error = failure.errno or -1
            with self._lock:
                task.job.error = task.job.error or error
                task.left -= 1
                is_last = not task.left
            if is_last:
                self._ended.append(task.job)
                self._signal.set()

    def _carry_out(self, job: Job[OwnerT], view: memoryview, offset: int) -> int:
        calls, descriptor = self._calls, self._descriptor
        match job.call:
            case "s":
                calls.fdatasync(descriptor)
            case "z":
                calls.zero(descriptor, offset, job.length)
            case "t":
                calls.discard(descriptor, offset, job.length)
            case "r":
                return self._move(calls.preadv, view, offset)
            case _:
                error = self._move(calls.pwritev, view, offset)
                if job.call == "d" and not error:
                    calls.fdatasync(descriptor)
                return error
        return 0

    def _move(self, call: Callable[[int, Sequence[memoryview], int], int], view: memoryview, offset: int) -> int:
        while True:
            count = call(self._descriptor, (view,), offset)
            if count == view.nbytes:
                return 0
            if not count:
                return -1
            view, offset = view[count:], offset + count
