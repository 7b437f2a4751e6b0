"""The descriptor under threads: a job that is handed in is never left without a readiness."""

import threading
from collections import deque

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
