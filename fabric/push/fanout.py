"""Many devices at a time: the only place of `push` with threads. Collects results, stops at no failure.

Knows nothing of transactions: it takes items and a function and returns results in the order of the items.
"""

from _thread import start_new_thread
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Event, Lock
from typing import Final, TypeAlias, TypeVar

__all__ = ("Stop", "fan_out")

Item = TypeVar("Item")
Result = TypeVar("Result")

Stop: TypeAlias = Event
"""Is set once somebody asked to stop. Shared by all the fan-outs of one run: what has not begun begins in none."""

_LOOK_S: Final = 0.5  # how long a Ctrl-C may stay unseen that came just before a wait began, and so did not break it
_NEVER_STARTED_S: Final = 0.5  # a thread that has not begun by then was not made; if it begins later, it does nothing


@dataclass(slots=True)
class _Flag:
    """What one thread sets and another looks at, without a lock that an interrupt could leave held."""

    is_set: bool = False


def fan_out(
    items: Sequence[Item],
    work: Callable[[Item, Callable[[], bool]], Result],
    *,
    workers: int,
    crashed: Callable[[Item, Exception], Result],
    skipped: Callable[[Item], Result],
    stop: Stop | None = None,
) -> tuple[Result, ...]:
    """Returns one result per item, in order.

    Ctrl-C stops the run without breaking off a transaction: what has not begun is skipped, and what has begun is
    told through the second argument of `work` and ends in its own way. A second Ctrl-C is raised; what runs then still
    ends before the process does.

    Args:
        items: what to work on.
        work: called in a worker thread with the item and a function that says whether the run shall stop.
        workers: items at a time.
        crashed: makes the result of an item whose `work` raised.
        skipped: makes the result of an item that was not begun.
        stop: set by Ctrl-C; when it is set already, nothing is begun.
    """
    if not items:
        return ()
    stop = stop or Stop()
    results: dict[int, Result] = {}

    def one(index: int) -> None:
        item = items[index]
        if stop.is_set():
            return
        try:
            results[index] = work(item, stop.is_set)
        except Exception as error:  # noqa: BLE001  # the one broad except: a defect in one run must not hide the others' results
            results[index] = crashed(item, error)

    begun, done, gate = _Flag(), _Flag(), Lock()
    gate.acquire()

    def dispatch() -> None:
        begun.is_set = True
        try:
            with ThreadPoolExecutor(max_workers=min(workers, len(items)), thread_name_prefix="push") as pool:
                for index in range(len(items)):
                    pool.submit(one, index)
        finally:
            done.is_set = True
            gate.release()

    # Ctrl-C comes to the main thread at any instruction. Inside `submit` or a join it would leave the pool not knowing
    # of a thread that runs, and inside `Thread.start` or `Event.wait` a lock that is held for ever: they are Python. So
    # the main thread starts one thread and waits at one lock, each a single call that is done or is not. It waits a
    # little at a time: a signal between the call and the kernel's wait is noted, and breaks no wait that begins later.
    try:
        start_new_thread(dispatch, ())
        while not gate.acquire(timeout=_LOOK_S):
            pass
    except KeyboardInterrupt:
        stop.set()
        while not done.is_set and (gate.acquire(timeout=_NEVER_STARTED_S) or begun.is_set):
            pass
    return tuple(results[index] if index in results else skipped(item) for index, item in enumerate(items))
