"""The threads that carry out posts: each takes one, makes its system calls without the interpreter's lock, and reports.

As many as the caller asked for. They share one line of work, so that a slow call holds up one thread and not a queue.
"""

import os
import threading
from collections import deque
from collections.abc import Sequence
from queue import SimpleQueue
from typing import Protocol

from fabric.engine.transport.block.allocation import discard, zero
from fabric.engine.transport.signal import Signal

__all__ = ("SYSTEM", "FileCalls", "Job", "Workers")


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


class Job:
    """One post on its way through a worker.

    Attributes:
        owner: who gets it back.
        tag: the post's.
        call: "r", "w", "d" for a write that is durable, "s" for sync, "z" for zeroes, "t" for trim.
        view, offset: what and where; `length` of what has no memory.
        is_cancelled: skip it, if it has not begun.
        is_held: its deadline passed before it ended.
        has_ended: the worker is done with it.
        error: errno, or 0; -1 when the device ended early.
    """

    __slots__ = ("call", "error", "has_ended", "is_cancelled", "is_held", "length", "offset", "owner", "tag", "view")

    def __init__(self, owner: object, tag: int, call: str, view: memoryview, offset: int, length: int = 0) -> None:
        self.owner = owner
        self.tag = tag
        self.call = call
        self.view = view
        self.offset = offset
        self.length = length
        self.is_cancelled = self.is_held = self.has_ended = False
        self.error = 0


class Workers:
    """A fixed set of threads on one descriptor.

    Args:
        descriptor: the open device.
        count: how many.
        cpus: thread i is pinned to `cpus[i mod n]`; empty: to none.
        signal: set when a job has ended.
        calls: what they call.
    """

    def __init__(
        self,
        descriptor: int,
        count: int,
        cpus: Sequence[frozenset[int]],
        signal: Signal,
        calls: FileCalls = SYSTEM,
    ) -> None:
        self.ended: deque[Job] = deque()
        self._descriptor = descriptor
        self._signal = signal
        self._calls = calls
        self._work: SimpleQueue[Job | None] = SimpleQueue()
        self._threads = [
            threading.Thread(
                target=self._run, args=(cpus[index % len(cpus)] if cpus else None,), name=f"block-{index}", daemon=True
            )
            for index in range(count)
        ]
        for thread in self._threads:
            thread.start()

    def put(self, job: Job) -> None:
        """Hands in a job; it comes back in `ended`."""
        self._work.put(job)

    def join(self) -> None:
        """Ends the threads, after what is in front of them."""
        for _ in self._threads:
            self._work.put(None)
        for thread in self._threads:
            thread.join()

    def _run(self, cpus: frozenset[int] | None) -> None:
        if cpus:
            os.sched_setaffinity(0, cpus)  # 0 is this thread alone; blk-mq picks the hardware queue by its CPU
        ended, signal = self.ended, self._signal
        while (job := self._work.get()) is not None:
            if not job.is_cancelled:
                try:
                    self._carry_out(job)
                except OSError as error:
                    job.error = error.errno or -1
            ended.append(job)
            signal.set()

    def _carry_out(self, job: Job) -> None:
        calls, descriptor = self._calls, self._descriptor
        match job.call:
            case "s":
                calls.fdatasync(descriptor)
            case "z":
                calls.zero(descriptor, job.offset, job.length)
            case "t":
                calls.discard(descriptor, job.offset, job.length)
            case "d":
                self._move(job)
                if not job.error:
                    calls.fdatasync(descriptor)
            case _:
                self._move(job)

    def _move(self, job: Job) -> None:
        call = self._calls.preadv if job.call == "r" else self._calls.pwritev
        view, offset = job.view, job.offset
        while True:
            count = call(self._descriptor, (view,), offset)
            if count == view.nbytes:
                return
            if not count:
                job.error = -1
                return
            view, offset = view[count:], offset + count
