"""Chooses who carries out the posts of a device.

| device | with the compiled core | without it |
|---|---|---|
| a file in tmpfs or ramfs, or without O_DIRECT | threads of the C library: somebody has to copy | threads of Python |
| any other | io_uring; threads of the C library where the kernel forbids it | threads of Python |

Zeroes and trims are rare and have many ways to be done: beside the compiled core one thread of Python does them.
"""

from collections.abc import Callable, Sequence
from typing import Generic

from fabric.engine.transport.block import core
from fabric.engine.transport.block.device import BlockConfig, BlockDevice
from fabric.engine.transport.block.job import By, Carrier, Job, OwnerT
from fabric.engine.transport.block.workers import SYSTEM, FileCalls, Workers
from fabric.engine.transport.signal import Signal
from fabric.errors import EnvironmentMissingError

__all__ = ("open_carrier",)


class _Both(Generic[OwnerT]):
    """The compiled core, and a thread of Python for what that cannot do, made when it is needed."""

    def __init__(self, fast: Carrier[OwnerT], make: Callable[[], Carrier[OwnerT]]) -> None:
        self._fast = fast
        self._make = make
        self._slow: Carrier[OwnerT] | None = None

    def register(self, base: int, size: int) -> None:
        self._fast.register(base, size)

    def put(self, jobs: Sequence[Job[OwnerT]]) -> None:
        others = [job for job in jobs if job.call not in core.CALLS]
        if others:
            jobs = [job for job in jobs if job.call in core.CALLS]
        if jobs:
            self._fast.put(jobs)  # which may refuse, so first
        if others:
            if self._slow is None:
                self._slow = self._make()
            self._slow.put(others)

    def cancel(self, jobs: Sequence[Job[OwnerT]]) -> None:
        self._fast.cancel(jobs)
        if self._slow is not None:
            self._slow.cancel(jobs)

    def ended(self) -> Sequence[Job[OwnerT]]:
        ended = self._fast.ended()
        return ended if self._slow is None else [*ended, *self._slow.ended()]

    def close(self) -> None:
        self._fast.close()
        if self._slow is not None:
            self._slow.close()


def open_carrier(
    config: BlockConfig,
    device: BlockDevice,
    signal: Signal,
    view: Callable[[int, int, int], memoryview],
    calls: FileCalls = SYSTEM,
) -> tuple[By, Carrier[OwnerT]]:
    """Returns who carries out posts, and the carrier, started.

    Args:
        config: how.
        device: on what.
        signal: set when a job has ended.
        view: the bytes of an arena: number, offset, length.
        calls: the system calls of threads of Python.

    Raises:
        EnvironmentMissingError: what the configuration names is not to be had here.
    """

    def threads(count: int) -> Workers[OwnerT]:
        return Workers(device.descriptor, count, device.cpus, signal, view, calls)

    by = config.by
    if calls is not SYSTEM or (by is By.AUTO and not core.available()):
        by = By.PYTHON
    elif by is By.AUTO:
        copies = not config.direct or core.in_memory(device.descriptor)
        by = By.THREADS if copies else By.IO_URING
    if by is By.PYTHON:
        return by, threads(config.threads)
    fast: core.Core[OwnerT] | None = None
    place = device.length, device.alignment
    if by is By.IO_URING:
        cpus = (frozenset[int]().union(*device.cpus),) if device.cpus else ()  # its thread serves all hardware queues
        try:
            fast = core.Core(device.descriptor, signal, place, depth=config.depth, cpus=cpus)
        except EnvironmentMissingError:  # seccomp of containers, kernel.io_uring_disabled, before 5.6
            if config.by is By.IO_URING:
                raise
            by = By.THREADS
    if fast is None:
        fast = core.Core(device.descriptor, signal, place, threads=config.threads, cpus=device.cpus)
    return by, _Both(fast, lambda: threads(1))
