"""The descriptor under threads: a job that is handed in is never left without a readiness."""

import os
import threading
from collections import deque

import pytest

from fabric.engine.transport.driver import wait
from fabric.engine.transport.signal import Signal


def test_no_readiness_is_lost_between_threads() -> None:
    signal, done, wanted = Signal(), deque[int](), 20_000

    def work(start: int) -> None:
        for number in range(start, wanted, 4):
            done.append(number)
            signal.set()

    threads = [threading.Thread(target=work, args=(start,)) for start in range(4)]
    for thread in threads:
        thread.start()
    taken = 0
    while taken < wanted:
        assert wait([signal.fileno()], 10_000_000_000), f"{taken} taken, {len(done)} forgotten"
        signal.clear()
        while done:
            done.popleft()
            taken += 1
    for thread in threads:
        thread.join()
    signal.close()


def test_a_set_while_it_is_being_cleared_is_not_read_away(monkeypatch: pytest.MonkeyPatch) -> None:
    signal = Signal()
    read = os.eventfd_read

    def read_after_another_thread_set_it(descriptor: int) -> int:
        signal.set()
        return read(descriptor)

    signal.set()
    with monkeypatch.context() as patch:
        patch.setattr(os, "eventfd_read", read_after_another_thread_set_it)
        signal.clear()
    signal.set()

    assert wait([signal.fileno()], 0)
    signal.close()


def test_it_is_readable_from_a_set_to_the_next_clear() -> None:
    signal = Signal()
    signal.set()
    signal.clear()
    assert not wait([signal.fileno()], 0)

    signal.set()
    signal.set()
    assert wait([signal.fileno()], 0)
    signal.clear()
    signal.set()
    assert wait([signal.fileno()], 0)
    signal.close()
